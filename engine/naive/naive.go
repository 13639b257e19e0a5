// Package naive is a second reading of the trust bundle format for tests: plain
// maps, written from sections 1 to 3 of the format alone, slow, and without a
// line in common with package bundle. Tests take it as an oracle, and use it to
// alter a bundle at any place and seal it again as a forger would. No program
// imports it.
package naive

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Number is the text of a number. The other values are nil, bool, string,
// []any and map[string]any.
type Number string

// Parse reads a text strictly.
func Parse(text string) (map[string]any, error) {
	d := jsontext.NewDecoder(strings.NewReader(text))
	v, err := value(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, errors.New("naive: text after the document")
	}
	doc, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("naive: not an object")
	}
	return doc, nil
}

// MustParse is Parse for texts that are known to be good.
func MustParse(text string) map[string]any {
	doc, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return doc
}

func value(d *jsontext.Decoder) (any, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return t.Bool(), nil
	case '"':
		return t.String(), nil
	case '0':
		return Number(t.String()), nil
	case '[':
		return list(d)
	}
	return object(d)
}

func list(d *jsontext.Decoder) (any, error) {
	out := []any{}
	for d.PeekKind() != ']' {
		v, err := value(d)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	_, err := d.ReadToken()
	return out, err
}

func object(d *jsontext.Decoder) (any, error) {
	out := map[string]any{}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		v, err := value(d)
		if err != nil {
			return nil, err
		}
		out[key] = v
	}
	_, err := d.ReadToken()
	return out, err
}

// Canon returns the canonical text of a value.
func Canon(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprint(v)
	case Number:
		return string(v)
	case string:
		return quote(v)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = Canon(v[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, key := range Keys(v) {
			parts = append(parts, quote(key)+":"+Canon(v[key]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	panic(fmt.Sprintf("naive: no canonical text for %T", v))
}

func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\f':
			b.WriteString(`\f`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x20:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// File returns the file of a document: its canonical text and a line feed.
func File(doc map[string]any) string { return Canon(doc) + "\n" }

// Digest returns the digest of a value.
func Digest(v any) string {
	sum := sha256.Sum256([]byte(Canon(v)))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Keys returns the member names of an object in order.
func Keys(v map[string]any) []string {
	keys := make([]string, 0, len(v))
	for key := range v {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// Seal gives a document the integrity section that its content has. Withheld
// items keep the commitments of the section it had.
func Seal(doc map[string]any) {
	leaves := manifest(doc)
	doc["integrity"] = map[string]any{
		"canonicalization": "tessera-canonical-json-1",
		"leaves":           leaves,
		"root":             Digest(leaves),
	}
}

// Check recomputes the envelope, and the signature when there is one.
func Check(doc map[string]any) error {
	leaves := manifest(doc)
	integrity, _ := doc["integrity"].(map[string]any)
	if got, want := Canon(integrity["leaves"]), Canon(leaves); got != want {
		return fmt.Errorf("naive: leaves are %s, want %s", got, want)
	}
	root, _ := integrity["root"].(string)
	if root != Digest(leaves) {
		return fmt.Errorf("naive: root is %s, want %s", root, Digest(leaves))
	}
	signature, signed := doc["signature"].(map[string]any)
	if !signed {
		return nil
	}
	key, _ := hex.DecodeString(signature["public_key"].(string))
	bytes, _ := hex.DecodeString(signature["signature"].(string))
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, []byte(root), bytes) {
		return errors.New("naive: the signature does not verify")
	}
	return nil
}

func manifest(doc map[string]any) map[string]any {
	leaves := map[string]any{}
	old, _ := At(doc, "integrity", "leaves").(map[string]any)
	add := func(name string, v any) {
		if withheld(v) {
			leaves[name] = old[name]
			return
		}
		leaves[name] = Digest(v)
	}
	for _, name := range []string{"format", "engine", "result", "action"} {
		add(name, doc[name])
	}
	closure, _ := doc["evidence_closure"].(map[string]any)
	add("closure.kind", closure["kind"])
	add("kb", closure["kb"])
	for _, name := range []string{"edges", "resolutions", "mentions"} {
		add("graph."+name, At(closure, "graph", name))
	}
	nodes, _ := At(closure, "graph", "nodes").([]any)
	for _, n := range nodes {
		add(fmt.Sprintf("node:%v", At(n, "record", "id")), n)
	}
	if closure["kind"] == "chain-snapshot" {
		upstream, _ := closure["upstream"].([]any)
		for _, u := range upstream {
			add(fmt.Sprintf("upstream:%v", At(u, "integrity", "root")), u)
		}
	}
	return leaves
}

func withheld(v any) bool {
	m, ok := v.(map[string]any)
	return ok && m["redacted"] == true
}
