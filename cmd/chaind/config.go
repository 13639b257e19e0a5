package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/chaind/chaind/internal/daemon"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/keys/openssh"
	"github.com/chaind/chaind/verifier"
)

type configCmd struct {
	settings
	JSON bool `help:"Print JSON."`
}

func (c *configCmd) Help() string {
	return `Takes the flags of serve, and prints what serve would use, with the origin of each value: flag, environment, file or default.
Secrets are masked. A configuration that serve would refuse is refused here too (exit 64; 1 where a file that it names is at fault). Of a relative
path the start is the directory in which the program is started, wherever the configuration file lies.

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
	var ask openssh.Passphrase
	if a.askPassphrase() != nil {
		ask = daemon.WouldAsk()
	}
	config, err := c.configuration(a, ask)
	if err != nil {
		return err
	}
	if err := config.CheckFiles(a.ctx); err != nil {
		return cannot(err, serveHint(err))
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
			switch name {
			case envSigningKey:
				value = "********"
			case envTrustedKeys:
				value = keyIDs([]string{value})
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
	switch v := a.parsed.FlagValue(flag).(type) {
	case []string:
		if value = strings.Join(v, ","); flag.Name == "trusted-pubkey" {
			value = keyIDs(v)
		}
	case *int: // a number that need not be there
		if value = ""; v != nil {
			value = strconv.Itoa(*v)
		}
	}
	if flag.Name == "nats-url" {
		return withoutLogins(value)
	}
	return value
}

// withoutLogins masks who logs in, and how, in each of the addresses.
func withoutLogins(addresses string) string {
	parts := strings.Split(addresses, ",")
	for i, address := range parts {
		scheme := ""
		if at := strings.Index(address, "://"); at >= 0 {
			scheme, address = address[:at+3], address[at+3:]
		}
		if at := strings.LastIndex(address, "@"); at >= 0 {
			parts[i] = scheme + "********" + address[at:]
		}
	}
	return strings.Join(parts, ",")
}

// keyIDs names keys by their ids: a seed that was pasted in place of a public key
// looks like one.
func keyIDs(texts []string) string {
	entries, err := keys.ParseFlags(texts)
	if err != nil || len(entries) == 0 {
		return ""
	}
	ids := make([]string, len(entries))
	for i, entry := range entries {
		ids[i] = entry.PublicKey.ID()
	}
	return strings.Join(ids, ",")
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

// misconfigured tells where the settings come from that a start is refused for.
func (a *app) misconfigured(err error) error {
	var places []string
	for _, name := range refusedSettings(err) {
		for _, flag := range a.parsed.Flags() {
			if origin := a.origin(flag); flag.Name == name && origin != "default" {
				places = append(places, name+" from "+origin)
			}
		}
	}
	if len(places) == 0 {
		return usageError("%w", err)
	}
	return usageError("%w (%s)", err, strings.Join(places, ", "))
}

// refusedSettings collects the settings of all errors that are joined in one.
func refusedSettings(err error) []string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var names []string
		for _, e := range joined.Unwrap() {
			names = append(names, refusedSettings(e)...)
		}
		return names
	}
	var s *daemon.SettingError
	if errors.As(err, &s) {
		return s.Settings
	}
	return nil
}

// relevel takes the log level anew from the configuration file, unless a flag
// or the environment gave it.
func (a *app) relevel() error {
	i := slices.IndexFunc(a.parsed.Flags(), func(f *kong.Flag) bool { return f.Name == "log-level" })
	origin := a.origin(a.parsed.Flags()[i])
	if a.file.Path == "" || origin == "flag" || strings.HasPrefix(origin, "environment") {
		return nil
	}
	file, err := daemon.ReadSettings(a.file.Path, settingNames(a.parsed.Flags()))
	if err != nil {
		return err
	}
	name, given := file.Value("log-level")
	if !given {
		name = a.parsed.Flags()[i].Default
	}
	level, known := logLevels[name]
	if !known {
		line, _ := file.Has("log-level")
		return fmt.Errorf("configuration %s: line %d: log-level is none of debug, info, warn, error", file.Path, line)
	}
	a.logLevel.Set(level)
	return nil
}
