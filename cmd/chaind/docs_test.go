package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages are the Markdown files of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	found := []string{"README.md"}
	err := fs.WalkDir(os.DirFS(root), "docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "node_modules" {
			return fs.SkipDir
		}
		if err == nil && strings.HasSuffix(path, ".md") {
			found = append(found, path)
		}
		return err
	})
	if err != nil || len(found) < 15 {
		t.Fatalf("%d pages, %v", len(found), err)
	}
	return found
}

// anchors are the headings of a page as links name them.
func anchors(text string) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^#{1,6} (.+)$`).FindAllStringSubmatch(text, -1) {
		name := strings.ToLower(regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(m[1], ""))
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// TestLinksLeadSomewhere follows every relative link of every page, to the
// heading.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	links := 0
	for _, page := range pages(t) {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(readHouse(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			path, heading, _ := strings.Cut(m[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
				continue
			}
			if heading != "" && !slices.Contains(anchors(readHouse(t, target)), heading) {
				t.Errorf("%s links to %s: no such heading", page, m[1])
			}
		}
	}
	if links < 60 {
		t.Errorf("only %d links", links)
	}
}

// TestEveryPageIsInTheIndex starts at README.md and docs/README.md.
func TestEveryPageIsInTheIndex(t *testing.T) {
	t.Parallel()
	index := readHouse(t, "docs/README.md")
	for _, page := range pages(t) {
		name := strings.TrimPrefix(page, "docs/")
		if page != "README.md" && name != "README.md" && !strings.Contains(index, "("+name+")") {
			t.Errorf("docs/README.md does not name %s", name)
		}
	}
}

// TestReadmeIsTwoScreens keeps the first page short.
func TestReadmeIsTwoScreens(t *testing.T) {
	t.Parallel()
	if n := strings.Count(readHouse(t, "README.md"), "\n"); n > 80 {
		t.Errorf("README.md has %d lines", n)
	}
}
