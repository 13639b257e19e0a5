package daemon

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Settings are the values of a configuration file: a YAML mapping whose nested
// keys, joined with "-", are the names of the daemon's flags (`nats: {url: …}`
// sets --nats-url). A list sets a flag that may be repeated.
type Settings struct {
	Path   string
	values map[string]setting
}

type setting struct {
	value string
	line  int
}

// SettingNames are the settings that a file may set; true: to a list.
type SettingNames map[string]bool

// SyntaxError is a configuration file that can be read and is not understood.
type SyntaxError struct {
	Path string
	Err  error // names the line, and no value
}

// Error names the file.
func (e *SyntaxError) Error() string { return fmt.Sprintf("configuration %s: %v", e.Path, e.Err) }
func (e *SyntaxError) Unwrap() error { return e.Err }

// ReadSettings reads a configuration file strictly: an unknown setting, a value
// that is not a scalar (or a list of scalars, where the setting is one), an
// anchor, a second document or a key given twice is a [*SyntaxError] that names
// the line. Of the text it repeats only what may be the name of a setting: what
// stands below or beside a known name may be a secret.
func ReadSettings(path string, known SettingNames) (Settings, error) {
	text, err := readBounded(path, maxSettingsBytes)
	if err != nil {
		return Settings{}, fmt.Errorf("read configuration: %w", err)
	}
	root, err := parseYAML(text)
	s := Settings{Path: path, values: map[string]setting{}}
	var unknown []error
	if err == nil && root != nil {
		if _, ok := members(root); !ok {
			err = fmt.Errorf("line %d: the file is %s: expected a mapping of settings, such as log-level: info", line(root), shape(root))
		} else {
			err = s.collect("", root, known, &unknown)
		}
	}
	if err == nil {
		err = together(unknown)
	}
	if err != nil {
		return Settings{}, &SyntaxError{path, err}
	}
	return s, nil
}

// together makes one error of all, on one line.
func together(errs []error) error {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}

// collect walks a mapping and files its leaves under their joined keys. Unknown
// names are gathered, so that all are told at once.
func (s *Settings) collect(prefix string, node ast.Node, known SettingNames, unknown *[]error) error {
	values, _ := members(node)
	for _, m := range values {
		name, at := join(prefix, m.Key.String()), line(m.Key)
		isList, isSetting := known[name]
		_, nested := members(m.Value)
		switch {
		case isSetting:
			if err := s.put(name, at, m.Value, isList); err != nil {
				return err
			}
		case known.group(name) && nested:
			if err := s.collect(name, m.Value, known, unknown); err != nil {
				return err
			}
		case known.group(name):
			return fmt.Errorf("line %d: %s is %s: expected a mapping of settings", at, name, shape(m.Value))
		default:
			*unknown = append(*unknown, fmt.Errorf("line %d: unknown setting%s", at, known.shown(prefix, m.Key.String())))
		}
	}
	return nil
}

func (s *Settings) put(name string, at int, node ast.Node, isList bool) error {
	value, err := scalars(node, isList)
	if err != nil {
		return fmt.Errorf("line %d: %s: %w", at, name, err)
	}
	if earlier, twice := s.values[name]; twice {
		return fmt.Errorf("line %d: %s is already set in line %d", at, name, earlier.line)
	}
	s.values[name] = setting{value, at}
	return nil
}

func join(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "-" + key
}

// group tells whether names of settings begin with the name.
func (n SettingNames) group(name string) bool {
	for known := range n {
		if strings.HasPrefix(known, name+"-") {
			return true
		}
	}
	return false
}

// shown is the name of an unknown setting, if it may be shown. What begins like
// a known setting may be its value without the blank after the colon.
func (n SettingNames) shown(prefix, key string) string {
	name := join(prefix, key)
	for known := range n {
		if strings.HasPrefix(name, known) {
			return " that begins with " + known
		}
	}
	if showable(key) == "" {
		return ""
	}
	return " " + name
}

// scalars gives the text of a scalar, or of a list of them joined with commas.
func scalars(node ast.Node, isList bool) (string, error) {
	const expected = "expected a text, number, true or false"
	if text, ok := scalar(node); ok {
		if strings.ContainsAny(text, "\r\n") {
			return "", errors.New("the text goes over several lines")
		}
		return text, nil
	}
	list, ok := node.(*ast.SequenceNode)
	switch {
	case !isList:
		return "", fmt.Errorf("%s, and found %s", expected, shape(node))
	case !ok:
		return "", fmt.Errorf("%s, or a list of them, and found %s", expected, shape(node))
	}
	var texts []string
	for _, item := range list.Values {
		text, ok := scalar(item)
		if !ok {
			return "", fmt.Errorf("line %d: %s in the list, and found %s", line(item), expected, shape(item))
		}
		if strings.ContainsAny(text, ",\r\n") {
			return "", fmt.Errorf("line %d: an entry of the list holds a comma or goes over several lines: give each its own entry", line(item))
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ","), nil
}

// Value gives what the file sets name to.
func (s *Settings) Value(name string) (string, bool) {
	v, ok := s.values[name]
	return v.value, ok
}

// Has tells whether the file sets name, and in which line.
func (s *Settings) Has(name string) (line int, ok bool) {
	v, ok := s.values[name]
	return v.line, ok
}
