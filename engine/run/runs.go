package run

import (
	"fmt"
	"strings"

	"github.com/chaind/chaind/segments"
)

// runs says which runs were sealed, and holds kept snapshots against the seals
// and the executed steps.
func (m *model) runs() *claim {
	if m.order.Seals == 0 {
		return newClaim("Runs: ", "none was sealed.")
	}
	var sealed list
	first, last := -1, -1
	for i := range m.segments {
		if k, ok := m.segments[i].Kind.(*segments.RunSealed); ok {
			if first < 0 {
				first = i
			}
			last = i
			sealed.add(func() string { return fmt.Sprintf("%s by segment %d", quote(k.RunID), i) })
		}
	}
	c := newClaim("Runs: ", "%d sealed, %s.", m.order.Seals, &sealed)
	c.cite(segmentID(uint64(first)))
	c.cite(segmentID(uint64(last)))
	m.snapshots(c)
	return c
}

// snapshots checks every seal; the first that does not fit is told.
func (m *model) snapshots(c *claim) {
	var executed map[string]bool
	read := map[string]*snapshot{}
	fingerprints := 0
	for i := range m.segments {
		k, ok := m.segments[i].Kind.(*segments.RunSealed)
		if !ok {
			continue
		}
		if k.RunID != segments.RunID(k.RunBundleDigest) {
			c.fail(" The run id of segment %d is not pr and its digest.", i)
			return
		}
		id, text, ok := m.kept(k)
		if !ok || read[id] != nil {
			continue
		}
		if executed == nil {
			executed = m.executedRequests()
		}
		s := readSnapshot(text, &m.facts.Scope, k.RunBundleDigest, executed)
		read[id] = s
		fingerprints += s.fingerprints
		if len(read) == 1 {
			c.cite(id)
		}
		switch {
		case !s.fits:
			c.fail(" The snapshot that is kept for segment %d gives another digest.", i)
			return
		case s.foreign > 0:
			c.fail(" Of the %s in the snapshot of segment %d, %d are of no executed step.", plural(s.fingerprints, "request"), i, s.foreign)
			return
		}
	}
	if len(read) == 0 {
		c.say(" No snapshot is kept.")
		return
	}
	c.say(" %s kept, giving the digest that was sealed; all %s in it are of executed steps.", plural(len(read), "snapshot"), plural(fingerprints, "request"))
}

// executedRequests is the set of all fingerprints of executed steps, trimmed.
func (m *model) executedRequests() map[string]bool {
	out := map[string]bool{}
	for i := range m.segments {
		if k, ok := m.segments[i].Kind.(*segments.StepExecuted); ok {
			for _, f := range k.RequestFingerprints {
				out[strings.TrimSpace(f)] = true
			}
		}
	}
	return out
}

// snapshot is a kept run snapshot held against its seal.
type snapshot struct {
	fits         bool // gives the sealed digest, and is in the reduced form
	fingerprints int
	foreign      int // fingerprints of no executed step
}

func readSnapshot(text string, scope *segments.Scope, digest segments.Digest, executed map[string]bool) *snapshot {
	doc, err := segments.DecodeSealDocument([]byte(text))
	if err != nil || string(appendSealDocument(nil, doc)) != text {
		return &snapshot{}
	}
	d, err := segments.RunDigest(scope, doc)
	if err == nil && d != digest {
		d, err = segments.RunDigestOlder(scope, doc)
	}
	s := &snapshot{fits: err == nil && d == digest, fingerprints: len(doc.RequestFingerprints)}
	for _, f := range doc.RequestFingerprints {
		if !executed[strings.TrimSpace(f)] {
			s.foreign++
		}
	}
	return s
}

// runIDs are the distinct run ids of the seals, in order.
func (m *model) runIDs() []string {
	var ids []string
	told := map[string]bool{}
	for i := range m.segments {
		if k, ok := m.segments[i].Kind.(*segments.RunSealed); ok && !told[k.RunID] {
			told[k.RunID] = true
			ids = append(ids, k.RunID)
		}
	}
	return ids
}
