package naive

import "maps"

// At follows a path of member names and list positions; nil: it leads nowhere.
func At(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			l, _ := v.([]any)
			if step < 0 || step >= len(l) {
				return nil
			}
			v = l[step]
		}
	}
	return v
}

// Put sets the member or item at the end of a path, which must exist up to
// its last step.
func Put(doc any, v any, path ...any) {
	last := len(path) - 1
	switch parent := At(doc, path[:last]...).(type) {
	case map[string]any:
		parent[path[last].(string)] = v
	case []any:
		parent[path[last].(int)] = v
	default:
		panic("naive: the path leads nowhere")
	}
}

// Remove takes away the member or item at the end of a path.
func Remove(doc any, path ...any) {
	last := len(path) - 1
	switch parent := At(doc, path[:last]...).(type) {
	case map[string]any:
		delete(parent, path[last].(string))
	case []any:
		i := path[last].(int)
		shorter := append(append([]any{}, parent[:i]...), parent[i+1:]...)
		Put(doc, shorter, path[:last]...)
	default:
		panic("naive: the path leads nowhere")
	}
}

// Clone copies a value, its containers included.
func Clone[T any](v T) T {
	out, _ := clone(v).(T) // the zero T when v is null
	return out
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		for key := range out {
			out[key] = clone(out[key])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = clone(v[i])
		}
		return out
	}
	return v
}

// Paths lists the path of every value below v, parents first, names in order.
func Paths(v any) [][]any {
	var out [][]any
	walk(v, nil, func(path []any) { out = append(out, path) })
	return out
}

func walk(v any, at []any, visit func([]any)) {
	step := func(s, child any) {
		path := append(append([]any{}, at...), s)
		visit(path)
		walk(child, path, visit)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range Keys(v) {
			step(key, v[key])
		}
	case []any:
		for i := range v {
			step(i, v[i])
		}
	}
}
