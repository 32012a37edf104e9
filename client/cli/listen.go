package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"posthorn/client"
	"posthorn/domain/filter"
	"posthorn/domain/signature"
)

type listenCommand struct {
	shared
	Forward    string        `required:"" help:"Where to send events, as http://localhost:3000/hook." placeholder:"URL"`
	EventTypes []string      `help:"Whole names, families as order.*, or *." default:"*" placeholder:"TYPE,..."`
	Channels   []string      `help:"Events of at least one of these channels alone." placeholder:"CHANNEL,..."`
	Format     string        `help:"Wire format: ${enum}." enum:"standard,x-webhook,t-v1,body-hex,raw" default:"standard"`
	Prefix     string        `help:"Prefix of the format's header names." default:"Webhook"`
	Secret     string        `help:"What to sign with: the text, or @FILE. Left out, one is made for this run."`
	Since      string        `help:"Events since then too: a time span back from now, as 1h, or a time."`
	Event      []string      `help:"Send these events (evt_...) and end; may be given several times."`
	Timeout    time.Duration `help:"How long an answer may take." default:"15s"`
	Every      time.Duration `help:"How often to look for events." default:"500ms"`
}

// kept is how many events can be sent again by their number.
const kept = 100

// forwarder sends events to a developer's machine, rendered and signed as a delivery is.
type forwarder struct {
	command listenCommand
	env     *Env
	sdk     *client.Client
	signing signature.Signing
	http    *http.Client
	sent    []forwarded // the latest
	count   int
	away    bool // the server does not answer, and the person knows
}

// forwarded is an event that was sent, with its number.
type forwarded struct {
	number, attempts int
	event            client.EventWithData
}

// Run forwards events until the context ends. A line "r" on stdin sends the latest again, "r 3" the third.
func (c listenCommand) Run(ctx context.Context, e *Env) error {
	f, err := c.forwarder(e)
	if err != nil {
		return err
	}
	if len(c.Event) > 0 {
		return f.once(ctx)
	}
	since, err := moment("--since", c.Since, e.Now())
	if err != nil {
		return err
	}
	feed := &feed{sdk: f.sdk, seen: map[string]time.Time{}}
	if err := feed.begin(ctx, since); err != nil {
		return err
	}
	e.notef("Forwarding %s to %s. Ctrl-C ends it; r and Enter sends the latest again, r 3 the third.\n", strings.Join(c.EventTypes, ", "), c.Forward)
	return f.follow(ctx, feed, e.lines(ctx))
}

func (c listenCommand) forwarder(e *Env) (*forwarder, error) {
	to, err := url.Parse(c.Forward)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return nil, fail(ExitUsage, "--forward is an address, as http://localhost:3000/hook.")
	}
	for _, p := range c.EventTypes {
		if err := filter.ValidPattern(p); err != nil {
			return nil, fail(ExitUsage, "--event-types: %s is no event type, family or *.", oneLine(p, 100))
		}
	}
	secret := c.Secret
	if strings.HasPrefix(secret, "@") {
		text, err := input(e, secret, "")
		if err != nil {
			return nil, err
		}
		secret = string(text)
	}
	if secret == "" {
		var random [24]byte
		_, _ = rand.Read(random[:]) // never fails
		secret = "whsec_" + base64.StdEncoding.EncodeToString(random[:])
		e.notef("Signed with %s (--secret takes one of your own).\n", secret)
	}
	key, err := signature.ParseKey(signature.Format(c.Format), secret)
	if err != nil {
		return nil, fail(ExitUsage, "The format %s can't sign with this secret.", c.Format)
	}
	f := &forwarder{command: c, env: e, signing: signature.Signing{Format: signature.Format(c.Format), Prefix: c.Prefix, Keys: []signature.Key{key}}}
	if err := f.signing.Validate(); err != nil {
		return nil, fail(ExitUsage, "--prefix has 1 to 40 letters, digits and hyphens.")
	}
	f.http = &http.Client{Timeout: c.Timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	f.sdk, err = c.connect(e)
	return f, err
}

// once sends the events that were named. An answer that is no success is exit code 1.
func (f *forwarder) once(ctx context.Context) error {
	bad := 0
	for _, id := range f.command.Event {
		event, err := f.sdk.GetEvent(ctx, id)
		if err != nil {
			return err
		}
		good, err := f.forward(ctx, event)
		if err != nil {
			return err
		}
		if !good {
			bad++
		}
	}
	if bad > 0 {
		return fail(ExitFailed, "%d of %d were not taken.", bad, len(f.command.Event))
	}
	return nil
}

// follow forwards what the feed brings and repeats what the lines ask for. A server that is away for a while is waited for:
// the feed goes on where it stopped.
func (f *forwarder) follow(ctx context.Context, feed *feed, lines <-chan string) error {
	look := time.NewTicker(f.command.Every)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil // Ctrl-C is how it ends
		case line := <-lines:
			if err := f.again(ctx, line); err != nil {
				return err
			}
			continue
		case <-look.C:
		}
		events, err := feed.next(ctx)
		if err == nil {
			f.away = false
			err = f.all(ctx, events)
		}
		if err != nil && ctx.Err() == nil && !f.wait(err) {
			return err
		}
	}
}

// wait reports whether an error is the server's being away, which ends by itself, and says so once.
func (f *forwarder) wait(err error) bool {
	line, code, _ := Explain(err)
	if code != ExitUnavailable {
		return false
	}
	if !f.away {
		f.env.notef("The server is away (%s). Trying again.\n", oneLine(line, 200))
	}
	f.away = true
	return true
}

// all forwards the events that were asked for.
func (f *forwarder) all(ctx context.Context, events []client.Event) error {
	for _, one := range events {
		if !filter.MatchType(f.command.EventTypes, one.Type) || !shares(f.command.Channels, one.Channels) {
			continue
		}
		event, err := f.read(ctx, one.ID)
		if err != nil {
			return err
		}
		if event.Expunged {
			continue
		}
		if _, err := f.forward(ctx, event); err != nil {
			return err
		}
	}
	return nil
}

// read fetches an event, however long the server is away: it was promised once it was seen.
func (f *forwarder) read(ctx context.Context, id string) (client.EventWithData, error) {
	for {
		event, err := f.sdk.GetEvent(ctx, id)
		if err == nil {
			f.away = false
		}
		if err == nil || ctx.Err() != nil || !f.wait(err) || !sleep(ctx, time.Second) {
			return event, err
		}
	}
}

// shares reports whether an event has one of the channels that were asked for, if any were.
func shares(wanted, has []string) bool {
	for _, w := range wanted {
		for _, h := range has {
			if w == h {
				return true
			}
		}
	}
	return len(wanted) == 0
}

// again sends an event a further time.
func (f *forwarder) again(ctx context.Context, line string) error {
	words := strings.Fields(line)
	if len(words) == 0 || words[0] != "r" {
		return nil
	}
	number := f.count
	if len(words) > 1 {
		number, _ = strconv.Atoi(words[1])
	}
	for i := range f.sent {
		if f.sent[i].number == number {
			f.sent[i].attempts++
			_, err := f.send(ctx, f.sent[i])
			return err
		}
	}
	f.env.notef("There is no number %d to send again.\n", number)
	return nil
}

// forward sends an event for the first time and remembers it.
func (f *forwarder) forward(ctx context.Context, event client.EventWithData) (bool, error) {
	f.count++
	one := forwarded{number: f.count, attempts: 1, event: event}
	if f.sent = append(f.sent, one); len(f.sent) > kept {
		f.sent = f.sent[1:]
	}
	return f.send(ctx, one)
}

// outcome is what came of one request, as --json prints it.
type outcome struct {
	Number   int    `json:"number"`
	EventID  string `json:"event_id"`
	Type     string `json:"event_type"`
	Attempt  int    `json:"attempt"`
	Status   int    `json:"status,omitempty"`
	Error    string `json:"error,omitempty"`
	Millis   int64  `json:"duration_ms"`
	Response string `json:"response,omitempty"`
}

func (f *forwarder) send(ctx context.Context, one forwarded) (bool, error) {
	request, err := f.request(ctx, one)
	if err != nil {
		return false, err
	}
	o := outcome{Number: one.number, EventID: one.event.ID, Type: one.event.Type, Attempt: one.attempts}
	began := f.env.Now()
	response, err := f.http.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		o.Error = err.Error()
	} else {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 16<<10))
		_ = response.Body.Close()
		o.Status, o.Response = response.StatusCode, strings.ToValidUTF8(string(text), "\ufffd")
	}
	o.Millis = f.env.Now().Sub(began).Milliseconds()
	good := o.Status >= 200 && o.Status <= 299
	return good, f.command.show(f.env, o, func() { f.print(o, good) })
}

func (f *forwarder) print(o outcome, good bool) {
	result, colour := o.Error, red
	if o.Status != 0 {
		result = strconv.Itoa(o.Status) + " " + http.StatusText(o.Status)
	}
	if good {
		colour = green
	}
	f.env.printf("%s  %3d  %s  %s  %s  %s  %s\n", f.env.Now().Local().Format(time.TimeOnly), o.Number, o.EventID, o.Type,
		f.env.paint(colour, oneLine(result, 200)), f.env.paint(dim, fmt.Sprintf("%d ms", o.Millis)), f.env.paint(dim, oneLine(o.Response, 80)))
}

// request is the delivery of an event as an endpoint would get it.
func (f *forwarder) request(ctx context.Context, one forwarded) (*http.Request, error) {
	serial := strings.TrimPrefix(one.event.ID, "evt_")
	m := signature.Message{
		EventID: one.event.ID, DeliveryID: "dlv_" + serial, EndpointID: "ep_" + serial, Type: one.event.Type, CreatedAt: one.event.CreatedAt, Data: one.event.Data,
	}
	m.OccurredAt, _ = one.event.OccurredAt.Get() // zero where there is none
	m.Version, _ = one.event.Version.Get()
	body := signature.AppendBody(nil, f.signing.Format, m)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.command.Forward, bytes.NewReader(body))
	if err != nil {
		return nil, fail(ExitUsage, "%v", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Posthorn-Listen")
	for _, h := range f.signing.Headers(nil, m, body, signature.Send{At: f.env.Now(), Attempt: one.attempts, Replayed: one.attempts > 1}) {
		request.Header.Set(h.Name, h.Value)
	}
	return request, nil
}

// lines hands on what is typed.
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
