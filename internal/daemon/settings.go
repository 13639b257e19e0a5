package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxSettingsBytes bounds the configuration file and the trust file.
const maxSettingsBytes = 1 << 20

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
	taken bool
}

// ReadSettings reads a configuration file strictly: a value that is neither a
// scalar nor a list of scalars, an alias, a second document or a key given
// twice is an error that names the line.
func ReadSettings(path string) (Settings, error) {
	text, err := readBounded(path, maxSettingsBytes)
	if err != nil {
		return Settings{}, fmt.Errorf("read configuration: %w", err)
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		// The rest of the message quotes the file, which may hold a password.
		first, _, _ := strings.Cut(err.Error(), "\n")
		return Settings{}, fmt.Errorf("parse configuration %s: %s", path, first)
	}
	s := Settings{Path: path, values: map[string]setting{}}
	if len(file.Docs) > 1 {
		return Settings{}, fmt.Errorf("parse configuration %s: more than one document", path)
	}
	for _, doc := range file.Docs {
		if err := s.collect("", doc.Body); err != nil {
			return Settings{}, fmt.Errorf("parse configuration %s: %w", path, err)
		}
	}
	return s, nil
}

// collect walks a mapping and files its leaves under their joined keys.
func (s *Settings) collect(name string, node ast.Node) error {
	switch n := node.(type) {
	case nil, *ast.CommentGroupNode:
		return nil
	case *ast.MappingNode:
		for _, member := range n.Values {
			if err := s.collect(join(name, member.Key.String()), member.Value); err != nil {
				return err
			}
		}
		return nil
	case *ast.MappingValueNode:
		return s.collect(join(name, n.Key.String()), n.Value)
	}
	value, err := scalars(node)
	if err != nil {
		return fmt.Errorf("line %d: %s: %w", line(node), name, err)
	}
	if earlier, twice := s.values[name]; twice {
		return fmt.Errorf("line %d: %s is already set in line %d", line(node), name, earlier.line)
	}
	s.values[name] = setting{value: value, line: line(node)}
	return nil
}

func join(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "-" + key
}

func line(n ast.Node) int { return n.GetToken().Position.Line }

// scalars gives the text of a scalar, or of a list of them joined with commas.
func scalars(node ast.Node) (string, error) {
	switch n := node.(type) {
	case *ast.SequenceNode:
		var list []string
		for _, item := range n.Values {
			text, err := scalars(item)
			if err != nil {
				return "", err
			}
			list = append(list, text)
		}
		return strings.Join(list, ","), nil
	case *ast.StringNode:
		return n.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, nil
	}
	return "", errors.New("expected a text, number, true or false, or a list of them")
}

// Take gives the value of a setting and marks it as used.
func (s *Settings) Take(name string) (string, bool) {
	v, ok := s.values[name]
	if ok {
		v.taken = true
		s.values[name] = v
	}
	return v.value, ok
}

// Has tells whether the file sets name, and in which line.
func (s *Settings) Has(name string) (line int, ok bool) {
	v, ok := s.values[name]
	return v.line, ok
}

// Taken tells whether the value of name was used.
func (s *Settings) Taken(name string) bool { return s.values[name].taken }

// Unused is an error that names every key which no setting took.
func (s *Settings) Unused() error {
	var unknown []string
	for name, v := range s.values {
		if !v.taken {
			unknown = append(unknown, fmt.Sprintf("line %d: unknown setting %s", v.line, name))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return fmt.Errorf("configuration %s: %s", s.Path, strings.Join(unknown, "; "))
}

// readBounded reads a file of at most limit bytes. What the system says of its
// size is not relied upon: a device has none and no end.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return text, nil
}

var errDocuments = errors.New("more than one document")

// decodeStrictly decodes the one document of a YAML text; an empty text leaves
// value as it is. A second document would be passed over, and with it whom it
// revokes: errDocuments.
func decodeStrictly(text []byte, value any) error {
	dec := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict())
	err := dec.Decode(value)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil && !errors.Is(dec.Decode(new(any)), io.EOF) {
		return errDocuments
	}
	return err
}
