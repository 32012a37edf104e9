// Package cli is the client half of posthorn's command line: commands that speak to a server with an API key, through
// the SDK alone. Command posthorn puts them beside its own.
//
// They print tables for people, and with --json what programs read: one object, an array of a list, or, where there
// is no end (tail, listen), an object a line. Colours show on terminals alone, and never with NO_COLOR set.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"posthorn/client"
	"posthorn/domain/endpoint"
)

// Commands are the commands, as kong reads them from the tags.
type Commands struct {
	Login      loginCommand       `cmd:"" help:"Store a server and an API key for the commands below." group:"client"`
	Logout     logoutCommand      `cmd:"" help:"Delete the stored server and key." group:"client"`
	Emit       emitCommand        `cmd:"" help:"Emit an event." group:"client"`
	Events     eventsCommands     `cmd:"" help:"List and show events." group:"client"`
	Endpoints  endpointsCommands  `cmd:"" help:"Manage endpoints." group:"client"`
	Feeds      feedsCommands      `cmd:"" help:"Read feeds, and manage their consumers." group:"client"`
	SigningKey signingKeyCommands `cmd:"" name:"signing-key" help:"Show and rotate the keys of public-key signatures." group:"client"`
	Deliveries deliveryCommands   `cmd:"" help:"List, retry, cancel, and replay deliveries." group:"client"`
	Test       testCommand        `cmd:"" help:"Send a test event to one endpoint and show the response." group:"client"`
	Dlq        deadCommands       `cmd:"" help:"List and replay dead letters: deliveries that failed permanently." group:"client"`
	Jobs       jobsCommands       `cmd:"" help:"Show, continue, and cancel bulk jobs." group:"client"`
	History    historyCommands    `cmd:"" help:"List days of history in storage, and bring them back." group:"client"`
	Settings   settingsCommands   `cmd:"" help:"The tenant's settings." group:"client"`
	Alerts     alertsCommands     `cmd:"" help:"Where notices are sent, and which kinds are muted." group:"client"`
	Listen     listenCommand      `cmd:"" help:"Forward events to your own machine, which needs no public address." group:"client"`
	Import     importCommands     `cmd:"" help:"Import event types and endpoints with their secrets." group:"client"`
	Apply      applyCommand       `cmd:"" help:"Apply a file to a server: tenants, event types, endpoints, members, limits." group:"client"`
	Export     exportCommand      `cmd:"" help:"Export a server's objects as a file for apply." group:"client"`
	Catalogue  catalogueCommands  `cmd:"" name:"catalog" aliases:"catalogue" help:"Export the catalog as a document for receivers, and compare two documents." group:"client"`
	Types      typesCommand       `cmd:"" help:"Print types of the events' data for a programming language." group:"client"`
	Completion completionCommand  `cmd:"" help:"Print a script that completes commands in your shell." group:"client"`
	Complete   completeCommand    `cmd:"" hidden:"" name:"__complete"`

	MCP           mcpCommand            `cmd:"" name:"mcp" help:"Serve tools to an AI client over stdin and stdout (MCP)." group:"client"`
	Sources       sourcesCommands       `cmd:"" help:"Manage sources: queues of your own whose messages become events." group:"client"`
	Subscriptions subscriptionsCommands `cmd:"" help:"List and revoke subscriptions of AI clients (MCP)." group:"client"`
}

// New are the commands, with the flags that come from tables.
func New() (c Commands) {
	c.Endpoints.Create.settings, c.Endpoints.Update.settings = newSettings(), newSettings()
	c.Endpoints.Create.connection, c.Endpoints.Update.connection = newConnection(endpoint.ToEndpoint), newConnection(endpoint.ToEndpoint)
	c.Sources.Create.connection, c.Sources.Update.connection = newConnection(endpoint.FromSource), newConnection(endpoint.FromSource)
	return c
}

// Env is the environment of a command.
type Env struct {
	Environ        []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       bool // Stdout is a person's terminal
	InTerminal     bool // so is Stdin
	Now            func() time.Time
}

// The exit codes of the client commands.
const (
	ExitOK          = 0
	ExitFailed      = 1 // something went wrong; the message says what to do
	ExitUsage       = 2 // a wrong command line, or input that the server rejected; nothing was done
	ExitNotFound    = 3 // there is no such object
	ExitRefused     = 4 // the key is missing, wrong, or lacks the permission
	ExitUnavailable = 5 // the server is unavailable or busy; the same command can succeed later
	ExitDiffers     = 6 // a check found a difference
)

// failure is an error of a command itself, with its exit code.
type failure struct {
	code int
	text string
}

func (f *failure) Error() string { return f.text }

func fail(code int, format string, args ...any) error {
	return &failure{code, fmt.Sprintf(format, args...)}
}

// Explain turns an error of a client command into a line for a person and an exit code. ok is false for any other
// error.
func Explain(err error) (line string, code int, ok bool) {
	var own *failure
	if errors.As(err, &own) {
		return own.text, own.code, true
	}
	if errors.Is(err, context.Canceled) {
		return "", 0, false
	}
	var refused *client.Error
	if !errors.As(err, &refused) {
		if text := unreachable(err); text != "" {
			return text, ExitUnavailable, true
		}
		if text := err.Error(); strings.HasPrefix(text, "posthorn: ") {
			return strings.TrimPrefix(text, "posthorn: "), ExitUnavailable, true
		}
		return "", 0, false
	}
	var b strings.Builder
	if refused.Code == "" {
		b.WriteString(strings.TrimPrefix(refused.Error(), "posthorn: "))
	} else {
		fmt.Fprintf(&b, "%s [%s]", cmp.Or(forShell[refused.Code], refused.Detail), refused.Code)
		for _, f := range refused.Fields {
			if f.Detail != refused.Detail || !strings.Contains(f.Detail, f.Field) {
				fmt.Fprintf(&b, "\n  %s: %s", f.Field, f.Detail)
			}
		}
	}
	return b.String(), exitCode(refused.Status), true
}

// forShell replaces messages for programs by messages for a person at a shell.
var forShell = map[string]string{
	"tenant_required": "A platform key acts in one tenant: name it with --tenant TEN, or in POSTHORN_TENANT.",
	"not_found":       "There is no such object in this tenant. Check the id, and whose key you use: ids of other tenants are not found.",
}

// unreachable says that a server could not be reached, and why. It is empty for any other error.
func unreachable(err error) string {
	var request *url.Error
	if !errors.As(err, &request) {
		return ""
	}
	server := request.URL
	if u, err := url.Parse(request.URL); err == nil && u.Host != "" {
		server = u.Scheme + "://" + u.Host
	}
	return fmt.Sprintf("The server %s can't be reached: %s. Check that it runs, and the address in POSTHORN_URL or `posthorn login`.", server, cause(request))
}

func exitCode(status int) int {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return ExitRefused
	case http.StatusNotFound:
		return ExitNotFound
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return ExitUsage
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return ExitUnavailable
	}
	return ExitFailed
}

// shared are the flags of every command that speaks to a server.
type shared struct {
	JSON   bool   `help:"Print JSON for a program."`
	Tenant string `help:"With a platform's key: the tenant to act in (or POSTHORN_TENANT)." placeholder:"TEN"`
}

// ProvideClient makes the client that a command speaks through. Kong calls it for a Run with such a parameter.
func (s shared) ProvideClient(e *Env) (*client.Client, error) {
	account, err := e.account()
	if err != nil {
		return nil, err
	}
	c, err := client.New(account.URL, account.Key, client.WithUserAgent("posthorn-cli"), client.WithRetries(3, 5*time.Second))
	if err != nil {
		return nil, fail(ExitUsage, "%s", strings.TrimPrefix(err.Error(), "posthorn: "))
	}
	tenant := s.Tenant
	if tenant == "" {
		tenant = e.variable("POSTHORN_TENANT")
	}
	if tenant != "" {
		c = c.Tenant(tenant)
	}
	return c, nil
}

// variable is a variable of the environment, or empty.
func (e *Env) variable(name string) string {
	for i := len(e.Environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(e.Environ[i], name+"="); ok {
			return value
		}
	}
	return ""
}

func (e *Env) printf(format string, args ...any) { Fprintf(e.Stdout, format, args...) }

// notef writes to stderr for people, so that programs read a clean stdout.
func (e *Env) notef(format string, args ...any) { Fprintf(e.Stderr, format, args...) }

// json prints a value on one line.
func (e *Env) json(v any) error { return WriteJSON(e.Stdout, v) }

// show prints a value as JSON, or prints it for a person.
func (s shared) show(e *Env, v any, forPeople func()) error {
	if s.JSON {
		return e.json(v)
	}
	forPeople()
	return nil
}

// response is the object that an operation returned.
type response[T any] struct {
	object T
	err    error
}

// of takes what a method of the SDK returns.
func of[T any](object T, err error) response[T] { return response[T]{object, err} }

// print prints the object as JSON, or for a person.
func (r response[T]) print(s shared, e *Env, forPeople func(T)) error {
	if r.err != nil {
		return r.err
	}
	return s.show(e, r.object, func() { forPeople(r.object) })
}

// sleep pauses, and reports whether the pause ended before the context.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
