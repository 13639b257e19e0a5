package main

import "runtime/debug"

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
	return a.printf("chaind %s (%s)\n", v.Version, v.Go)
}

type versionResult struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
}

// versionInfo prefers the linker's word, then the module's, then says "dev".
func versionInfo() versionResult {
	v := versionResult{Version: version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Go = info.GoVersion
	if v.Version == "" {
		v.Version = info.Main.Version
	}
	if v.Version == "" || v.Version == "(devel)" {
		v.Version = "dev"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}
