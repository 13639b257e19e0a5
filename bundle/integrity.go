package bundle

import (
	"fmt"
	"slices"
	"strings"
)

// Integrity is the outcome of recomputing the manifest.
type Integrity struct {
	Root     string    // recomputed; "" when the file was made under another canonicalization
	Stored   string    // as the file states it; "" when it is not a string
	Leaves   int       // recomputed leaves, commitments of withheld items included
	Withheld []string  // as Bundle.Withheld
	Findings []Finding // in order of the package doc; none: intact
}

// CheckIntegrity recomputes every leaf and the root and compares them with
// what the file states. A finding about a leaf names it, and so the record.
// The error is a *FormatError: the manifest or a section that it covers is
// missing or not of the right type, or a withheld item has no commitment.
func (b *Bundle) CheckIntegrity() (*Integrity, error) {
	m, err := b.readManifest()
	if err != nil {
		return nil, err
	}
	out := &Integrity{Stored: b.StoredRoot(), Withheld: b.Withheld()}
	if m.recipe.Kind() != String || m.recipe.Text() != Canonicalization {
		out.Findings = []Finding{{OtherCanonicalization, "integrity.canonicalization",
			fmt.Sprintf("the file was sealed under another canonicalization than %q, so that its bytes cannot be compared", Canonicalization)}}
		return out, nil
	}
	out.Findings = append(m.findings, b.unexpectedMembers()...)
	out.Findings = append(out.Findings, m.notDigests...)
	computed, err := b.leaves(m.stored)
	if err != nil {
		return nil, err
	}
	out.Findings = append(out.Findings, compareLeaves(computed, m.stored)...)
	root := b.Integrity.Get("root")
	if root.Kind() == Absent {
		return nil, faultf(MissingMember, "integrity.root", "missing")
	}
	out.Root, out.Leaves = manifestRoot(computed), len(computed)
	if out.Stored != out.Root {
		out.Findings = append(out.Findings, Finding{RootMismatch, "root", "the root does not recompute from the content"})
	}
	return out, nil
}

// leaf is one line of the manifest.
type leaf struct {
	name, digest string
}

func compareName(a, b leaf) int { return strings.Compare(a.name, b.name) }

// manifest is the integrity section as stored. Leaves that are not strings
// count as not stored.
type manifest struct {
	recipe     Value
	stored     []leaf // sorted by name
	findings   []Finding
	notDigests []Finding
}

func (b *Bundle) readManifest() (*manifest, error) {
	if err := needObject(b.Integrity, "integrity"); err != nil {
		return nil, err
	}
	m := &manifest{recipe: b.Integrity.Get("canonicalization")}
	if m.recipe.Kind() == Absent {
		return nil, faultf(MissingMember, "integrity.canonicalization", "missing")
	}
	leaves := b.Integrity.Get("leaves")
	if m.recipe.Kind() == String && m.recipe.Text() == Canonicalization {
		if err := needObject(leaves, "integrity.leaves"); err != nil {
			return nil, err
		}
	}
	for name, v := range leaves.Members() {
		if v.Kind() != String {
			m.findings = append(m.findings, notADigest(name))
			continue
		}
		if !IsDigest(v.Text()) {
			m.notDigests = append(m.notDigests, notADigest(name))
		}
		m.stored = append(m.stored, leaf{name, v.Text()})
	}
	slices.SortFunc(m.stored, compareName)
	return m, nil
}

func notADigest(name string) Finding {
	return Finding{NotADigest, name, "the stored leaf " + Quote(name) + " is not a digest"}
}

func findLeaf(sorted []leaf, name string) (string, bool) {
	i, ok := slices.BinarySearchFunc(sorted, leaf{name: name}, compareName)
	if !ok {
		return "", false
	}
	return sorted[i].digest, true
}

// unexpectedMembers finds members outside the sections that the manifest
// covers, one finding for each object that has some.
func (b *Bundle) unexpectedMembers() []Finding {
	closure := []string{"graph", "kb", "kind"}
	if kind := b.Closure.Get("kind"); kind.Kind() == String && kind.Text() == KindChain {
		closure = append(closure, "upstream")
	}
	graph := b.Closure.Get("graph")
	var out []Finding
	for _, set := range []struct {
		where   string
		v       Value
		allowed []string
	}{
		{"", b.Doc, []string{"action", "anchor", "engine", "evidence_closure", "format", "integrity", "result", "signature"}},
		{"evidence_closure", b.Closure, closure},
		{"evidence_closure.graph", graph, []string{"edges", "mentions", "nodes", "resolutions"}},
		{"integrity", b.Integrity, []string{"canonicalization", "leaves", "root"}},
	} {
		if extra := extraMembers(set.v, set.allowed); len(extra) > 0 && !set.v.Withheld() {
			out = append(out, Finding{UnexpectedMember, set.where,
				fmt.Sprintf("%s has members that nothing seals: %s", whereName(set.where), QuoteList(extra))})
		}
	}
	return out
}

func whereName(path string) string {
	if path == "" {
		return "the document"
	}
	return path
}

func extraMembers(v Value, allowed []string) []string {
	var extra []string
	for name := range v.Members() {
		if !slices.Contains(allowed, name) {
			extra = append(extra, name)
		}
	}
	slices.Sort(extra)
	return extra
}

// compareLeaves merges two sorted manifests. Findings come by group, and by
// name inside a group.
func compareLeaves(computed, stored []leaf) []Finding {
	var missing, unexpected, different []Finding
	for len(computed) > 0 || len(stored) > 0 {
		switch order := mergeOrder(computed, stored); {
		case order < 0:
			name := computed[0].name
			missing = append(missing, Finding{MissingLeaf, name, "the manifest has no leaf " + Quote(name)})
			computed = computed[1:]
		case order > 0:
			name := stored[0].name
			unexpected = append(unexpected, Finding{UnexpectedLeaf, name, "the leaf " + Quote(name) + " belongs to nothing in the file"})
			stored = stored[1:]
		default:
			name := computed[0].name
			if computed[0].digest != stored[0].digest {
				different = append(different, Finding{LeafMismatch, name, "the leaf " + Quote(name) + " does not match its content"})
			}
			computed, stored = computed[1:], stored[1:]
		}
	}
	return slices.Concat(missing, unexpected, different)
}

func mergeOrder(computed, stored []leaf) int {
	switch {
	case len(stored) == 0:
		return -1
	case len(computed) == 0:
		return 1
	}
	return compareName(computed[0], stored[0])
}

// appendManifest appends the leaves object.
func appendManifest(dst []byte, sorted []leaf) []byte {
	dst = append(dst, '{')
	for i, l := range sorted {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, l.name)
		dst = append(dst, ':')
		dst = AppendString(dst, l.digest)
	}
	return append(dst, '}')
}

// manifestRoot is the digest of the leaves object.
func manifestRoot(sorted []leaf) string { return Digest(appendManifest(nil, sorted)) }
