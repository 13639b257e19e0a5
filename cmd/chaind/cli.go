package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/chaind/chaind/internal/daemon"
)

// cli is the whole command line. Flags of `serve` are also settings: of the
// environment and of the configuration file, under the flag's name.
type cli struct {
	Serve    serveCmd    `cmd:"" help:"Take events in, keep chains, seal evidence, serve it."`
	Demo     demoCmd     `cmd:"" help:"Show the whole way on this machine in a few seconds: publish, seal, serve, verify, tamper."`
	Publish  publishCmd  `cmd:"" help:"Publish events from a JSON Lines file, or only lint them."`
	Close    closeCmd    `cmd:"" help:"End a chain that its producer abandoned, by publishing a seal event."`
	Verify   verifyCmd   `cmd:"" help:"Check evidence files and trust bundles offline."`
	Export   exportCmd   `cmd:"" help:"Write evidence, reports and a verifier into one folder for an auditor."`
	Explain  explainCmd  `cmd:"" help:"Show what a trust bundle says, on what it rests, and what of it holds."`
	Bundle   bundleCmd   `cmd:"" help:"Make a trust bundle from an evidence file, or ask the evidence in one another question."`
	Chain    chainCmd    `cmd:"" help:"Answer a question from the claims of other trust bundles."`
	Sign     signCmd     `cmd:"" help:"Sign a trust bundle."`
	Token    tokenCmd    `cmd:"" help:"Make a bearer token for readers of the API."`
	Keygen   keygenCmd   `cmd:"" help:"Create an Ed25519 signing key."`
	Digest   digestCmd   `cmd:"" help:"Compute the digests of the evidence format, for runtimes in other languages."`
	Runs     runsCmd     `cmd:"" help:"List chains and runs."`
	Rejected rejectedCmd `cmd:"" help:"List rejected events."`
	Check    checkCmd    `cmd:"" help:"Walk a database from end to end and report what is damaged."`
	Replay   replayCmd   `cmd:"" help:"Rebuild a store from the stream and compare it with the old one."`
	Backup   backupCmd   `cmd:"" help:"Copy database and streams of a daemon, running or stopped."`
	Compact  compactCmd  `cmd:"" help:"Give the free space in a database back to the file system."`
	Upgrade  upgradeCmd  `cmd:"" help:"Bring a database that an older program wrote to this program's layout."`
	Health   healthCmd   `cmd:"" help:"Ask a running daemon whether it is healthy (for containers)."`
	Config   configCmd   `cmd:"" help:"Print the effective configuration and where each value comes from."`
	Version  versionCmd  `cmd:"" help:"Print the version."`
}

const description = `Evidence that an AI agent's run really happened as it is told, checkable by a stranger, offline.

Examples:
  chaind demo                                 the whole way in a few seconds, no configuration
  chaind serve                                run the daemon with a NATS server inside
  chaind publish run.jsonl                    publish events to it
  chaind verify run.evidence.json             check an evidence file, offline
  chaind verify --trusted-pubkey KEY *.json   … and who signed it
  chaind explain run.tsb                      what a trust bundle claims, and what of it re-derives

Exit codes: 0 pass, 2 semantic failure, 3 degraded, 4 envelope broken, 5 policy, 64 usage, 1 could not run.`

// exited carries kong's wish to end the program (after --help) out of Parse.
type exited int

// parse reads the command line, the environment and the configuration file.
// A nil context means that the program ends with the code, and the error if
// there is one.
func parse(c *cli, a *app, args []string) (ctx *kong.Context, code int, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(exited)
			if !ok {
				panic(r)
			}
			ctx, code, err = nil, int(e), nil
		}
	}()
	parser, err := kong.New(c,
		kong.Name("chaind"),
		kong.NamedMapper("path", kong.MapperFunc(decodePath)),
		kong.Description(description),
		kong.Writers(a.stdout, a.stderr),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Resolvers(kong.ResolverFunc(a.fromFile)),
		kong.Bind(a),
	)
	if err != nil {
		return nil, exitCannot, err
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	ctx, err = parser.Parse(args)
	if err == nil {
		err = cmp.Or(a.checkFile(ctx), a.checkDemands(ctx))
	} else {
		err = a.located(err)
	}
	if err != nil {
		var p *problem
		if errors.As(err, &p) {
			return nil, p.code, err
		}
		return nil, exitUsage, err
	}
	return ctx, exitOK, nil
}

// fromFile gives a flag its value from the configuration file, unless the
// environment has one: flags before environment before file.
func (a *app) fromFile(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if !isSetting(flag) || a.readFile(ctx) != nil {
		return nil, nil // checkFile tells, without a flag's name in front
	}
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return nil, nil
		}
	}
	if v, ok := a.file.Value(flag.Name); ok {
		return v, nil
	}
	return nil, nil
}

// located adds to a complaint about a setting where its value comes from: the
// variable, or the line of the file. kong puts the flag's name in front.
func (a *app) located(err error) error {
	var fault *kong.ParseError
	if !errors.As(err, &fault) || fault.Context == nil {
		return err
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "--"), ":")
	name, _, _ = strings.Cut(name, " ")
	flags := fault.Context.Flags()
	i := slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == name })
	if i < 0 || !isSetting(flags[i]) {
		return err
	}
	flag := flags[i]
	for _, p := range fault.Context.Path {
		if p.Flag == flag && !p.Resolved {
			return err
		}
	}
	for _, variable := range flag.Envs {
		if _, set := os.LookupEnv(variable); set {
			return fmt.Errorf("environment %s: %w", variable, err)
		}
	}
	if line, ok := a.file.Has(name); ok {
		return fmt.Errorf("configuration %s: line %d: %w", a.file.Path, line, err)
	}
	return err
}

// isSetting tells whether a flag may also stand in the configuration file.
func isSetting(flag *kong.Flag) bool {
	return flag.Group != nil && flag.Group.Key == settingsGroup
}

// readFile reads the configuration file once, if one is named, and keeps what
// went wrong.
func (a *app) readFile(ctx *kong.Context) error {
	path := configPath(ctx)
	if path == "" || a.file.Path != "" || a.fileFault != nil {
		return a.fileFault
	}
	file, err := daemon.ReadSettings(path, settingNames(ctx.Flags()))
	var syntax *daemon.SyntaxError
	switch {
	case errors.As(err, &syntax):
		a.fileFault = &problem{code: exitUsage, err: err, hint: hintSample}
	case err != nil:
		a.fileFault = cannot(err, hintSample)
	default:
		a.file = file
	}
	return a.fileFault
}

const hintSample = "configs/chaind.yaml of the source is a commented sample"

// settingNames are the flags that may stand in the configuration file; true:
// as lists.
func settingNames(flags []*kong.Flag) daemon.SettingNames {
	names := daemon.SettingNames{}
	for _, flag := range flags {
		if isSetting(flag) {
			names[flag.Name] = flag.IsSlice()
		}
	}
	return names
}

// checkFile tells what is wrong with the configuration file, also where the
// command line and the environment leave nothing to it.
func (a *app) checkFile(ctx *kong.Context) error {
	if !slices.ContainsFunc(ctx.Flags(), isSetting) {
		return nil
	}
	return a.readFile(ctx)
}

// configPath finds --config on the parsed command line, else CHAIND_CONFIG.
func configPath(ctx *kong.Context) string {
	for _, p := range ctx.Path {
		if p.Flag != nil && p.Flag.Name == "config" {
			if s, ok := ctx.FlagValue(p.Flag).(string); ok {
				return s
			}
		}
	}
	return os.Getenv("CHAIND_CONFIG")
}
