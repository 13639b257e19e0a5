package durable

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs as the writer that gets killed when the environment says so.
func TestMain(m *testing.M) {
	if root := os.Getenv("DURABLE_TEST_ROOT"); root != "" {
		os.Exit(writeAndDie(root))
	}
	goleak.VerifyTestMain(m)
}

// writeAndDie writes a file and kills its own process around the system call
// whose number the environment names.
func writeAndDie(root string) int {
	d, err := Open(root)
	if err != nil {
		return 1
	}
	at, _ := strconv.Atoi(os.Getenv("DURABLE_TEST_KILL"))
	count := 0
	die := func(when string) {
		if count == at && os.Getenv("DURABLE_TEST_WHEN") == when {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	d.around = func(_, _ string, do func() error) error {
		die("before")
		err := do()
		die("after")
		count++
		return err
	}
	write := d.Write
	switch os.Getenv("DURABLE_TEST_ONCE") {
	case "1":
		write = d.WriteOnce
	case "group":
		write = func(name string, body Body) error {
			return d.WriteGroup([]File{{Name: "first/f", Body: body, Once: true}}, []File{{Name: name, Body: body}}, nil)
		}
	}
	if err := write("a/b/f", Bytes([]byte("new content"))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestKill kills the writer before and after each system call. What is there
// afterwards is the old state or the new one, and the next start completes it.
func TestKill(t *testing.T) {
	t.Parallel()
	for _, once := range []string{"", "1", "group"} {
		for n, survived := 0, false; !survived; n++ {
			for _, when := range []string{"before", "after"} {
				survived = killAt(t, n, when, once)
			}
			if n > 20 {
				t.Fatal("the writer makes no end")
			}
			if survived && n < 8 {
				t.Errorf("once=%q: only %d calls were met", once, n)
			}
		}
	}
}

func killAt(t *testing.T, n int, when, once string) (survived bool) {
	root := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "DURABLE_TEST_ROOT="+root, "DURABLE_TEST_KILL="+strconv.Itoa(n),
		"DURABLE_TEST_WHEN="+when, "DURABLE_TEST_ONCE="+once)
	out, err := cmd.CombinedOutput()
	survived = err == nil
	if err != nil && !strings.Contains(err.Error(), "killed") {
		t.Fatalf("writer: %v: %s", err, out)
	}
	if got := content(t, root, "a/b/f"); got != "absent" && got != "new content" {
		t.Fatalf("killed %s call %d: content %q", when, n, got)
	}
	if once == "group" && content(t, root, "a/b/f") != "absent" && content(t, root, "first/f") != "new content" {
		t.Fatalf("killed %s call %d: the second file is there without the first", when, n)
	}
	d := open(t, root)
	if _, err := d.RemoveTemp(); err != nil {
		t.Fatal(err)
	}
	checkNoTemp(t, root)
	if err := d.WriteOnce("a/b/f", Bytes([]byte("new content"))); err != nil {
		t.Fatalf("killed %s call %d, next start: %v", when, n, err)
	}
	checkNoTemp(t, root)
	return survived
}
