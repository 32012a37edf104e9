package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/web/cli"
)

// Exit codes. Those of the commands that speak to a server are web/cli's, which go on where these end.
const (
	exitOK     = 0
	exitFailed = 1 // something went wrong; the message says what to do
	exitUsage  = 2 // a wrong command line or configuration; nothing was done
)

// commands is the command line, as kong reads it from the tags.
type commands struct {
	Serve  serveCommand  `cmd:"" help:"Run the web server and a worker in one process."`
	Web    webCommand    `cmd:"" help:"Run only the web server. Any number of them can share one database."`
	Worker workerCommand `cmd:"" help:"Run only a worker. Any number of them can share one database."`

	Open openCommand `cmd:"" help:"Print a link that opens the dashboard, signed in, on the machine where the server runs."`

	Migrate struct {
		Up     migrateUpCommand     `cmd:"" help:"Migrate the database to this version's schema (serve, web, and worker do this too)."`
		Down   migrateDownCommand   `cmd:"" help:"Revert the newest migration. Reverting the first one deletes all data."`
		Status migrateStatusCommand `cmd:"" help:"List the migrations and whether the database has them, and check the roles."`
		Roles  migrateRolesCommand  `cmd:"" help:"Create the roles, the database and the grants that Posthorn needs, as the administrator of POSTHORN_ADMIN_DATABASE_URL. Safe to repeat."`
	} `cmd:"" help:"The database's schema."`

	Tenant struct {
		Create tenantCreateCommand `cmd:"" help:"Create a tenant and an API key with every scope in it."`
		List   tenantListCommand   `cmd:"" help:"List the tenants."`
		Move   tenantMoveCommand   `cmd:"" help:"Move a tenant to another home, while it works. Safe to repeat and to interrupt."`
	} `cmd:"" help:"Organizations whose endpoints receive events."`

	Key struct {
		Create keyCreateCommand `cmd:"" help:"Create an API key. It is shown once."`
	} `cmd:"" help:"API keys, with which programs emit events and manage endpoints."`

	Operator struct {
		Create    operatorCreateCommand `cmd:"" help:"Create an operator; prints the link to set the password."`
		Link      operatorLinkCommand   `cmd:"" help:"Print a new link for an operator who lost the password or the second factor."`
		UnlinkSSO operatorUnlinkCommand `cmd:"" name:"unlink-sso" help:"Forget an operator's account at the identity provider, after it was created again there."`
	} `cmd:"" help:"People who run Posthorn and see all tenants."`

	Account struct {
		ResetSecondFactor accountResetCommand  `cmd:"" name:"reset-second-factor" help:"Turn off the second factor of a person who lost the device and the recovery codes."`
		UnlinkSSO         accountUnlinkCommand `cmd:"" name:"unlink-sso" help:"Forget a person's accounts at identity providers, after they were created again there."`
	} `cmd:"" help:"Accounts of people, with which they sign in to their tenants."`

	cli.Commands `embed:""`

	MasterKey struct {
		Rotate masterKeyRotateCommand `cmd:"" help:"Encrypt all stored secrets with the first key of POSTHORN_MASTER_KEY. Safe to run while Posthorn runs, and to repeat."`
	} `cmd:"" name:"master-key" help:"Manage the key that encrypts stored secrets."`

	BotKey struct {
		Rotate botKeyRotateCommand `cmd:"" help:"Publish a new key of the platform's own signature of requests, which signs later."`
	} `cmd:"" name:"bot-key" help:"Manage the keys with which the platform signs requests as a bot."`

	EgressProxy struct {
		List   egressProxyListCommand   `cmd:"" help:"List the egress proxies."`
		Set    egressProxySetCommand    `cmd:"" help:"Set the egress proxy of all tenants, or of one."`
		Remove egressProxyRemoveCommand `cmd:"" help:"Remove an egress proxy."`
	} `cmd:"" name:"egress-proxy" help:"Proxies through which requests to endpoints leave the network."`

	Platform struct {
		Tenant platformTenantCommand `cmd:"" help:"Create the platform's own tenant, or print it if it exists. Its endpoints receive operational webhooks of all tenants: disabled endpoints, rotated secrets, failed deliveries; and the alerts of operators."`
		Alerts platformAlertsCommand `cmd:"" help:"List the open alerts of the platform."`
	} `cmd:"" help:"The platform itself."`

	Ready   readyCommand   `cmd:"" help:"Check whether the process on this machine is ready; exits with 1 if it is not."`
	Routes  routesCommand  `cmd:"" help:"List every path of the web server, and who can call it."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

// app is one run of the command line.
type app struct {
	program        string // as it was typed, for advice on what to type next
	args, environ  []string
	stdin          io.Reader // nil: none
	stdout, stderr io.Writer
	terminal       bool // stdout is a person's terminal
	inTerminal     bool // stdin is
	logTerminal    bool // stderr is
}

// run parses the command line, runs the command and returns the exit code. It prints one line for an error.
func (a *app) run(ctx context.Context) (code int) {
	type exit struct{ code int }
	defer func() {
		// kong ends the process after --help; here it ends this function.
		if r := recover(); r != nil {
			e, ok := r.(exit)
			if !ok {
				panic(r)
			}
			code = e.code
		}
	}()
	c := commands{Commands: cli.New()}
	parser, err := kong.New(grammar(&c, a.args),
		kong.Name("posthorn"),
		kong.Description("Delivers your events to your customers' HTTPS endpoints: signed, retried, observable.\n\n"+
			"`posthorn serve` runs everything and needs no configuration; `posthorn serve --help` lists the variables there are."),
		kong.Writers(a.stdout, a.stderr),
		kong.Exit(func(code int) { panic(exit{code}) }),
		kong.ValueFormatter(explainValue),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.ExplicitGroups([]kong.Group{{Key: "client", Title: "Commands that speak to a server with an API key (posthorn login, or POSTHORN_URL and POSTHORN_API_KEY):"}}),
		kong.Vars{"scopes": scopeNames(access.PlatformScopes())},
	)
	if err != nil {
		return a.fail(err)
	}
	args := a.args
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	}
	chosen, err := parser.Parse(args)
	if err != nil {
		cli.Fprintf(a.stderr, "posthorn: %s Try `%s --help`.\n", sentence(err), understood(err))
		return exitUsage
	}
	chosen.BindTo(ctx, (*context.Context)(nil))
	chosen.Bind(&cli.Env{
		Environ:    a.environ,
		Stdin:      a.stdin,
		Stdout:     a.stdout,
		Stderr:     a.stderr,
		Terminal:   a.terminal,
		InTerminal: a.inTerminal,
		Now:        time.Now,
	})
	if err := chosen.Run(a); err != nil {
		return a.fail(err)
	}
	return exitOK
}

// grammar is that of the command that a line begins with, or the whole one. kong prepares every flag of the grammar
// that it is given, which takes longer than most commands.
func grammar(c *commands, args []string) any {
	if len(args) == 0 {
		return c
	}
	for _, group := range []reflect.Value{reflect.ValueOf(c).Elem(), reflect.ValueOf(&c.Commands).Elem()} {
		for field, value := range group.Fields() {
			_, is := field.Tag.Lookup("cmd")
			_, hidden := field.Tag.Lookup("hidden") // completes words by the whole grammar
			if !is || hidden || cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name)) != args[0] {
				continue
			}
			field.Offset, field.Index = 0, nil
			one := reflect.New(reflect.StructOf([]reflect.StructField{field})).Elem()
			one.Field(0).Set(value)
			return one.Addr().Interface()
		}
	}
	return c
}

// wordings turn what kong says of a wrong command line into sentences.
var wordings = []struct {
	kong *regexp.Regexp
	ours string
}{
	{regexp.MustCompile(`^(--[\w-]+)(?:=\S*)?: expected a valid \d+ bit u?int but got (".*?").*`), "$1 takes a whole number, not $2"},
	{regexp.MustCompile(`^(--[\w-]+)(?:=\S*)?: expected duration but got (".*?").*`), "$1 takes a duration such as 30s or 24h, not $2"},
	{regexp.MustCompile(`^(--[\w-]+)(?:=\S*)? must be one of (?:"",)?(.*) but got (".*?")$`), "$1 takes one of $2, not $3"},
	{regexp.MustCompile(`^missing flags: `), "Missing: "},
	{regexp.MustCompile(`^expected one of `), "Choose one of "},
	{regexp.MustCompile(`^expected "<`), `Missing: "<`},
	{regexp.MustCompile(`^unknown flag `), "There is no flag "},
	{regexp.MustCompile(`^unexpected argument ([^ ,]+)`), `There is no command or argument "$1"`},
	{regexp.MustCompile(`, did you mean (.*)\?$`), ". Did you mean $1?"},
}

// sentence says what is wrong with a command line.
func sentence(err error) string {
	text := err.Error()
	for _, w := range wordings {
		text = w.kong.ReplaceAllString(text, w.ours)
	}
	if !strings.HasSuffix(text, "?") && !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// understood is the part of a wrong command line that names a command.
func understood(err error) string {
	words := []string{"posthorn"}
	var invalid *kong.ParseError
	if errors.As(err, &invalid) {
		for _, p := range invalid.Context.Path {
			if p.Command != nil {
				words = append(words, p.Command.Name)
			}
		}
	}
	return strings.Join(words, " ")
}

// explainValue is a flag's help. The choices of an optional flag begin with an empty one, which only kong needs.
func explainValue(v *kong.Value) string {
	if v.Enum != "" {
		choices := strings.ReplaceAll(strings.Trim(v.Enum, ","), ",", ", ")
		defer func(help string) { v.Help = help }(v.Help)
		v.Help = strings.ReplaceAll(v.Help, v.Enum, choices)
	}
	return kong.DefaultHelpValueFormatter(v)
}

// fail prints an error for a person: the sentence that says what to do, then the cause in brackets.
func (a *app) fail(err error) int {
	if line, code, ok := cli.Explain(err); ok {
		cli.Fprintf(a.stderr, "posthorn: %s\n", line)
		return code
	}
	var invalid *ConfigError
	known := fault.As(err)
	switch {
	case errors.As(err, &invalid):
		cli.Fprintf(a.stderr, "posthorn: %s\n", invalid)
		return exitUsage
	case errors.Is(err, context.Canceled):
		cli.Fprintf(a.stderr, "posthorn: interrupted\n")
	case known == nil:
		cli.Fprintf(a.stderr, "posthorn: %s\n", scrub(err.Error()))
	case known.Cause == nil:
		cli.Fprintf(a.stderr, "posthorn: %s\n", known.Detail)
	default:
		cli.Fprintf(a.stderr, "posthorn: %s (%s)\n", known.Detail, oneLine(known.Cause))
	}
	if known != nil && known.Kind == fault.Invalid {
		return exitUsage
	}
	return exitFailed
}

// oneLine is an error's text without secrets, line breaks and repetitions: the driver lists every address and mode of
// TLS that it tried.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(scrub(err.Error())) {
		if line = strings.TrimSpace(line); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

// config reads the environment.
func (a *app) config() (Config, error) { return loadConfig(a.environ) }

// logger is the server's: text for a person who watches, JSON for a machine that collects. A terminal shows every line
// if a format or level below info was asked for.
func (a *app) logger(cfg *Config) *slog.Logger {
	format := cfg.LogFormat
	if format == "" && a.logTerminal {
		format = "text"
	}
	if cfg.LogFormat != "" || !a.logTerminal || cfg.LogLevel < slog.LevelInfo {
		return newLogger(a.stderr, format, cfg.LogLevel)
	}
	text := slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: cfg.LogLevel})
	return slog.New(guarded{newCalm(text, func(d time.Duration, do func()) { time.AfterFunc(d, do) })})
}

// quietLogger is the logger of a command whose result is on stdout: it logs only problems, unless the configured level
// is debug.
func (a *app) quietLogger(cfg *Config) *slog.Logger {
	level := max(cfg.LogLevel, slog.LevelWarn)
	if cfg.LogLevel < slog.LevelInfo {
		level = cfg.LogLevel
	}
	return newLogger(a.stderr, "text", level)
}

// printJSON writes one object on one line.
func (a *app) printJSON(value any) error {
	return cli.WriteJSON(a.stdout, value)
}

func (a *app) printf(format string, args ...any) {
	cli.Fprintf(a.stdout, format, args...)
}

type versionCommand struct{}

// Run prints the version, the Go version, and the platform.
func (versionCommand) Run(a *app) error {
	a.printf("posthorn %s %s %s/%s\n", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
