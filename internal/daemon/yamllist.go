package daemon

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// entryForm says what the entries of a list may hold.
type entryForm struct {
	texts, lists, switches []string // names of members, by the kind of their value
}

func (f *entryForm) names() []string { return slices.Concat(f.texts, f.lists, f.switches) }

// listEntry is one entry of a file that holds a list of mappings.
type listEntry struct {
	line  int
	texts map[string]string
	lists map[string][]string
	on    map[string]bool
}

// parseList reads a YAML list of entries, strictly; nil: the text holds nothing.
// Errors name the line, and no value.
func parseList(text []byte, form entryForm) ([]listEntry, error) {
	root, err := parseYAML(text)
	if err != nil || root == nil {
		return nil, err
	}
	list, ok := root.(*ast.SequenceNode)
	if !ok {
		return nil, fmt.Errorf("line %d: not a YAML list of entries with %s", line(root), strings.Join(form.names(), ", "))
	}
	entries := make([]listEntry, len(list.Values))
	for i, node := range list.Values {
		if entries[i], err = form.read(node); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func (f *entryForm) read(node ast.Node) (listEntry, error) {
	e := listEntry{line: line(node), texts: map[string]string{}, lists: map[string][]string{}, on: map[string]bool{}}
	values, ok := members(node)
	if !ok {
		return listEntry{}, fmt.Errorf("line %d: an entry is %s, and not a mapping with %s", e.line, shape(node), strings.Join(f.names(), ", "))
	}
	seen := map[string]bool{}
	for i, m := range values {
		name, at := m.Key.String(), line(m.Key)
		if i == 0 {
			e.line = at
		}
		if seen[name] && slices.Contains(f.names(), name) {
			return listEntry{}, fmt.Errorf("line %d: %s is given twice", at, name)
		}
		seen[name] = true
		if err := f.member(&e, name, m.Value); err != nil {
			return listEntry{}, fmt.Errorf("line %d: %w", at, err)
		}
	}
	return e, nil
}

func (f *entryForm) member(e *listEntry, name string, value ast.Node) error {
	text, isText := scalar(value)
	switch {
	case slices.Contains(f.texts, name):
		e.texts[name] = text
		return wanted(isText, name, "a text", value)
	case slices.Contains(f.switches, name):
		e.on[name] = text == "true"
		_, quoted := value.(*ast.StringNode)
		return wanted(isText && !quoted && (text == "true" || text == "false"), name, "true or false", value)
	case slices.Contains(f.lists, name):
		list, isList := value.(*ast.SequenceNode)
		if !isList {
			return wanted(false, name, "a list", value)
		}
		e.lists[name] = []string{}
		for _, item := range list.Values {
			text, isText := scalar(item)
			if !isText {
				return wanted(false, name, "a list of texts", item)
			}
			e.lists[name] = append(e.lists[name], text)
		}
		return nil
	}
	return fmt.Errorf("unknown member%s; an entry is a mapping with %s", showable(name), strings.Join(f.names(), ", "))
}

func wanted(ok bool, name, what string, value ast.Node) error {
	if ok {
		return nil
	}
	if got := shape(value); got != "something else" {
		return fmt.Errorf("%s is %s: expected %s", name, got, what)
	}
	return fmt.Errorf("%s: expected %s", name, what)
}

// showable is a blank and the name, or nothing where it may be a secret that
// stands in the wrong place: names are short and have no digits.
func showable(name string) string {
	const longest = 24
	odd := strings.ContainsFunc(name, func(c rune) bool { return (c < 'a' || c > 'z') && c != '_' && c != '-' })
	if name == "" || len(name) > longest || odd {
		return ""
	}
	return " " + name
}
