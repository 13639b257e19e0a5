package main

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestBackupsHaveAPlaceTheDaemonMayWrite: the daemon writes the copy itself, from
// within the unit's and the container's read-only file system. So the places that
// docs/howto/restore.md backs up to must be open there.
func TestBackupsHaveAPlaceTheDaemonMayWrite(t *testing.T) {
	t.Parallel()
	const page = "docs/howto/restore.md"
	to := regexp.MustCompile(`chaind backup (/\S+)`)
	unit := unitLines(t, "configs/chaind.service")
	m := to.FindStringSubmatch(blocks(t, page, "Back up", "sh")[0])
	if m == nil || !slices.Contains(unit["Service.ReadWritePaths"], "-"+path.Dir(m[1])) {
		t.Errorf("%s backs up to %q, and the unit may write %q", page, m, unit["Service.ReadWritePaths"])
	}
	if install := "install -d -m 0700 -o chaind -g chaind " + path.Dir(m[1]); !strings.Contains(readHouse(t, "configs/chaind.service"), install) {
		t.Errorf("the unit's head does not say: %s", install)
	}
	m = to.FindStringSubmatch(blocks(t, page, "Back up", "text")[0])
	if m == nil {
		t.Fatalf("%s has no command for containers", page)
	}
	place := path.Dir(m[1])
	for _, file := range composeFiles {
		volumes := readCompose(t, file).Services["chaind"].Volumes
		if !slices.ContainsFunc(volumes, func(v string) bool { return strings.HasSuffix(v, ":"+place) }) {
			t.Errorf("%s: no volume at %s: %q", file, place, volumes)
		}
	}
	if image := readHouse(t, "Dockerfile"); !regexp.MustCompile(`(?m)^COPY .*--chown=65532:65532 \S+ ` + place + `$`).MatchString(image) {
		t.Errorf("the image's user does not own %s, nor a volume made there", place)
	}
}
