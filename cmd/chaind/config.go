package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/chaind/chaind/verifier"
)

type configCmd struct {
	settings
	JSON bool `help:"Print JSON."`
}

func (c *configCmd) Help() string {
	return `Takes the flags of serve, and prints what serve would use, with the origin of each value: flag, environment, file or default.
Secrets are masked. A configuration that serve would refuse is refused here too (exit 64).

Examples:
  chaind config --config configs/chaind.yaml
  CHAIND_HTTP_LISTEN=off chaind config`
}

// secretSettings are masked, and so are passwords inside URLs.
var secretSettings = []string{"nats-password"}

type configValue struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

func (c *configCmd) Run(a *app) error {
	config, err := c.daemonConfig(a)
	if err != nil {
		return err
	}
	if err := config.Validate(); err != nil {
		return usageError("%w", err)
	}
	var values []configValue
	for _, flag := range a.parsed.Flags() {
		if isSetting(flag) {
			values = append(values, configValue{flag.Name, a.shown(flag), a.origin(flag)})
		}
	}
	values = append(values, environmentOnly()...)
	if c.JSON {
		return a.printJSON(values)
	}
	for _, v := range values {
		if err := a.printf("%-36s %-28s %s\n", v.Name, verifier.Escape(v.Value), v.Origin); err != nil {
			return err
		}
	}
	return nil
}

// environmentOnly are the reference's variables that have no flag here.
func environmentOnly() []configValue {
	var values []configValue
	for _, name := range []string{envSigningKey, envTrustedKeys, envIntake} {
		if value, set := os.LookupEnv(name); set {
			if name == envSigningKey {
				value = "********"
			}
			values = append(values, configValue{name, value, "environment"})
		}
	}
	return values
}

func (a *app) shown(flag *kong.Flag) string {
	value := fmt.Sprint(a.parsed.FlagValue(flag))
	if slices.Contains(secretSettings, flag.Name) && value != "" {
		return "********"
	}
	if list, ok := a.parsed.FlagValue(flag).([]string); ok {
		value = strings.Join(list, ",")
	}
	if scheme, rest, ok := strings.Cut(value, "://"); ok {
		if _, host, ok := strings.Cut(rest, "@"); ok {
			return scheme + "://********@" + host
		}
	}
	return value
}

// origin finds where a setting's value comes from, in order of precedence.
func (a *app) origin(flag *kong.Flag) string {
	for _, p := range a.parsed.Path {
		if p.Flag == flag && !p.Resolved {
			return "flag"
		}
	}
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return "environment " + name
		}
	}
	if line, ok := a.file.Has(flag.Name); ok {
		return fmt.Sprintf("file %s line %d", a.file.Path, line)
	}
	return "default"
}
