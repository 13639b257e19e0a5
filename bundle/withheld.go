package bundle

import "slices"

// Withheld says that v is a marker in place of withheld content.
func (v Value) Withheld() bool {
	if !v.Get("redacted").True() {
		return false
	}
	for name := range v.Members() {
		if name != "redacted" && name != "record" {
			return false
		}
	}
	switch record := v.Get("record"); record.Kind() {
	case Absent, Null:
		return true
	case Object:
		return record.Len() == 1 && record.Get("id").Kind() != Absent
	}
	return false
}

// Withheld lists what the file withholds: the ids of nodes in code point
// order, then "kb", then "graph".
func (b *Bundle) Withheld() []string {
	var ids []string
	graph := b.Closure.Get("graph")
	for _, node := range graph.Get("nodes").Items() {
		if id := node.Get("record").Get("id"); node.Withheld() && id.Kind() == String {
			ids = append(ids, id.Text())
		}
	}
	slices.Sort(ids)
	if b.Closure.Get("kb").Withheld() {
		ids = append(ids, "kb")
	}
	if graph.Withheld() {
		ids = append(ids, "graph")
	}
	return ids
}
