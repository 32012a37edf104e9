package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"posthorn/client"
	"posthorn/web/cli"
)

// heard is a line of listen's output for programs.
type listened struct {
	Number   int    `json:"number"`
	Delivery string `json:"delivery_id"`
	EventID  string `json:"event_id"`
	Type     string `json:"event_type"`
	Replayed bool   `json:"replayed"`
	Status   int    `json:"status"`
	Error    string `json:"error"`
}

// listen runs the command until the test ends it, and hands on what it prints.
func (d *desk) listen(args ...string) (lines <-chan listened, said <-chan string, say func(string), end func() int) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(d.t.Context())
	out, stdout := io.Pipe()
	notes, stderr := io.Pipe()
	stdin, typed := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		a := &app{
			program: "posthorn",
			args:    append([]string{"listen", "--json"}, args...),
			environ: d.environ,
			stdin:   stdin,
			stdout:  stdout,
			stderr:  stderr,
		}
		ended <- a.run(ctx)
		stdout.Close()
		stderr.Close()
	}()
	all, spoken := make(chan listened, 1000), make(chan string, 1000)
	go func() {
		in := json.NewDecoder(out)
		for {
			var h listened
			if in.Decode(&h) != nil {
				close(all)
				return
			}
			all <- h
		}
	}()
	go func() {
		for in := bufio.NewScanner(notes); in.Scan(); {
			spoken <- in.Text()
		}
	}()
	return all, spoken, func(line string) { _, _ = io.WriteString(typed, line+"\n") }, func() int {
		cancel()
		stdin.Close()
		return <-ended
	}
}

func waitForNote(t *testing.T, said <-chan string, part string) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case line, more := <-said:
			if !more {
				t.Fatalf("it never said %q", part)
			}
			if strings.Contains(line, part) {
				return
			}
		case <-late:
			t.Fatalf("it has not said %q for a minute", part)
		}
	}
}

func TestListenForwardsSignedDeliveriesAndReplaysThem(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const secret = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="
	var mu sync.Mutex
	var got []client.Webhook
	local := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		webhook, err := client.Verifier{Secrets: []string{secret}}.Read(r)
		if err != nil {
			t.Errorf("not verified: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		if got = append(got, webhook); len(got) == 2 {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	defer local.Close()
	var before, first, second thing
	d.ok(&before, "emit order.before --json {}")
	lines, said, say, end := d.listen("--forward", local.URL, "--secret", secret, "--event-types", "order.*", "--filter", "type != 'order.dull'")
	waitForNote(t, said, "Forwarding")
	d.ok(nil, "emit ticket.printed {}")
	d.ok(nil, "emit order.dull {}")
	d.ok(&first, "emit order.completed --json", `{"note":"<ä>"}`)
	h := <-lines
	if h.EventID != first.ID || h.Number != 1 || h.Status != http.StatusOK {
		t.Errorf("first: %+v", h)
	}
	one := h.Delivery
	d.ok(&second, "emit order.completed --json", `2`)
	if h = <-lines; h.EventID != second.ID || h.Number != 2 || h.Status != http.StatusTeapot {
		t.Errorf("second: %+v", h)
	}
	eventually(t, "what was answered is with the deliveries", func() bool {
		return strings.Contains(d.ok(nil, "deliveries get "+one), "delivered") && strings.Contains(d.ok(nil, "deliveries get "+h.Delivery), "418")
	})
	say("r")
	if h = <-lines; h.EventID != second.ID || !h.Replayed || h.Status != http.StatusOK {
		t.Errorf("the latest again: %+v", h)
	}
	eventually(t, "the first can be replayed", func() bool { return d.run("deliveries replay "+one).code == cli.ExitOK })
	if h = <-lines; h.EventID != first.ID || !h.Replayed {
		t.Errorf("the first again: %+v", h)
	}
	say("r 7")
	waitForNote(t, said, "no number 7")
	if code := end(); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
	if text := d.ok(nil, "endpoints list --kind listen"); strings.Contains(text, local.URL) {
		t.Errorf("the listener is left behind: %s", text)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 4 || string(got[0].Data) != `{"note":"<ä>"}` || got[0].ID != first.ID {
		t.Errorf("arrived: %+v", got)
	}
}

func TestListenLosesAndDoublesNothingWhileTheServerRestarts(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	var m made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
	start := func(address string) *Program {
		cfg, err := loadConfig(append(environ, "POSTHORN_ADDR="+address, "POSTHORN_METRICS_ADDR=off"))
		if err != nil {
			t.Fatal(err)
		}
		p := &Program{Config: cfg, Parts: Parts{Web: true}, Log: silent}
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := start("127.0.0.1:0")
	address := strings.TrimPrefix(p.URL(), "http://")
	d := &desk{t: t, url: p.URL(), environ: []string{"POSTHORN_URL=" + p.URL(), "POSTHORN_API_KEY=" + m.APIKey}}
	local := echo(t, func() int { return http.StatusOK })
	lines, said, _, end := d.listen("--forward", local.URL)
	waitForNote(t, said, "Forwarding")
	seen := map[string]int{}
	received := func(id string) {
		late := time.After(time.Minute)
		for {
			select {
			case h, more := <-lines:
				if !more {
					t.Fatalf("%s was never forwarded", id)
				}
				if seen[h.EventID]++; h.EventID == id {
					return
				}
			case <-late:
				t.Fatalf("%s has not been forwarded for a minute", id)
			}
		}
	}
	var ids []string
	emit := func() {
		var e thing
		d.ok(&e, "emit order.completed {} --json")
		ids = append(ids, e.ID)
	}
	for range 5 {
		emit()
	}
	received(ids[4])
	emit() // perhaps forwarded before the server goes, perhaps after it is back
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	waitForNote(t, said, "The server is away")
	p = start(address)
	defer p.Close()
	for range 5 {
		emit()
	}
	received(ids[len(ids)-1])
	if code := end(); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
	for h := range lines {
		seen[h.EventID]++
	}
	for _, id := range ids {
		if seen[id] != 1 {
			t.Errorf("%s was forwarded %d times", id, seen[id])
		}
	}
}

func TestListenSendsOneEventOnDemandAndSaysWhatWentWrong(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var e thing
	d.ok(&e, "emit order.completed {} --json")
	local := echo(t, func() int { return http.StatusOK })
	if text := d.ok(nil, "listen --forward "+local.URL+" --event "+e.ID); !strings.Contains(text, "200 OK") || !strings.Contains(text, "thanks for order.completed") {
		t.Errorf("printed %s", text)
	}
	if r := d.run("listen --forward http://127.0.0.1:1/ --event " + e.ID); r.code != cli.ExitFailed || !strings.Contains(r.stdout, "refused") {
		t.Errorf("nobody there: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for line, want := range map[string]int{
		"listen --forward localhost:3000": cli.ExitUsage,
		"listen":                          cli.ExitUsage,
		"listen --forward " + local.URL + " --event-types order.*.x":                cli.ExitUsage,
		"listen --forward " + local.URL + " --secret short":                         cli.ExitUsage,
		"listen --forward " + local.URL + " --event evt_01jd0000000000000000000000": cli.ExitNotFound,
	} {
		if r := d.run(line); r.code != want {
			t.Errorf("posthorn %s: exit code %d\n%s", line, r.code, r.stderr)
		}
	}
}

func TestDeadLettersAreReplayedAllAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var mu sync.Mutex
	status := http.StatusBadRequest
	to := echo(t, func() int { mu.Lock(); defer mu.Unlock(); return status })
	var endpoint thing
	d.ok(&endpoint, "endpoints create --json "+to.URL)
	for range 3 {
		d.ok(nil, "emit order.completed {}")
	}
	eventually(t, "there are three dead letters", func() bool {
		var dead []thing
		d.ok(&dead, "dlq list --json")
		return len(dead) == 3
	})
	if text := d.ok(nil, "dlq replay-all --dry-run --since 24h --endpoint "+endpoint.ID); !strings.HasPrefix(text, "3 ") {
		t.Errorf("dry run: %s", text)
	}
	mu.Lock()
	status = http.StatusOK
	mu.Unlock()
	var job struct {
		ID    string `json:"id"`
		State string `json:"state"`
	}
	d.ok(&job, "dlq replay-all --json --reason fixed --since 24h --endpoint "+endpoint.ID)
	eventually(t, "all three are delivered", func() bool {
		var delivered []thing
		d.ok(&delivered, "deliveries list --json --status delivered")
		return len(delivered) == 3
	})
}
