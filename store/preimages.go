package store

import "github.com/chaind/chaind/events"

// preimages is a value of the preimage table.
type preimages struct{ events.Preimage }

func (p *preimages) fields(c *codec) {
	c.optText(&p.Text)
	c.optBytes(&p.Comp)
	c.optBytes(&p.Parsed)
	c.optBytes(&p.Artifact)
}

// kept is what the configuration keeps of an event's preimages; nil: nothing.
func (s *Store) kept(p *events.Preimage) *preimages {
	k := events.Preimage{Comp: p.Comp, Artifact: p.Artifact}
	if s.cfg.KeepIntent {
		k.Text = p.Text
	}
	if s.cfg.KeepParsed {
		k.Parsed = p.Parsed
	}
	if k.Text == nil && k.Comp == nil && k.Parsed == nil && k.Artifact == nil {
		return nil
	}
	return &preimages{k}
}

// Preimages returns the chain's kept preimages from ordinal from on, like
// [Store.Segments].
func (s *Store) Preimages(key events.Key, from uint64, limit int) ([]PreimageRecord, error) {
	var out []PreimageRecord
	err := s.entries(key, listPreimages, from, limit, func(v *view, ordinal uint64, e *entry) (int, error) {
		var p preimages
		payload, err := v.get(tablePreimages, key64(e.Arrival))
		if err == nil && payload == nil {
			err = missing(tablePreimages, key64(e.Arrival), "the preimages")
		}
		if err == nil {
			err = decode(tablePreimages, key64(e.Arrival), payload, &p)
		}
		if err != nil {
			return 0, err
		}
		r := PreimageRecord{Ordinal: ordinal, Preimage: p.Preimage, Origin: e.Origin}
		if seq := e.seq; e.segment {
			r.Seq = &seq
		}
		out = append(out, r)
		return len(payload), nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
