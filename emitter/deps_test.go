package emitter

import (
	"os/exec"
	"strings"
	"testing"
)

// A runtime links this package: it must bring neither the database nor the server.
func TestLinksNeitherDatabaseNorServer(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 10 {
		t.Fatalf("only %d dependencies listed", len(deps))
	}
	for _, dep := range deps {
		for _, banned := range []string{"go.etcd.io/bbolt", "nats-server", "chaind/chaind/store", "golang.org/x/crypto/ssh"} {
			if strings.Contains(dep, banned) {
				t.Errorf("links %s", dep)
			}
		}
	}
}
