package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chaind/chaind/events"
)

const root = "../.."

// rows reads the tables of a document whose third column holds a name in
// backquotes.
func rows(t *testing.T, doc string) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, doc))
	if err != nil {
		t.Fatal(err)
	}
	var found [][]string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 3 || strings.HasPrefix(strings.TrimSpace(cells[0]), "---") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		found = append(found, cells)
	}
	return found
}

// dirOf is the directory of a package by its name.
func dirOf(pkg string) string {
	if pkg == "daemon" || pkg == "durable" || pkg == "torture" {
		return filepath.Join(root, "internal", pkg)
	}
	if pkg == "run" {
		return filepath.Join(root, "engine", pkg)
	}
	if pkg == "main" {
		return filepath.Join(root, "cmd/chaind")
	}
	return filepath.Join(root, pkg)
}

var units = map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
	"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}

// TestLimitsAreAsDocumented holds docs/limits.md to the constants.
func TestLimitsAreAsDocumented(t *testing.T) {
	checked := 0
	for _, row := range rows(t, "docs/limits.md") {
		name := strings.Trim(row[2], "`")
		if !strings.Contains(name, ".") {
			continue
		}
		var n int64
		var unit string
		if _, err := fmt.Sscan(row[1], &n, &unit); err != nil && unit != "" {
			t.Errorf("%s: %q is no limit", name, row[1])
			continue
		}
		factor, known := units[unit]
		if !known {
			t.Errorf("%s: unknown unit %q", name, unit)
			continue
		}
		if got := constantOf(t, name); got != fmt.Sprint(n*factor) {
			t.Errorf("%s is %s, and the table says %s", name, got, row[1])
		}
		checked++
	}
	if checked < 50 {
		t.Errorf("only %d limits were found", checked)
	}
}

// TestEveryLimitIsDocumented: what bounds something in the limits.go of a room has
// a row.
func TestEveryLimitIsDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, row := range rows(t, "docs/limits.md") {
		documented[strings.Trim(row[2], "`")] = true
	}
	files, err := filepath.Glob(filepath.Join(root, "*/limits.go"))
	nested, errNested := filepath.Glob(filepath.Join(root, "*/*/limits.go"))
	if err != nil || errNested != nil || len(files)+len(nested) < 7 {
		t.Fatalf("%d files, %v, %v", len(files)+len(nested), err, errNested)
	}
	found := 0
	for _, file := range append(files, nested...) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range bounds(parsed) {
			found++
			if !documented[parsed.Name.Name+"."+name] {
				t.Errorf("docs/limits.md has no row for %s.%s", parsed.Name.Name, name)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d limits were found", found)
	}
}

// bounds are the constants of a file whose names say that they are limits.
func bounds(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, s := range group.Specs {
			for _, name := range s.(*ast.ValueSpec).Names {
				if strings.HasPrefix(strings.ToLower(name.Name), "max") {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// constantOf evaluates a constant of the source; durations are milliseconds.
func constantOf(t *testing.T, name string) string {
	t.Helper()
	switch name {
	case "events.DefaultLimits.MaxBytes":
		return fmt.Sprint(events.DefaultLimits.MaxBytes)
	case "events.DefaultLimits.MaxDepth":
		return fmt.Sprint(events.DefaultLimits.MaxDepth)
	case "events.DefaultLimits.MaxMembers":
		return fmt.Sprint(events.DefaultLimits.MaxMembers)
	}
	pkg, ident, _ := strings.Cut(name, ".")
	expr := declared(t, dirOf(pkg), ident)
	if other, name, ok := strings.Cut(expr, "."); ok && !strings.Contains(expr, "time.") {
		return constantOf(t, other+"."+name)
	}
	for unit, ms := range map[string]string{"time.Millisecond": "1", "time.Second": "1000", "time.Minute": "60000", "time.Hour": "3600000"} {
		expr = strings.ReplaceAll(expr, unit, ms)
	}
	v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expr)
	if err != nil || v.Value == nil || v.Value.Kind() != constant.Int {
		return fmt.Sprintf("%q (%v)", expr, err)
	}
	return v.Value.ExactString()
}

// declared is the text of a constant's value.
func declared(t *testing.T, dir, ident string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if value := valueIn(d, ident); value != nil {
				var text strings.Builder
				if err := printer.Fprint(&text, fset, value); err != nil {
					t.Fatal(err)
				}
				return text.String()
			}
		}
	}
	return "not declared"
}

func valueIn(d ast.Decl, ident string) ast.Expr {
	group, ok := d.(*ast.GenDecl)
	if !ok || group.Tok != token.CONST {
		return nil
	}
	for _, s := range group.Specs {
		spec := s.(*ast.ValueSpec)
		for i, name := range spec.Names {
			if name.Name == ident && i < len(spec.Values) {
				return spec.Values[i]
			}
		}
	}
	return nil
}

// TestGuaranteesNameTheirTests: every test that docs/guarantees.md names exists,
// and every known failure case of these kinds has one.
func TestGuaranteesNameTheirTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z/]+)\\.(Test\\w+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 60 {
		t.Errorf("only %d tests are named", len(named))
	}
	sources := map[string]string{}
	for _, m := range named {
		if sources[m[1]] == "" {
			sources[m[1]] = testSources(t, dirOf(m[1]))
		}
		if !strings.Contains(sources[m[1]], "func "+m[2]+"(t ") {
			t.Errorf("%s.%s does not exist", m[1], m[2])
		}
	}
	rows := rows(t, "docs/guarantees.md")
	for _, kind := range []struct {
		letter string
		last   int
	}{{"N", 24}, {"B", 17}, {"F", 17}, {"H", 16}, {"C", 26}} {
		first := 2
		if kind.letter == "B" || kind.letter == "F" {
			first = 1
		}
		for n := first; n <= kind.last; n += 2 {
			caseHasItsTest(t, rows, fmt.Sprintf("%s%02d", kind.letter, n))
		}
	}
}

// caseHasItsTest: the case has a line, and of the tests in it one at least has
// the case in its name, or in that of a subtest.
func caseHasItsTest(t *testing.T, rows [][]string, id string) {
	t.Helper()
	for _, row := range rows {
		if row[0] != id {
			continue
		}
		for _, m := range regexp.MustCompile("`([a-z/]+)\\.(Test\\w+)`").FindAllStringSubmatch(row[2], -1) {
			if strings.Contains(m[2], id) || regexp.MustCompile(`t\.Run\("[^"]*`+id).MatchString(testSources(t, dirOf(m[1]))) {
				return
			}
		}
		t.Errorf("docs/guarantees.md: no test of line %s has the case in its name", id)
		return
	}
	t.Errorf("docs/guarantees.md has no line %s", id)
}

func testSources(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", dir, err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
