package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"testing"

	"github.com/chaind/chaind/engine/naive"
)

// manyOrders is a bundle in which one customer of the question has n orders
// more than the answer knows of: each is packaged, added up and cited twice.
func manyOrders(t *testing.T, n int) []byte {
	doc := naive.MustParse(readHouse(t, "testdata/tessera/honest.tsb"))
	graph := naive.At(doc, "evidence_closure", "graph").(map[string]any)
	nodes, edges := graph["nodes"].([]any), graph["edges"].([]any)
	customer := ""
	for _, e := range edges {
		if naive.At(e, "src") == "I_SalesDocument:0000500050" && naive.At(e, "relation") == "sold_to" {
			customer = naive.At(e, "dst").(string)
		}
	}
	origin := naive.At(nodes[0], "record", "origin")
	for i := range n {
		id := fmt.Sprintf("order:%d", i)
		nodes = append(nodes, map[string]any{"kind": "I_SalesDocument", "name": nil, "attributes": []any{[]any{"net_amount", "1.00"}, []any{"currency", "EUR"}},
			"record": map[string]any{"id": id, "text": "Sales document " + id, "origin": origin}})
		edges = append(edges, map[string]any{"src": id, "dst": customer, "relation": "sold_to"})
	}
	graph["nodes"], graph["edges"] = nodes, edges
	naive.Seal(doc)
	return []byte(naive.File(doc))
}

// TestMemoryOfAHostileBundle: a file that makes the answer much larger than what
// it records does not make the process larger than 32 MiB and six times the file.
func TestMemoryOfAHostileBundle(t *testing.T) {
	n := 30_000
	if testing.Short() {
		n = 5_000
	}
	text := manyOrders(t, n)
	file := filepath.Join(t.TempDir(), "orders.tsb")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"verify", "explain"} {
		out, err := exec.Command("chaind-peak", command, file).Output()
		var exit int
		var used int64
		if n, _ := fmt.Sscanf(string(out), "exit %d, %d kB", &exit, &used); n != 2 {
			t.Skipf("this system does not tell the peak of memory: %v, %s", err, out)
		}
		used <<= 10
		limit := int64(32<<20+6*len(text)) + 16<<20 // what the program of these tests has more of than chaind
		t.Logf("%s: %d MB of %d MB, file %d MB", command, used/1e6, limit/1e6, len(text)/1e6)
		if exit != 2 || used > limit && !underRace {
			t.Errorf("%s: exit %d, %d bytes, limit %d", command, exit, used, limit)
		}
	}
}

// peakCommand runs chaind without its output and prints the exit code and the
// most memory that was ever resident, which is told on Linux only.
func peakCommand() {
	code := run(context.Background(), os.Args[1:], os.Stdin, io.Discard, io.Discard)
	status, err := os.ReadFile("/proc/self/status")
	if peak := regexp.MustCompile(`VmHWM:\s*(\d+ kB)`).FindSubmatch(status); err == nil && peak != nil {
		fmt.Printf("exit %d, %s\n", code, peak[1])
	}
}

// TestBoundMemory: the limit follows the file, whose size matters when it is a trust
// bundle, and is put back; a lower one stays.
func TestBoundMemory(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(10 << 20); err != nil {
		t.Fatal(err)
	}
	old := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(old)
	write := func(text string) {
		if _, err := file.WriteAt([]byte(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		text           string
		before, during int64
	}{
		{`{"format":`, math.MaxInt64, memoryBase + memoryPerByte*(10<<20)},
		{`{"format":`, 32 << 20, 32 << 20},
		{`{"scope":1`, math.MaxInt64, memoryEvidence},
		{`{"scope":1`, 8 << 20, 8 << 20},
	} {
		write(test.text)
		before, during := test.before, test.during
		debug.SetMemoryLimit(before)
		restore := boundMemory(file)
		if got := debug.SetMemoryLimit(-1); got != during {
			t.Errorf("limit %d, want %d", got, during)
		}
		restore()
		if got := debug.SetMemoryLimit(-1); got != before {
			t.Errorf("afterwards %d, before %d", got, before)
		}
	}
}
