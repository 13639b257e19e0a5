package main

import (
	"runtime/debug"
	"testing"
)

func TestVersionNamesTheCommit(t *testing.T) {
	t.Parallel()
	built := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: version}, Settings: settings}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "cd51d87"}
	for _, c := range []struct {
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		{"", built("(devel)"), "dev (go1.26)"},
		{"", built("v1.2.3", commit), "v1.2.3 commit cd51d87 (go1.26)"},
		{"v9", built("v1.2.3", commit), "v9 commit cd51d87 (go1.26)"},
		{"", built("", commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"}), "dev commit cd51d87 with changes (go1.26)"},
		{"", built("", commit, debug.BuildSetting{Key: "vcs.modified", Value: "false"}), "dev commit cd51d87 (go1.26)"},
	} {
		if got := versionOf(c.linked, c.info).String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
