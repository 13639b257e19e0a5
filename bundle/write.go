package bundle

import (
	"bufio"
	"crypto"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"
)

// Draft is a bundle before it is sealed. Everything in it is canonical bytes;
// Write checks no more than that they are UTF-8. A sequence may yield the same
// buffer again and again, and nil stands for an empty one. Sequences are read
// once, in the order in which the file has them.
type Draft struct {
	Engine []byte // object
	Result []byte // object
	Action []byte // object; nil: null
	Kind   string // KindFull or KindChain; the latter makes the file minor 1

	Edges       iter.Seq[[]byte]
	Mentions    iter.Seq[[]byte]
	Nodes       iter.Seq2[string, []byte] // record id and node
	Resolutions iter.Seq[[]byte]
	Records     iter.Seq[[]byte] // of the kb
	Upstream    []*Bundle        // KindChain only; embedded as they are
}

// Write seals a draft and writes the file: every leaf, the root, and, when
// signer is not nil, its Ed25519 signature over the root. The bytes depend on
// the draft and the signer alone. It returns the root.
func Write(w io.Writer, d *Draft, signer crypto.Signer) (root string, err error) {
	if d.Kind != KindFull && d.Kind != KindChain {
		return "", fmt.Errorf("write bundle: unknown closure kind %q", d.Kind)
	}
	if d.Kind == KindFull && len(d.Upstream) > 0 {
		return "", errors.New("write bundle: only a chain embeds bundles")
	}
	s := newSealer(w)
	s.draft(d)
	if root, err = s.seal(signer, d.Result); err != nil {
		return "", fmt.Errorf("write bundle: %w", err)
	}
	return root, nil
}

// sealer writes a file and collects the leaves on the way. The order of the
// sections in the file makes this possible: all leaves but that of result
// precede the manifest, and nothing follows the signature.
type sealer struct {
	out    *bufio.Writer
	leaf   *hasher // of the leaf that is being written
	leaves []leaf
	err    error
}

func newSealer(w io.Writer) *sealer {
	return &sealer{out: bufio.NewWriterSize(w, 16<<10), leaf: newHasher()}
}

func (s *sealer) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// plain writes bytes that belong to no leaf.
func (s *sealer) plain(text string) {
	_, err := s.out.WriteString(text)
	s.fail(err)
}

// content writes bytes of the draft.
func (s *sealer) content(text []byte) {
	if !utf8.Valid(text) {
		s.fail(errors.New("the draft is not UTF-8"))
	}
	_, err := s.out.Write(text)
	s.fail(err)
}

// sealed writes bytes that enter the current leaf.
func (s *sealer) sealed(text []byte) {
	s.content(text)
	s.leaf.writeBytes(text)
}

func (s *sealer) endLeaf(name string) {
	s.leaves = append(s.leaves, leaf{name, s.leaf.sum()})
}

func (s *sealer) section(name, leafName string, content []byte) {
	s.plain(`"` + name + `":`)
	s.sealed(content)
	s.endLeaf(leafName)
}

// draft writes everything before the manifest.
func (s *sealer) draft(d *Draft) {
	s.plain("{")
	s.section("action", "action", orNull(d.Action))
	s.plain(`,"anchor":null,`)
	s.section("engine", "engine", d.Engine)
	s.plain(`,"evidence_closure":{"graph":{`)
	s.list("edges", "graph.edges", d.Edges)
	s.plain(",")
	s.list("mentions", "graph.mentions", d.Mentions)
	s.plain(`,"nodes":[`)
	s.nodes(d.Nodes)
	s.plain("],")
	s.list("resolutions", "graph.resolutions", d.Resolutions)
	s.plain(`},"kb":`)
	s.sealed([]byte(`{"records":[`))
	s.items(d.Records)
	s.sealed([]byte("]}"))
	s.endLeaf("kb")
	s.plain(",")
	s.section("kind", "closure.kind", AppendString(nil, d.Kind))
	minor := "0"
	if d.Kind == KindChain {
		minor = "1"
		s.upstreams(d.Upstream)
	}
	s.plain("},")
	s.section("format", "format", []byte(`{"major":1,"minor":`+minor+`,"name":"`+FormatName+`"}`))
	s.plain(",")
}

func orNull(b []byte) []byte {
	if b == nil {
		return []byte("null")
	}
	return b
}

func (s *sealer) list(name, leafName string, items iter.Seq[[]byte]) {
	s.plain(`"` + name + `":`)
	s.sealed([]byte("["))
	s.items(items)
	s.sealed([]byte("]"))
	s.endLeaf(leafName)
}

func (s *sealer) items(items iter.Seq[[]byte]) {
	if items == nil {
		return
	}
	first := true
	for item := range items {
		if !first {
			s.sealed([]byte(","))
		}
		first = false
		s.sealed(item)
	}
}

func (s *sealer) nodes(nodes iter.Seq2[string, []byte]) {
	if nodes == nil {
		return
	}
	first := true
	for id, node := range nodes {
		if !first {
			s.plain(",")
		}
		first = false
		s.sealed(node)
		s.endLeaf("node:" + id)
	}
}

func (s *sealer) upstreams(list []*Bundle) {
	s.plain(`,"upstream":[`)
	for i, b := range list {
		if i > 0 {
			s.plain(",")
		}
		s.fail(b.Doc.WriteCanonical(s.out))
		s.leaves = append(s.leaves, leaf{"upstream:" + b.StoredRoot(), b.Doc.digest(s.leaf)})
	}
	s.plain("]")
}

// seal writes manifest, result and signature. The result follows the manifest
// in the file but is a leaf of it, so it is hashed first.
func (s *sealer) seal(signer crypto.Signer, result []byte) (string, error) {
	s.leaves = append(s.leaves, leaf{"result", Digest(result)})
	if name, ok := repeatedName(s.leaves); ok {
		s.fail(fmt.Errorf("two parts of the draft have the leaf %q", name))
	}
	manifest := appendManifest(nil, s.leaves)
	root := Digest(manifest)
	s.plain(`"integrity":{"canonicalization":"` + Canonicalization + `","leaves":`)
	s.content(manifest)
	s.plain(`,"root":"` + root + `"},"result":`)
	s.content(result)
	s.fail(s.signature(signer, root))
	s.plain("}\n")
	return root, s.end()
}

func (s *sealer) end() error {
	if s.err == nil {
		s.err = s.out.Flush()
	}
	return s.err
}

func (s *sealer) signature(signer crypto.Signer, root string) error {
	text := []byte("null")
	if signer != nil {
		var err error
		if text, err = appendSignature(nil, signer, root); err != nil {
			return err
		}
	}
	s.plain(`,"signature":` + string(text))
	return nil
}

// WriteSigned writes a bundle with a new signature in place of the one it has;
// nil: with none. A bundle whose integrity is not intact is refused with the
// first finding. The rest of the file is its canonical form.
func WriteSigned(w io.Writer, b *Bundle, signer crypto.Signer) error {
	check, err := b.CheckIntegrity()
	if err != nil {
		return fmt.Errorf("sign bundle: %w", err)
	}
	if len(check.Findings) > 0 {
		return fmt.Errorf("sign bundle: %s", check.Findings[0].Detail)
	}
	s := newSealer(w)
	for i, m := range b.Doc.sortedMembers() {
		if m.name == "signature" { // the last of the names that integrity allows
			continue
		}
		s.plain(separator(i, "{", ",") + string(AppendString(nil, m.name)) + ":")
		s.fail(m.value.WriteCanonical(s.out))
	}
	s.fail(s.signature(signer, check.Root))
	s.plain("}\n")
	return s.end()
}
