package main

import (
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// demanding are the flags that ask for a check, a signature or a closed door. An
// empty value of theirs, from an unset variable in somebody's script say, would
// quietly ask for nothing, and what was not checked would look as if it had
// passed, or what was not written as if it lay there. Leaving the flag out is how to ask for nothing.
var demanding = []string{
	"trusted-pubkey", "trust-file", "expect-head", "expect-plan", "expect-outcome", "artifact",
	"signing-key", "signing-key-passphrase", "signing-agent", "http-tokens", "http-cert", "http-key", "http-hosts",
	"nats-ca", "nats-creds", "nats-cert", "nats-key", "artifacts", "artifacts-dir", "out", "output", "file",
}

// checkDemands refuses empty values of demanding flags, wherever they are from.
func (a *app) checkDemands(ctx *kong.Context) error {
	for _, flag := range ctx.Flags() {
		if !slices.Contains(demanding, flag.Name) || !isEmpty(ctx.FlagValue(flag)) {
			continue
		}
		if from := a.given(ctx, flag); from != "" {
			return usageError("--%s is empty (from %s): give it a value, or leave it out", flag.Name, from)
		}
	}
	return nil
}

// decodePath makes a path absolute, as the parser's own decoder does, but leaves an
// empty one, which that would make the working directory, as it is.
func decodePath(ctx *kong.DecodeContext, target reflect.Value) error {
	var path string
	if err := ctx.Scan.PopValueInto("file", &path); err != nil {
		return err
	}
	if path != "-" && strings.TrimSpace(path) != "" {
		path = kong.ExpandPath(path)
	}
	target.SetString(path)
	return nil
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.TrimSpace(v) == ""
	case []string:
		return strings.TrimSpace(strings.Join(v, "")) == ""
	}
	return false
}

// given tells where a flag has a value from, even an empty one; "": nowhere.
func (a *app) given(ctx *kong.Context, flag *kong.Flag) string {
	for _, p := range ctx.Path {
		if p.Flag == flag && !p.Resolved {
			return "the command line"
		}
	}
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return "environment " + name
		}
	}
	if _, ok := a.file.Has(flag.Name); ok && isSetting(flag) {
		return "configuration " + a.file.Path
	}
	return ""
}
