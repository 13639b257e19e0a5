package export

import (
	"bytes"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// reader decodes strictly: no unknown and no duplicate names, every member
// there, values of the one right type, nothing behind the end. Whatever is
// wrong is errManifest; nobody branches on more.
type reader struct{ dec *jsontext.Decoder }

func newReader(text []byte) *reader {
	return &reader{jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(false))}
}

func (r *reader) end() error {
	if _, err := r.dec.ReadToken(); err != io.EOF {
		return errManifest
	}
	return nil
}

// member is a name with what reads its value.
type member struct {
	name string
	read func() error
}

// object reads an object that has exactly these members, in any order.
func (r *reader) object(members ...member) error {
	if err := r.open('{'); err != nil {
		return err
	}
	seen := 0
	for r.dec.PeekKind() == '"' {
		name, err := r.dec.ReadToken()
		if err != nil {
			return errManifest
		}
		var read func() error
		for _, m := range members {
			if m.name == name.String() {
				read = m.read
			}
		}
		if read == nil {
			return errManifest
		}
		if err := read(); err != nil {
			return err
		}
		seen++
	}
	if seen != len(members) {
		return errManifest
	}
	return r.open('}')
}

// array reads an array of at most most values.
func (r *reader) array(most int, each func() error) error {
	if err := r.open('['); err != nil {
		return err
	}
	for n := 0; r.dec.PeekKind() != ']'; n++ {
		if n == most {
			return malformed("more than %d entries", most)
		}
		if err := each(); err != nil {
			return err
		}
	}
	return r.open(']')
}

func (r *reader) open(kind jsontext.Kind) error {
	if r.dec.PeekKind() != kind {
		return errManifest
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return errManifest
	}
	return nil
}

func (r *reader) text(to *string) func() error {
	return func() error {
		t, err := r.dec.ReadToken()
		if err != nil || t.Kind() != '"' {
			return errManifest
		}
		*to = t.String()
		return nil
	}
}

func (r *reader) optional(to **string) func() error {
	return func() error {
		if r.dec.PeekKind() == 'n' {
			return r.open('n')
		}
		var text string
		*to = &text
		return r.text(&text)()
	}
}

// number reads a whole number from 0 to 2^53-1.
func (r *reader) number(to *int64) func() error {
	return func() error {
		if r.dec.PeekKind() != '0' {
			return errManifest
		}
		raw, err := r.dec.ReadValue()
		if err != nil {
			return errManifest
		}
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil || n < 0 || n >= 1<<53 {
			return errManifest
		}
		*to = n
		return nil
	}
}
