package engine

import "github.com/chaind/chaind/bundle"

// AppendAssertions appends the canonical bytes of what the graph asserts about
// the identity of a record, each with its reason and confidence: the resolutions,
// then the mentions, that have it at either end, in file order.
func (g *Graph) AppendAssertions(dst []byte, id string) []byte {
	dst = append(dst, `{"assertions":[`...)
	empty := len(dst)
	separate := func() {
		if len(dst) > empty {
			dst = append(dst, ',')
		}
	}
	for i := range g.Resolutions {
		if r := &g.Resolutions[i]; r.NodeA == id || r.NodeB == id {
			separate()
			dst = appendAssertion(dst, "resolution", r.NodeA, r.NodeB, r.Reason, r.Confidence)
			dst = append(dst, `,"score":`...)
			dst = append(append(dst, r.Score...), '}')
		}
	}
	for i := range g.Mentions {
		if m := &g.Mentions[i]; m.Chunk == id || m.Node == id {
			separate()
			dst = append(appendAssertion(dst, "mention", m.Chunk, m.Node, m.Reason, m.Confidence), '}')
		}
	}
	dst = append(dst, `],"record_id":`...)
	return append(bundle.AppendString(dst, id), '}')
}

// appendAssertion appends an assertion up to its reason.
func appendAssertion(dst []byte, kind, a, b, reason string, confidence Number) []byte {
	dst = bundle.AppendString(append(dst, `{"a":`...), a)
	dst = bundle.AppendString(append(dst, `,"b":`...), b)
	dst = append(append(dst, `,"confidence":`...), confidence...)
	dst = bundle.AppendString(append(dst, `,"kind":`...), kind)
	return bundle.AppendString(append(dst, `,"reason":`...), reason)
}
