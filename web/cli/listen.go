package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"posthorn/client"
	"posthorn/domain/filter"
)

type listenCommand struct {
	shared
	Forward    string        `required:"" help:"Where to forward deliveries, such as http://localhost:3000/hook." placeholder:"URL"`
	EventTypes []string      `help:"Event types: full names, patterns such as order.*, or *." default:"*" placeholder:"TYPE"`
	Channels   []string      `help:"Only events of at least one of these channels." placeholder:"CHANNEL"`
	Filter     string        `help:"Only events that match this CEL expression." placeholder:"CEL"`
	Format     string        `help:"Wire format: ${enum}." enum:"standard,x-webhook,t-v1,body-hex,raw" default:"standard"`
	Prefix     string        `help:"Prefix of the format's header names." default:"Webhook"`
	Secret     *string       `placeholder:"SECRET" help:"The signing secret: the text, or @FILE. Default: a new secret for this run."`
	Since      string        `placeholder:"TIME" help:"Start with events since then: a duration back from now, such as 1h, or a time."`
	Event      []string      `placeholder:"EVENT" help:"Send these events (evt_...) and exit; repeat the flag for more."`
	Timeout    time.Duration `help:"How long to wait for a response." default:"15s"`
}

// kept is how many deliveries can be sent again by their number.
const kept = 100

// forwarder creates a listener and forwards its deliveries to a developer's machine.
type forwarder struct {
	command  listenCommand
	env      *Env
	sdk      *client.Client
	http     *http.Client
	listener string
	mu       sync.Mutex
	sent     []forwarded // the latest
	count    int
	left     map[string]bool // how many events to forward before it ends; nil: unlimited
	bad      int             // how many of them the receiver did not accept
	end      context.CancelFunc
}

// forwarded is a forwarded delivery, with its number.
type forwarded struct {
	number   int
	delivery string
}

// Run forwards deliveries until the context ends. A line "r" on stdin sends the latest again, "r 3" the third.
func (c listenCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	f, body, err := c.prepare(ctx, e)
	if err != nil {
		return err
	}
	f.sdk = sdk
	since, err := moment("--since", c.Since, e.Now())
	if err != nil {
		return err
	}
	made, err := f.sdk.CreateListener(ctx, body)
	if err != nil {
		return err
	}
	f.listener = made.ID
	defer f.leave(context.WithoutCancel(ctx))
	if c.Secret == nil && len(c.Event) == 0 {
		e.notef("Signing secret: %s (use --secret to set your own)\n", made.Secret)
	}
	ctx, f.end = context.WithCancel(ctx)
	defer f.end()
	if err := f.requestStored(ctx, since); err != nil {
		return err
	}
	if f.left == nil {
		forwarded := "all events"
		if !slices.Equal(c.EventTypes, []string{"*"}) {
			forwarded = strings.Join(c.EventTypes, ", ")
		}
		e.notef("Forwarding %s to %s as %s.\nPress r + Enter to resend the last event, r 3 + Enter to resend the third, Ctrl-C to stop.\n", forwarded, c.Forward, made.ID)
		go f.repeat(ctx, e.lines(ctx))
	}
	err = f.sdk.Listen(ctx, f.listener, client.Listening{
		Handle: f.forward,
		Away: func(err error) {
			line, _, _ := Explain(err)
			e.notef("The server is away (%s). Trying again.\n", oneLine(line, 200))
		},
	})
	switch {
	case errors.Is(err, client.ErrListenerGone):
		return fail(ExitNotFound, "The listener was deleted.")
	case err != nil:
		return err
	case f.bad > 0:
		return fail(ExitFailed, "%d of %d were not delivered.", f.bad, len(c.Event))
	}
	return nil
}

// prepare checks the command line and makes the listener's body from it.
func (c listenCommand) prepare(ctx context.Context, e *Env) (*forwarder, client.ListenerInput, error) {
	var body client.ListenerInput
	to, err := url.Parse(c.Forward)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return nil, body, fail(ExitUsage, "--forward is an address, as http://localhost:3000/hook.")
	}
	for _, p := range c.EventTypes {
		if err := filter.ValidPattern(p); err != nil {
			return nil, body, fail(ExitUsage, "--event-types: %s is no event type, family or *.", oneLine(p, 100))
		}
	}
	shown := *to
	shown.User, shown.Fragment = nil, ""
	body = client.ListenerInput{
		Forward:    new(shown.String()),
		EventTypes: &c.EventTypes,
		Format:     new(client.Format(c.Format)),
		Prefix:     &c.Prefix,
	}
	if len(c.Channels) > 0 {
		body.Channels = &c.Channels
	}
	if c.Filter != "" {
		text, err := json.Marshal(c.Filter)
		if err != nil {
			return nil, body, fail(ExitUsage, "%v", err)
		}
		body.Filter = client.Value(client.Filter(text))
	}
	if c.Secret != nil {
		if *c.Secret == "-" {
			return nil, body, fail(ExitUsage, "--secret takes no stdin, which is for what you type. Give the text, or @FILE.")
		}
		text, err := input(ctx, e, *c.Secret, nothing)
		if err != nil {
			return nil, body, err
		}
		body.Secret = new(string(text))
	}
	if len(c.Event) > 0 {
		body.EventTypes, body.Channels, body.Filter = &[]string{"posthorn.none"}, nil, nil // only these
	}
	f := &forwarder{command: c, env: e}
	f.http = &http.Client{
		Timeout: c.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	return f, body, nil
}

// requestStored requests stored events again.
func (f *forwarder) requestStored(ctx context.Context, since *time.Time) error {
	if since != nil {
		if _, err := f.sdk.ReplayMissing(ctx, f.listener, client.RecoverInput{Since: *since}); err != nil {
			return err
		}
	}
	for _, event := range f.command.Event {
		if _, err := f.sdk.ReplayEvent(ctx, event, client.EventReplayInput{EndpointID: &f.listener}); err != nil {
			return err
		}
		if f.left == nil {
			f.left = map[string]bool{}
		}
		f.left[event] = true
	}
	return nil
}

// leave deletes the listener, so that nothing waits for a program that has ended.
func (f *forwarder) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := f.sdk.DeleteEndpoint(ctx, f.listener); err != nil && client.Code(err) != "not_found" {
		f.env.notef("The listener %s could not be ended now; it gets nothing after ten minutes, and is deleted within a day.\n", f.listener)
	}
}

// repeat replays what the lines ask for.
func (f *forwarder) repeat(ctx context.Context, lines <-chan string) {
	for {
		select {
		case <-ctx.Done():
			return
		case line := <-lines:
			f.again(ctx, line)
		}
	}
}

// again replays a delivery: the server creates a new one, which the stream sends.
func (f *forwarder) again(ctx context.Context, line string) {
	words := strings.Fields(line)
	if len(words) == 0 || words[0] != "r" {
		return
	}
	one, ok := f.numbered(words[1:])
	if !ok {
		f.env.notef("There is no number %s to send again.\n", strings.Join(words[1:], " "))
		return
	}
	if _, err := f.sdk.ReplayDelivery(ctx, one.delivery, client.ReplayInput{Again: new(true)}); err != nil &&
		ctx.Err() == nil {
		text, _, _ := Explain(err)
		f.env.notef("Number %d can't be sent again: %s\n", one.number, text)
	}
}

// numbered finds the delivery of a number, or the latest.
func (f *forwarder) numbered(words []string) (forwarded, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	number := f.count
	if len(words) > 0 {
		number, _ = strconv.Atoi(words[0])
	}
	for _, one := range f.sent {
		if one.number == number {
			return one, true
		}
	}
	return forwarded{}, false
}

// remember gives a delivery its number.
func (f *forwarder) remember(delivery string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	if f.sent = append(f.sent, forwarded{f.count, delivery}); len(f.sent) > kept {
		f.sent = f.sent[1:]
	}
	return f.count
}

// outcome is the result of one request, as --json prints it.
type outcome struct {
	Number   int    `json:"number"`
	Delivery string `json:"delivery_id"`
	EventID  string `json:"event_id"`
	Type     string `json:"event_type"`
	Attempt  int    `json:"attempt"`
	Replayed bool   `json:"replayed"`
	Status   int    `json:"status,omitempty"`
	Error    string `json:"error,omitempty"`
	Millis   int    `json:"duration_ms"`
	Response string `json:"response,omitempty"`
}

// forward forwards a delivery, shows the response, and reports it to the server.
func (f *forwarder) forward(ctx context.Context, h client.Handout) client.ListenerAnswer {
	o := outcome{
		Number:   f.remember(h.DeliveryID),
		Delivery: h.DeliveryID,
		EventID:  h.EventID,
		Type:     h.EventType,
		Attempt:  h.Attempt,
		Replayed: h.Replayed,
	}
	started := f.env.Now()
	a := f.send(ctx, h, &o)
	o.Millis = int(f.env.Now().Sub(started).Milliseconds())
	a.DurationMs = o.Millis
	good := o.Status >= 200 && o.Status <= 299
	if err := f.command.show(f.env, o, func() { f.print(o, good) }); err != nil {
		f.end() // its reader has ended
	}
	if f.left[h.EventID] {
		delete(f.left, h.EventID)
		if !good {
			f.bad++
		}
		if len(f.left) == 0 {
			f.end()
		}
	}
	return a
}

func (f *forwarder) send(ctx context.Context, h client.Handout, o *outcome) (a client.ListenerAnswer) {
	request, err := h.Request(ctx, f.command.Forward)
	var response *http.Response
	if err == nil {
		response, err = f.http.Do(request)
	}
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			o.Error = cause(failed)
			if errors.Is(err, syscall.ECONNREFUSED) {
				o.Error += ": is something listening on " + request.URL.Host + "?"
			}
		} else {
			o.Error = err.Error()
		}
		a.Failure, a.Error = new(failureOf(err)), new(cut(o.Error, 300))
		return a
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, 16<<10))
	_ = response.Body.Close()
	o.Status, o.Response = response.StatusCode, strings.ToValidUTF8(string(text), "\ufffd")
	headers := map[string]string{}
	for name := range response.Header {
		if len(headers) < 50 {
			headers[name] = cut(response.Header.Get(name), 1000)
		}
	}
	a.Status, a.Body, a.Headers = &o.Status, new(cut(o.Response, 16<<10)), &headers
	return a
}

// cut shortens a text to at most n bytes of valid UTF-8.
func cut(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit]
	}
	return strings.ToValidUTF8(text, "")
}

// failureOf names why there was no response.
func failureOf(err error) client.ListenerAnswerFailure {
	var dns *net.DNSError
	var network net.Error
	switch {
	case errors.As(err, &dns):
		return client.ListenerAnswerFailureDNSError
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
		return client.ListenerAnswerFailureTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return client.ListenerAnswerFailureConnectError
	case strings.Contains(err.Error(), "tls:"), strings.Contains(err.Error(), "x509:"):
		return client.ListenerAnswerFailureTLSError
	}
	return client.ListenerAnswerFailureReset
}

func (f *forwarder) print(o outcome, good bool) {
	result, colour := o.Error, red
	if o.Status != 0 {
		result = strconv.Itoa(o.Status) + " " + http.StatusText(o.Status)
	}
	if good {
		colour = green
	}
	f.env.printf("%s  %3d  %s  %-24s  %s  %s  %s\n", f.env.clock(), o.Number, o.EventID, o.Type,
		f.env.paint(colour, oneLine(result, 200)), f.env.paint(dim, fmt.Sprintf("%d ms", o.Millis)),
		f.env.paint(dim, oneLine(o.Response, 80)))
}

// lines sends each typed line.
func (e *Env) lines(ctx context.Context) <-chan string {
	lines := make(chan string)
	if e.Stdin == nil {
		return lines
	}
	go func() {
		in := bufio.NewScanner(e.Stdin)
		for in.Scan() {
			select {
			case lines <- in.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}
