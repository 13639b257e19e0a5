package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits of the YAML files that people write. The parser's memory grows with the
// square of the depth, of the keys of one mapping and of the length of keys, and
// each mark of the syntax costs some 400 bytes before it is parsed; so all of
// these are counted before it sees the text.
const (
	maxSettingsBytes = 64 << 10 // configuration file
	maxListBytes     = 2 << 20  // trust file and token file
	maxYAMLMarks     = 128 << 10
	maxYAMLDepth     = 12
	maxYAMLKeys      = 256
	maxYAMLKeyBytes  = 128
)

// yamlMarks are the bytes that may begin a token of their own.
const yamlMarks = "[]{},:-?&*!|>'\"#%@`\n\r"

var errDocuments = errors.New("more than one document")

// parseYAML gives the root of a file's one document; nil: it holds nothing. Only
// mappings, lists and plain scalars are taken: no anchors, aliases, tags,
// directives or explicit keys. Errors name the line and repeat nothing of the
// text, which may hold a secret.
func parseYAML(text []byte) (root ast.Node, err error) {
	if n := marks(text); n > maxYAMLMarks {
		return nil, fmt.Errorf("%d marks of YAML's syntax are more than %d", n, maxYAMLMarks)
	}
	tokens := lexer.Tokenize(string(text))
	if err := (&yamlGuard{}).check(tokens); err != nil {
		return nil, err
	}
	// A fault of the parser must not end a daemon that reloads a broken file.
	defer func() {
		if recover() != nil {
			root, err = nil, errors.New("not YAML")
		}
	}()
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, misspelt(err)
	}
	if len(file.Docs) > 1 {
		return nil, errDocuments
	}
	if len(file.Docs) == 0 {
		return nil, nil
	}
	if _, comment := file.Docs[0].Body.(*ast.CommentGroupNode); comment {
		return nil, nil
	}
	return file.Docs[0].Body, nil
}

func marks(text []byte) (n int) {
	for _, b := range text {
		if strings.IndexByte(yamlMarks, b) >= 0 {
			n++
		}
	}
	return n
}

// misspelt says where the text is no YAML. The parser's messages are fixed
// sentences, except for those that quote.
func misspelt(err error) error {
	var syntax *yaml.SyntaxError
	if !errors.As(err, &syntax) || syntax.Token == nil {
		return errors.New("not YAML")
	}
	if strings.Contains(syntax.Message, `"`) {
		return fmt.Errorf("line %d: not YAML", syntax.Token.Position.Line)
	}
	return fmt.Errorf("line %d: not YAML: %s", syntax.Token.Position.Line, syntax.Message)
}

// yamlGuard follows how deep tokens nest, and how many keys one mapping has.
type yamlGuard struct {
	open  []yamlLevel
	begun bool // the document
	ended bool
}

// yamlLevel is a mapping or list that is open.
type yamlLevel struct {
	column int // of its keys or dashes; 0: it is in brackets
	keys   int
}

func (g *yamlGuard) check(tokens token.Tokens) error {
	for _, t := range tokens {
		if err := g.take(t); err != nil {
			return fmt.Errorf("line %d: %w", t.Position.Line, err)
		}
	}
	return nil
}

func (g *yamlGuard) take(t *token.Token) error {
	switch t.Type {
	case token.CommentType:
		return nil
	case token.DocumentEndType:
		g.ended = true
		return nil
	}
	if g.ended || t.Type == token.DocumentHeaderType && g.begun {
		return errDocuments
	}
	g.begun = true
	switch t.Type {
	case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.MappingKeyType, token.DirectiveType:
		return errors.New("anchors (&), aliases (*, <<), tags (!), explicit keys (?) and directives (%) are not used here: expected a text, number, true or false; quote a text that begins so")
	case token.SequenceStartType, token.MappingStartType:
		return g.push(0)
	case token.SequenceEndType, token.MappingEndType:
		return g.pop()
	case token.SequenceEntryType:
		return g.level(t.Position.Column)
	case token.MappingValueType:
		return g.key(t)
	}
	return nil
}

func (g *yamlGuard) push(column int) error {
	if len(g.open) == maxYAMLDepth {
		return fmt.Errorf("more than %d levels", maxYAMLDepth)
	}
	g.open = append(g.open, yamlLevel{column: column})
	return nil
}

func (g *yamlGuard) pop() error {
	if !g.bracketed() {
		return errors.New("not YAML: a bracket closes what is not open")
	}
	g.open = g.open[:len(g.open)-1]
	return nil
}

func (g *yamlGuard) bracketed() bool {
	return len(g.open) > 0 && g.open[len(g.open)-1].column == 0
}

// level goes to the mapping or list whose keys or dashes stand at the column.
func (g *yamlGuard) level(column int) error {
	if g.bracketed() {
		return nil // the parser refuses dashes there
	}
	for len(g.open) > 0 && g.open[len(g.open)-1].column > column {
		g.open = g.open[:len(g.open)-1]
	}
	if len(g.open) > 0 && g.open[len(g.open)-1].column == column {
		return nil
	}
	return g.push(column)
}

func (g *yamlGuard) key(colon *token.Token) error {
	key := colon.Prev
	if key == nil {
		return errors.New("not YAML: a colon without a key")
	}
	if len(key.Value) > maxYAMLKeyBytes {
		return fmt.Errorf("a key of more than %d bytes", maxYAMLKeyBytes)
	}
	if err := g.level(key.Position.Column); err != nil {
		return err
	}
	if len(g.open) == 0 {
		return nil
	}
	top := &g.open[len(g.open)-1]
	if top.keys++; top.keys > maxYAMLKeys {
		return fmt.Errorf("more than %d keys in one mapping", maxYAMLKeys)
	}
	return nil
}

// members gives a mapping's members; false: the node is no mapping.
func members(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// scalar gives the text of a scalar.
func scalar(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// shape names what a node is, for people.
func shape(node ast.Node) string {
	switch node.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	}
	return "something else"
}

func line(n ast.Node) int { return n.GetToken().Position.Line }

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
