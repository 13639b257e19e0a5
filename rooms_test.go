package chaind

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/chaind/chaind/"

// rooms is the table of rooms: what each may import besides the standard
// library. An entry ending in "/..." stands for the whole tree. Test files are
// free. Data flows one way, so no room may import one that comes after it.
var rooms = map[string][]string{
	"":                  {},
	"segments":          {jcs, jsontext},
	"events":            {"segments", "keys", jsontext},
	"bundle":            {jsontext},
	"engine":            {"bundle", jsontext},
	"engine/run":        {"bundle", "engine/...", "segments", "keys", jsontext},
	"keys":              {},
	"keys/openssh":      {"keys", "golang.org/x/crypto/ssh/..."},
	"verifier":          {"segments", "bundle", "engine/...", "keys", jsontext},
	"store":             {"segments", "events", "go.etcd.io/bbolt/...", "github.com/cespare/xxhash/v2"},
	"emitter":           {"segments", "events", "github.com/nats-io/nats.go/...", jsontext},
	"sidecar":           {"segments", "internal/durable"},
	"sidecar/natsobj":   {"sidecar", "github.com/nats-io/nats.go/...", jsontext}, // the one back end that needs a connection: sidecar itself stays free of it
	"sidecar/blobstest": {"sidecar"},                                             // the contract of sidecar.Blobs as tests, for every back end
	"sealer":            {"segments", "events", "bundle", "engine", "engine/run", "keys", "store", "sidecar"},
	"server":            {"store", "sidecar", "verifier", "keys", "web", "segments", "events", "github.com/prometheus/client_golang/..."},
	"web":               {},
	"export":            {"verifier", "keys", jsontext},
	"web/wasm":          {"verifier", "keys", "export", "segments", "engine/..."}, // compiled for the browser only; the verifications of a page share the domains
	"web/generate":      {},
	"web/sha256":        {},         // takes the place of a file of Go's, which may import nothing of ours
	"docs/reseal":       {"bundle"}, // a program that seals an altered bundle again, for docs/flip-a-byte.md
	"internal/durable":  {},
	"internal/disktest": {}, // disks that run full, fail or forget, for the tests of several rooms
	"internal/daemon":   {"*"},
	"internal/torture":  {"*"}, // a program that breaks a daemon from outside, and reads what it left
	"bench":             {"*"}, // a program that measures the whole way
	"cmd/chaind":        {"internal/daemon", "export", "web", "emitter", "events", "verifier", "bundle", "engine/...", "sealer", "store", "sidecar", "keys/...", "segments", "github.com/alecthomas/kong", "golang.org/x/term", jsontext},
}

const (
	jcs      = "github.com/gowebpki/jcs"
	jsontext = "github.com/go-json-experiment/json/..."
)

// offline are the rooms an auditor relies on: nothing they reach, however
// indirectly, may be able to open a connection or a database.
var offline = []string{"segments", "events", "bundle", "engine", "engine/domains", "engine/run", "engine/business", "engine/devex", "engine/action", "keys", "verifier", "export"}

// forbidden in the offline rooms' whole dependency graph.
var forbidden = []string{"net", "net/http", "golang.org/x/crypto/ssh", "go.etcd.io/bbolt", "github.com/nats-io/nats.go", "os/exec"}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// list gives the packages of the module, and what is compiled for the browser
// alone as it is compiled there.
func list(t *testing.T) map[string]listed {
	t.Helper()
	packages := map[string]listed{}
	add(t, packages, "./...")
	add(t, packages, "./web/wasm", "GOOS=js", "GOARCH=wasm")
	return packages
}

func add(t *testing.T, packages map[string]listed, pattern string, env ...string) {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps=false", "-json=ImportPath,Imports,Deps", pattern)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p listed
		if err := dec.Decode(&p); err != nil {
			t.Fatalf("decode go list output: %v", err)
		}
		packages[strings.TrimPrefix(p.ImportPath+"/", module)] = p
	}
}

func TestRoomsImportOnlyWhatTheTableAllows(t *testing.T) {
	seen := 0
	for room, p := range list(t) {
		room = strings.TrimSuffix(room, "/")
		if p.ImportPath+"/" == module {
			room = ""
		}
		allowed, ok := lookUp(room)
		if !ok {
			t.Errorf("room %q is not in the table: add it with one line and a reason", room)
			continue
		}
		seen++
		for _, imp := range p.Imports {
			if !isStd(imp) && !permits(allowed, imp) {
				t.Errorf("room %q imports %s, which the table does not allow", room, imp)
			}
		}
	}
	if seen == 0 {
		t.Fatal("no rooms were listed")
	}
}

func TestOfflineRoomsReachNoNetwork(t *testing.T) {
	packages := list(t)
	for _, room := range offline {
		p, ok := packages[room+"/"]
		if !ok {
			t.Errorf("offline room %q does not exist", room)
			continue
		}
		for _, dep := range p.Deps {
			if slices.Contains(forbidden, dep) {
				t.Errorf("offline room %q reaches %s", room, dep)
			}
		}
	}
}

// lookUp finds the table's line for a room; engine's domains share one line.
func lookUp(room string) ([]string, bool) {
	if allowed, ok := rooms[room]; ok {
		return allowed, true
	}
	if strings.HasPrefix(room, "engine/") {
		return []string{"bundle", "engine/...", "segments", jsontext}, true
	}
	return nil, false
}

func isStd(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}

func permits(allowed []string, imp string) bool {
	return slices.ContainsFunc(allowed, func(a string) bool {
		switch {
		case a == "*":
			return true
		case strings.HasSuffix(a, "/..."):
			tree := strings.TrimSuffix(a, "/...")
			return within(imp, tree) || within(imp, path.Join(module, tree))
		default:
			return imp == a || imp == module+a
		}
	})
}

func within(imp, tree string) bool {
	return imp == tree || strings.HasPrefix(imp, tree+"/")
}
