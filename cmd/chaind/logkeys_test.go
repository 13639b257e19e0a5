package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// firstKey says where the key-value pairs of a call to a logger begin.
var firstKey = map[string]int{"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "With": 0, "Log": 3}

// loggedKeys finds the keys of all log lines in the daemon's packages.
func loggedKeys(t *testing.T) map[string]bool {
	t.Helper()
	keys := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "testdata" || name == "bench" || name == "torture" || strings.HasPrefix(name, ".") && name != "..") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			pairs := pairsOf(n)
			for i := 0; i < len(pairs); i += 2 {
				literal, ok := pairs[i].(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					t.Errorf("%s: a key of a log line is no literal", path)
					return true
				}
				key, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				keys[key] = true
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// pairsOf are the keys and values in a call of a logger, or in what builds the
// variable attrs for one.
func pairsOf(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "append" && isAttrs(n.Args[0]) {
			return n.Args[1:]
		}
		if onLogger(n) && !n.Ellipsis.IsValid() {
			return n.Args[firstKey[n.Fun.(*ast.SelectorExpr).Sel.Name]:]
		}
	case *ast.AssignStmt:
		if list, ok := n.Rhs[0].(*ast.CompositeLit); ok && isAttrs(n.Lhs[0]) {
			return list.Elts
		}
	}
	return nil
}

func isAttrs(x ast.Expr) bool {
	name, ok := x.(*ast.Ident)
	return ok && name.Name == "attrs"
}

// onLogger tells calls of loggers by the name of what they are called on.
func onLogger(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	if _, ok := firstKey[selector.Sel.Name]; !ok {
		return false
	}
	switch x := selector.X.(type) {
	case *ast.Ident:
		return regexp.MustCompile(`^(?i)log(ger)?$`).MatchString(x.Name)
	case *ast.SelectorExpr:
		return regexp.MustCompile(`^(?i)log(ger)?$`).MatchString(x.Sel.Name)
	}
	return false
}

// TestReferenceOfLogKeys holds docs/reference/logs.md to the source, both ways.
func TestReferenceOfLogKeys(t *testing.T) {
	t.Parallel()
	told := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(readHouse(t, "docs/reference/logs.md"), -1) {
		told[m[1]] = true
	}
	logged := loggedKeys(t)
	for _, key := range slices.Sorted(maps.Keys(logged)) {
		if !told[key] {
			t.Errorf("key %q is logged and not in docs/reference/logs.md", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(told)) {
		if !logged[key] {
			t.Errorf("key %q is in docs/reference/logs.md and nobody logs it", key)
		}
	}
	if len(logged) < 25 {
		t.Errorf("only %d keys", len(logged))
	}
}
