package main

import (
	"cmp"
	"runtime/debug"
)

// version is set by release builds with -ldflags "-X main.version=…".
var version = ""

type versionCmd struct {
	JSON bool `help:"Print JSON."`
}

func (c *versionCmd) Run(a *app) error {
	v := versionInfo()
	if c.JSON {
		return a.printJSON(v)
	}
	return a.printf("chaind %s\n", v)
}

// String names the version, the commit that it was built of, and Go's version.
func (v versionResult) String() string {
	text := v.Version
	if v.Revision != "" {
		text += " commit " + v.Revision
		if v.Modified {
			text += " with changes"
		}
	}
	return text + " (" + v.Go + ")"
}

type versionResult struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the commit is not all that it was built of
	Go       string `json:"go"`
}

// versionInfo prefers the linker's word, then the module's, then says "dev".
func versionInfo() versionResult {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return versionResult{Version: cmp.Or(version, "dev")}
	}
	return versionOf(version, info)
}

func versionOf(linked string, info *debug.BuildInfo) versionResult {
	v := versionResult{Version: linked, Go: info.GoVersion}
	if v.Version == "" {
		v.Version = info.Main.Version
	}
	if v.Version == "" || v.Version == "(devel)" {
		v.Version = "dev"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
