package bundle

import (
	"fmt"
	"io"
	"strings"
)

// Bundle is a document that has the outer shape of a trust bundle. Nothing
// about it has been checked beyond what Parse says. The values are views of
// the text; absent members are absent values.
type Bundle struct {
	Doc       Value // the whole document, an object
	Format    Value // object
	Engine    Value // object
	Closure   Value // evidence_closure, object
	Result    Value
	Action    Value
	Integrity Value
	Signature Value

	Canonical bool  // the text is the canonical one, byte for byte
	Bytes     int64 // length of the text; 0 for an embedded bundle
}

// Read reads a file of at most MaxBytes and parses it. The error is a
// *FormatError when the content is at fault, and that of r otherwise.
func Read(r io.Reader) (*Bundle, error) { return readUpTo(r, MaxBytes) }

// readUpTo counts what it has read, not what somebody declared.
func readUpTo(r io.Reader, limit int64) (*Bundle, error) {
	text, err := readText(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read bundle: %w", err)
	}
	if int64(len(text)) > limit {
		return nil, faultf(TooLarge, "", "more than %d bytes", limit)
	}
	return Parse(text)
}

// readText reads in pieces that are put together once, so that a long text is
// in memory no more than twice, and is never copied again to make it grow.
func readText(r io.Reader) (string, error) {
	var pieces [][]byte
	total := 0
	for size := 8 << 10; ; size = min(2*size, 1<<20) {
		piece := make([]byte, size)
		n, err := fill(piece, r)
		pieces, total = append(pieces, piece[:n]), total+n
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
	}
	var text strings.Builder
	text.Grow(total)
	for _, piece := range pieces {
		text.Write(piece)
	}
	return text.String(), nil
}

// fill reads until piece is full; unlike io.ReadFull it gives the reader's own
// error, so that a text cut short is told from one that ends.
func fill(piece []byte, r io.Reader) (n int, err error) {
	for n < len(piece) && err == nil {
		var more int
		more, err = r.Read(piece[n:])
		n += more
	}
	return n, err
}

// Parse reads a text strictly and checks that it is an object with a format
// section of the right name and major, no anchor, engine and evidence_closure
// objects, and no more than MaxChain bundles above one another. The error is a
// *FormatError.
func Parse(text string) (*Bundle, error) {
	v, err := ParseValue(text)
	if err != nil {
		return nil, err
	}
	if depth := chainDepth(v, 0); depth > MaxChain {
		return nil, faultf(ChainTooDeep, "evidence_closure.upstream", "more than %d bundles above one another", MaxChain)
	}
	b, err := Open(v)
	if err != nil {
		return nil, err
	}
	e := v.doc.at(v.index)
	b.Canonical = e.canonical() && e.start == 0 && text[e.end:] == "\n"
	b.Bytes = int64(len(text))
	return b, nil
}

// Open takes a value, such as an item of an upstream list, for a bundle. It
// makes the checks of Parse, the depth of the chain apart.
func Open(v Value) (*Bundle, error) {
	if v.Kind() != Object {
		return nil, faultf(WrongType, "", "a bundle is an object, not %s", v.Kind())
	}
	b := &Bundle{
		Doc: v, Format: v.Get("format"), Engine: v.Get("engine"), Closure: v.Get("evidence_closure"),
		Result: v.Get("result"), Action: v.Get("action"), Integrity: v.Get("integrity"), Signature: v.Get("signature"),
		Canonical: v.doc.at(v.index).canonical(),
	}
	if err := b.checkFormat(); err != nil {
		return nil, err
	}
	if anchor := v.Get("anchor").Kind(); anchor != Absent && anchor != Null {
		return nil, faultf(AnchorPresent, "anchor", "an anchor cannot be checked by this version; it must be null")
	}
	if err := needObject(b.Engine, "engine"); err != nil {
		return nil, err
	}
	if err := needObject(b.Closure, "evidence_closure"); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *Bundle) checkFormat() error {
	if err := needObject(b.Format, "format"); err != nil {
		return err
	}
	if name := b.Format.Get("name"); name.Kind() != String || name.Text() != FormatName {
		return faultf(NotABundle, "format.name", "not %q", FormatName)
	}
	if major := b.Format.Get("major"); major.Kind() != Number || major.Text() != "1" {
		return faultf(UnsupportedMajor, "format.major", "this version reads format major %d only", FormatMajor)
	}
	return nil
}

// StoredRoot is the root that the file states; "" when there is none that is a
// string.
func (b *Bundle) StoredRoot() string {
	if root := b.Integrity.Get("root"); root.Kind() == String {
		return root.Text()
	}
	return ""
}

// ChainDepth counts the bundles embedded below one another: 0 for a single
// decision, 1 for a chain over such. It stops counting above MaxChain.
func (b *Bundle) ChainDepth() int { return chainDepth(b.Doc, 0) }

// Upstream is the list of embedded bundles of a chain; absent when the closure
// has none.
func (b *Bundle) Upstream() Value { return b.Closure.Get("upstream") }

// need demands a kind of a value at a path.
func need(v Value, kind Kind, path string) error {
	switch v.Kind() {
	case kind:
		return nil
	case Absent:
		return faultf(MissingMember, path, "missing")
	}
	return faultf(WrongType, path, "want %s, got %s", kind, v.Kind())
}

func needObject(v Value, path string) error { return need(v, Object, path) }

// chainDepth counts the links of the longest chain of embedded bundles, and
// stops counting above the limit.
func chainDepth(v Value, above int) int {
	if above > MaxChain {
		return above
	}
	deepest := above
	for _, item := range v.Get("evidence_closure").Get("upstream").Items() {
		deepest = max(deepest, chainDepth(item, above+1))
	}
	return deepest
}
