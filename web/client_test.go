package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"posthorn/tools/need"
	"posthorn/web/cli"
)

// desk is a person's terminal at a Posthorn that runs.
type desk struct {
	t       *testing.T
	url     string
	tenant  string
	server  []string // the environment of commands that need the database
	key     string
	environ []string
	stdin   string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	environ := append(newDatabase(t), "POSTHORN_EGRESS_ALLOW=127.0.0.1")
	var m made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
	p := program(t, environ, Parts{Web: true, Worker: true})
	return &desk{
		t:      t,
		server: environ,
		url:    p.URL(),
		tenant: m.TenantID,
		key:    m.APIKey,
		environ: []string{
			"POSTHORN_URL=" + p.URL(),
			"POSTHORN_API_KEY=" + m.APIKey, "HOME=" + t.TempDir(),
		},
	}
}

// run runs a command, its words apart by spaces.
func (d *desk) run(line string, more ...string) result {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	return d.runIn(ctx, append(strings.Fields(line), more...)...)
}

func (d *desk) runIn(ctx context.Context, args ...string) result {
	var stdout, stderr bytes.Buffer
	a := &app{
		program: "posthorn",
		args:    args,
		environ: d.environ,
		stdin:   strings.NewReader(d.stdin),
		stdout:  &stdout,
		stderr:  &stderr,
	}
	code := a.run(ctx)
	return result{code, stdout.String(), stderr.String()}
}

// ok runs a command that must succeed and reads what it printed, if any is wanted.
func (d *desk) ok(into any, line string, more ...string) string {
	d.t.Helper()
	r := d.run(line, more...)
	if r.code != cli.ExitOK {
		d.t.Fatalf("posthorn %s: exit code %d\n%s%s", line, r.code, r.stdout, r.stderr)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(r.stdout), into); err != nil {
			d.t.Fatalf("posthorn %s printed %s: %v", line, r.stdout, err)
		}
	}
	return r.stdout
}

// echo is a receiver that echoes the challenge and responds with the status that it is given.
func echo(t *testing.T, status func() int) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var in struct {
			Type string          `json:"type"`
			Data json.RawMessage `json:"data"`
		}
		_ = json.Unmarshal(body, &in)
		if in.Type == "endpoint.verification" {
			_, _ = w.Write(in.Data)
			return
		}
		w.WriteHeader(status())
		_, _ = io.WriteString(w, "thanks for "+in.Type)
	}))
	t.Cleanup(s.Close)
	return s
}

type thing struct {
	ID         string `json:"id"`
	Status     string `json:"status"`
	Secret     string `json:"secret"`
	Deliveries int    `json:"deliveries"`
	ReplayOf   string `json:"replay_of"`
}

// TestTheCommandLineSaysWhyAVerificationFails: the progress of a verification is where the endpoint is looked at.
func TestTheCommandLineSaysWhyAVerificationFails(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(broken.Close)
	var endpoint thing
	d.ok(&endpoint, "endpoints create --json --event-types order.* "+broken.URL)
	line := regexp.MustCompile(`(?m)^Verification +(pending|failed), \d+ (try|tries): .*418`)
	eventually(t, "the verification's last response is shown", func() bool {
		return line.MatchString(d.ok(nil, "endpoints get "+endpoint.ID))
	})
}

func TestTheCommandLineGoesThroughAnEventsWholeLife(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var mu sync.Mutex
	answer := http.StatusNoContent
	set := func(status int) { mu.Lock(); defer mu.Unlock(); answer = status }
	to := echo(t, func() int { mu.Lock(); defer mu.Unlock(); return answer })

	var endpoint thing
	d.ok(&endpoint, "endpoints create --json --event-types order.*,ticket.* --retry-policy short --rate-limit none --metadata team=shop "+to.URL)
	if !strings.HasPrefix(endpoint.Secret, "whsec_") {
		t.Fatalf("created %+v", endpoint)
	}
	eventually(t, "the endpoint is active", func() bool {
		var e thing
		d.ok(&e, "endpoints get --json "+endpoint.ID)
		return e.Status == "active"
	})
	if text := d.ok(nil, "endpoints list"); !strings.Contains(text, endpoint.ID) || !strings.Contains(text, "order.*,ticket.*") ||
		strings.Contains(text, "\x1b") {
		t.Errorf("for people: %s", text)
	}

	d.stdin = `{"order_id": "ord_1"}`
	var event thing
	d.ok(&event, "emit order.completed --json --channel shop --idempotency-key once")
	var again thing
	if d.ok(&again, "emit order.completed --json --channel shop --idempotency-key once"); again.ID != event.ID || event.Deliveries != 1 {
		t.Errorf("emitted %+v and %+v", event, again)
	}
	if text := d.ok(nil, "events get "+event.ID); !strings.Contains(text, `"order_id": "ord_1"`) || !strings.Contains(text, "LAST RESPONSE") {
		t.Errorf("the event: %s", text)
	}
	began := time.Now()
	var scheduled struct {
		ID        string     `json:"id"`
		DeliverAt *time.Time `json:"deliver_at"`
	}
	d.ok(&scheduled, "emit note.made {} --json --deliver-at 1h")
	d.ok(&scheduled, "events get --json "+scheduled.ID)
	if at := scheduled.DeliverAt; at == nil || at.Before(began.Add(59*time.Minute)) ||
		at.After(time.Now().Add(time.Hour)) {
		t.Errorf("an hour ahead is %v", at)
	}
	var list []thing
	eventually(t, "it is delivered", func() bool {
		d.ok(&list, "deliveries list --json --status delivered --since 1h")
		return len(list) == 1
	})

	set(http.StatusBadRequest)
	d.stdin = ""
	if text := d.ok(nil, "emit ticket.printed {}"); !strings.Contains(text, "1 delivery created\n") {
		t.Errorf("for people: %s", text)
	}
	var dead []thing
	eventually(t, "it is a dead letter", func() bool {
		d.ok(&dead, "dlq list --json --endpoint "+endpoint.ID)
		return len(dead) == 1
	})
	if text := d.ok(nil, "deliveries get "+dead[0].ID); !strings.Contains(text, "Attempt 1") || !strings.Contains(text, "thanks for ticket.printed") ||
		!strings.Contains(text, "rejected") {
		t.Errorf("the dead letter: %s", text)
	}
	if link := d.ok(nil, "deliveries share --for 1h "+dead[0].ID); !strings.Contains(link, "/shared/ten_") || !strings.Contains(link, "until ") {
		t.Errorf("the link to the dead letter: %s", link)
	}
	set(http.StatusOK)
	var replayed thing
	if d.ok(&replayed, "dlq replay --json --reason fixed "+dead[0].ID); replayed.ReplayOf != dead[0].ID {
		t.Errorf("replayed %+v", replayed)
	}
	eventually(t, "the replay is delivered", func() bool {
		var one thing
		d.ok(&one, "deliveries get --json "+replayed.ID)
		return one.Status == "delivered"
	})

	if text := d.ok(nil, "test --event-type order.test "+endpoint.ID); !strings.Contains(text, "thanks for order.test") {
		t.Errorf("the test: %s", text)
	}
	set(http.StatusUnprocessableEntity)
	if r := d.run("test " + endpoint.ID); r.code != cli.ExitFailed || !strings.Contains(r.stdout, "422") {
		t.Errorf("a test that fails: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}

	d.ok(nil, "endpoints update --description Shop --timeout 7 --filter data.total>10 "+endpoint.ID)
	if text := d.ok(nil, "endpoints pause "+endpoint.ID); !strings.Contains(text, "paused") || !strings.Contains(text, "7 s") ||
		!strings.Contains(text, "data.total>10") {
		t.Errorf("paused: %s", text)
	}
	d.ok(nil, "endpoints resume "+endpoint.ID)
	var rotated thing
	if d.ok(&rotated, "endpoints secret rotate --json --overlap 1d "+endpoint.ID); rotated.Secret == "" || rotated.Secret == endpoint.Secret {
		t.Errorf("rotated to %+v", rotated)
	}
	if text := d.ok(nil, "endpoints secret list "+endpoint.ID); strings.Count(text, "hmac") != 2 || strings.Contains(text, rotated.Secret) {
		t.Errorf("secrets: %s", text)
	}
	d.ok(nil, "endpoints delete "+endpoint.ID)
}

func TestTailShowsWhatHappensFromNowOn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	to := echo(t, func() int { return http.StatusOK })
	var endpoint, before, after thing
	d.ok(&endpoint, "endpoints create --json --verification simple "+to.URL)
	eventually(t, "the endpoint is active", func() bool {
		var e thing
		d.ok(&e, "endpoints get --json "+endpoint.ID)
		return e.Status == "active"
	})
	d.ok(&before, "emit order.before {} --json")
	eventually(t, "the first is delivered", func() bool {
		var list []thing
		d.ok(&list, "deliveries list --json --status delivered")
		return len(list) == 1
	})
	ctx, stop := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		a := &app{program: "posthorn", args: strings.Fields("deliveries tail --json --every 50ms --status delivered"), environ: d.environ, stdout: writer, stderr: io.Discard}
		ended <- a.run(ctx)
		writer.Close()
	}()
	lines := json.NewDecoder(reader)
	shown := make(chan struct{ Type string }, 10)
	go func() {
		for {
			var one struct {
				Type string `json:"event_type"`
			}
			if lines.Decode(&one) != nil {
				return
			}
			shown <- struct{ Type string }{one.Type}
		}
	}()
	// The tail has looked once when it shows the first; until then new ones count as old.
	for got := false; !got; {
		d.ok(&after, "emit order.after {} --json")
		select {
		case one := <-shown:
			if got = true; one.Type != "order.after" {
				t.Errorf("shown: %+v", one)
			}
		case <-time.After(300 * time.Millisecond):
		}
	}
	stop()
	if code := <-ended; code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestExitCodesTellProgramsWhatHappened(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	unknown := "01jd0000000000000000000000"
	away := *d
	away.environ = []string{"POSTHORN_URL=http://127.0.0.1:1", "POSTHORN_API_KEY=" + d.key}
	anonymous := *d
	anonymous.environ = []string{"POSTHORN_URL=" + d.url, "POSTHORN_API_KEY=phk_wrong"}
	nobody := *d
	nobody.environ = []string{"POSTHORN_URL=" + d.url, "HOME=" + t.TempDir()}
	for _, c := range []struct {
		at   *desk
		line string
		code int
		says string
	}{
		{d, "endpoints get ep_" + unknown, cli.ExitNotFound, "not_found"},
		{d, "deliveries retry dlv_" + unknown, cli.ExitNotFound, "not_found"},
		{d, "dlq replay dlv_" + unknown, cli.ExitNotFound, "not_found"},
		{d, "endpoints create ftp://example.com", cli.ExitUsage, "https"},
		{d, "endpoints create", cli.ExitUsage, "url"},
		{d, "endpoints create --body {\"ur\":1}", cli.ExitUsage, "ur"},
		{d, "endpoints update ep_" + unknown, cli.ExitUsage, "--help"},
		{d, "emit order.completed {", cli.ExitUsage, "not JSON"},
		{d, "emit order.completed @/nowhere", cli.ExitUsage, "/nowhere"},
		{d, "events list --since yesterday", cli.ExitUsage, "24h"},
		{d, "events list --sideways", cli.ExitUsage, "--help"},
		{d, "deliveries list --status lost", cli.ExitUsage, "pending"},
		{&anonymous, "events list", cli.ExitRefused, "key_unknown"},
		{&nobody, "events list", cli.ExitRefused, "posthorn login"},
		{&away, "login", cli.ExitUnavailable, ""},
	} {
		r := c.at.run(c.line)
		if r.code != c.code || !strings.Contains(r.stderr, c.says) || r.stdout != "" || strings.Contains(r.stderr, d.key) {
			t.Errorf("posthorn %s: exit code %d, want %d\n%s%s", c.line, r.code, c.code, r.stdout, r.stderr)
		}
	}
}

func TestLoginRemembersForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	home := t.TempDir()
	d.environ, d.stdin = []string{"HOME=" + home}, d.key+"\n"
	if text := d.ok(nil, "login "+d.url); !strings.Contains(text, "Acme ("+d.tenant+")") || strings.Contains(text, d.key) {
		t.Errorf("said %s", text)
	}
	file := filepath.Join(home, ".config", "posthorn", "client.json")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	d.stdin = ""
	d.ok(nil, "events list")
	// A key is not sent to a server that it was not stored with.
	d.environ = []string{"HOME=" + home, "POSTHORN_URL=http://127.0.0.1:1"}
	if r := d.run("events list"); r.code != cli.ExitRefused || !strings.Contains(r.stderr, d.url) {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
	// What the environment says wins.
	d.environ = []string{"HOME=" + home, "POSTHORN_API_KEY=phk_wrong"}
	if r := d.run("events list"); r.code != cli.ExitRefused || !strings.Contains(r.stderr, "key_unknown") {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
	// A wrong key is not remembered.
	d.environ, d.stdin = []string{"HOME=" + home}, "phk_wrong\n"
	if r := d.run("login " + d.url); r.code != cli.ExitRefused {
		t.Errorf("exit code %d", r.code)
	}
	d.stdin = ""
	d.ok(nil, "events list")
	d.ok(nil, "logout")
	if r := d.run("events list"); r.code != cli.ExitRefused {
		t.Errorf("after the logout: exit code %d", r.code)
	}
}

func TestAPlatformKeyNamesItsTenant(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	var m, k made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
	succeed(t, environ, &k, "key", "create", "--platform", "--scopes", "all", "--json")
	p := program(t, environ, Parts{Web: true})
	d := &desk{t: t, url: p.URL(), environ: []string{"POSTHORN_URL=" + p.URL(), "POSTHORN_API_KEY=" + k.APIKey}}
	d.ok(nil, "emit order.completed {} --tenant "+m.TenantID)
	d.environ = append(d.environ, "POSTHORN_TENANT="+m.TenantID)
	var list []thing
	if d.ok(&list, "events list --json"); len(list) != 1 {
		t.Errorf("listed %+v", list)
	}
}

func TestAQueueIsMadeAndChangedByFlags(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var made struct {
		ID, Kind, URL string
		SQS           struct{ Region string }
	}
	d.stdin = "right\n"
	d.ok(&made, "endpoints create --json --sqs https://sqs.eu-west-1.amazonaws.com/123456789012/webhooks --access-key-id AKIDEXAMPLE --secret-access-key -")
	if made.Kind != "sqs" || made.URL != "https://sqs.eu-west-1.amazonaws.com/123456789012/webhooks" || made.SQS.Region != "eu-west-1" {
		t.Errorf("made %+v", made)
	}
	if r := d.run("endpoints update " + made.ID + " --region us-east-1"); r.code == 0 || !strings.Contains(r.stderr, "Send the secret access key again") {
		t.Errorf("%+v", r)
	}
}

func TestASourceIsManagedByFlags(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var made struct {
		ID, Kind, Status, Mapping string
		RabbitMQ                  struct{ Queue, Username string }
	}
	d.stdin = "right\n"
	d.ok(&made, "sources create --json orders --rabbitmq amqps://rabbitmq.example.com/shop --queue in --user anna --password -")
	if made.Kind != "rabbitmq" || made.RabbitMQ.Queue != "in" || made.RabbitMQ.Username != "anna" || made.Mapping != "body" {
		t.Errorf("made %+v", made)
	}
	d.ok(&made, "sources update --json "+made.ID+" --queue other")
	if made.RabbitMQ.Queue != "other" {
		t.Errorf("changed %+v", made)
	}
	// A flag that two kinds have is about the source's own.
	if r := d.run("sources update " + made.ID + " --user berta"); r.code == 0 || !strings.Contains(r.stderr, "Send the password again") {
		t.Errorf("%+v", r)
	}
	if r := d.run("sources create a --rabbitmq amqps://rabbitmq.example.com/shop"); r.code == 0 || !strings.Contains(r.stderr, "--queue, --user, --password") {
		t.Errorf("%+v", r)
	}
	if r := d.run("sources create a"); r.code == 0 || !strings.Contains(r.stderr, "A source needs its queue") {
		t.Errorf("%+v", r)
	}
	d.ok(&made, "sources pause --json "+made.ID)
	if made.Status != "paused" {
		t.Errorf("paused %+v", made)
	}
	d.ok(nil, "sources delete "+made.ID)
}

func TestABucketIsMadeAndChangedByFlags(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var made struct {
		ID, Kind, URL string
		S3            struct {
			Region      string
			Gzip        bool
			KeyTemplate string `json:"key_template"`
			PathStyle   bool   `json:"path_style"`
		}
	}
	d.stdin = "right\n"
	d.ok(&made, "endpoints create --json --s3 acme-events --region eu-west-1 --gzip on --key-template in/{id} --access-key-id AKIDEXAMPLE --secret-access-key -")
	if made.Kind != "s3" || made.URL != "s3://acme-events/in/" || made.S3.Region != "eu-west-1" || !made.S3.Gzip || made.S3.PathStyle {
		t.Errorf("made %+v", made)
	}
	d.ok(&made, "endpoints update --json "+made.ID+" --gzip off --key-template {id}")
	if made.S3.Gzip || made.S3.KeyTemplate != "{id}" {
		t.Errorf("changed %+v", made)
	}
	// A flag that two kinds have is about the endpoint's own.
	if r := d.run("endpoints update " + made.ID + " --region us-east-1"); r.code == 0 || !strings.Contains(r.stderr, "Send the secret access key again") {
		t.Errorf("%+v", r)
	}
	if r := d.run("endpoints create --s3 acme-events --topic a"); r.code == 0 || !strings.Contains(r.stderr, "different kinds") {
		t.Errorf("%+v", r)
	}
	if r := d.run("endpoints create --s3 acme-events"); r.code == 0 || !strings.Contains(r.stderr, "--region, --access-key-id, --secret-access-key") {
		t.Errorf("%+v", r)
	}
}

func TestAnExchangeIsMadeAndChangedByFlags(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var made struct {
		ID, Kind, URL string
		RabbitMQ      struct {
			Username   string
			RoutingKey string `json:"routing_key"`
		}
	}
	d.stdin = "right\n"
	d.ok(&made, "endpoints create --json --rabbitmq amqps://rabbitmq.example.com/shop --exchange webhooks --user anna --password -")
	if made.Kind != "rabbitmq" || made.URL != "amqps://rabbitmq.example.com:5671/shop/webhooks" || made.RabbitMQ.Username != "anna" {
		t.Errorf("made %+v", made)
	}
	d.ok(&made, "endpoints update --json "+made.ID+" --routing-key shop.{type}")
	if made.RabbitMQ.RoutingKey != "shop.{type}" || made.RabbitMQ.Username != "anna" {
		t.Errorf("changed to %+v", made)
	}
}

func TestATopicIsMadeAndChangedByFlags(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var made struct {
		ID, Kind, URL string
		Kafka         struct{ SASL struct{ Username string } }
	}
	d.stdin = "right\n"
	d.ok(&made, "endpoints create --json --kafka b1.example.com:9092,b2.example.com:9092 --topic orders --sasl scram-sha-512 --user anna --password - --ordering key")
	if made.Kind != "kafka" || made.URL != "kafka://b1.example.com:9092/orders" || made.Kafka.SASL.Username != "anna" {
		t.Errorf("made %+v", made)
	}
	d.ok(&made, "endpoints update --json "+made.ID+" --topic refunds")
	if made.URL != "kafka://b1.example.com:9092/refunds" || made.Kafka.SASL.Username != "anna" {
		t.Errorf("changed to %+v", made)
	}
	for given, want := range map[string]string{"@../domain/endpoint/testdata/authority.pem": "-----BEGIN CERTIFICATE-----", "none": ""} {
		var now struct {
			Kafka struct {
				CA string `json:"ca_certificate"`
			}
		}
		d.stdin = "right\n"
		if d.ok(&now, "endpoints update --json "+made.ID+" --ca-certificate "+given+" --sasl scram-sha-512 --user anna --password -"); !strings.HasPrefix(now.Kafka.CA, want) || want == "" && now.Kafka.CA != "" {
			t.Errorf("%s: %+v", given, now)
		}
	}
	if r := d.run("endpoints update " + made.ID + " --sasl PLAIN"); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "--user") {
		t.Errorf("%+v", r)
	}
}

func TestColoursAreForTerminalsWhosePersonDidNotSayNo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	to := echo(t, func() int { return http.StatusOK })
	d.ok(nil, "endpoints create "+to.URL)
	for _, c := range []struct {
		terminal bool
		environ  string
		want     bool
	}{{true, "X=", true}, {true, "NO_COLOR=1", false}, {false, "X=", false}} {
		var stdout bytes.Buffer
		a := &app{
			args:     []string{"endpoints", "list"},
			environ:  append(slices.Clone(d.environ), c.environ),
			stdout:   &stdout,
			stderr:   io.Discard,
			terminal: c.terminal,
		}
		if code := a.run(t.Context()); code != cli.ExitOK || strings.Contains(stdout.String(), "\x1b[") != c.want {
			t.Errorf("%+v: exit code %d, %q", c, code, stdout.String())
		}
	}
}

func TestWordsAreCompleted(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"e":                               "egress-proxy emit endpoints events export",
		"endpoints ":                      "certificate-request create delete failures get list mute pause recover replay-missing resume rewind secret test test-connection transform unmute update verify",
		"endpoints secret r":              "rotate",
		"deliveries list --sta":           "--status",
		"deliveries list --status ca":     "canceled",
		"completion ":                     "bash fish zsh",
		"deliveries get --js":             "--json",
		"__":                              "",
		"deliveries list --status held z": "",
	} {
		words := strings.Split(line, " ")
		r := command(t, nil, append([]string{"__complete", "--"}, words...)...)
		if got := strings.Join(strings.Fields(r.stdout), " "); got != want || r.code != exitOK {
			t.Errorf("%q: got %q, want %q (%s)", line, got, want, r.stderr)
		}
	}
}

func TestCompletionScriptsAreGoodToTheirShells(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		r := command(t, nil, "completion", shell)
		if r.code != exitOK || !strings.Contains(r.stdout, "__complete") {
			t.Fatalf("%s: %s%s", shell, r.stdout, r.stderr)
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			continue // its script can't be tried here
		}
		check := exec.CommandContext(t.Context(), path, "-n")
		check.Stdin = strings.NewReader(r.stdout)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
}

func TestBashCompletes(t *testing.T) {
	t.Parallel()
	bash := need.Program(t, "bash")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), bash, "-c", `posthorn() { "$SELF" "$@"; }
source <(posthorn completion bash)
COMP_WORDS=(posthorn endpoints secret r); COMP_CWORD=3; _posthorn; echo "${COMPREPLY[@]}"
COMP_WORDS=(posthorn deliveries list --status ""); COMP_CWORD=4; _posthorn; echo "${COMPREPLY[@]}"`)
	shell.Env = append(os.Environ(), processVariable+"=1", "SELF="+self)
	out, err := shell.CombinedOutput()
	if want := "rotate\nall_failed canceled dead_letter delivered expired failed held on_hold pending retrying\n"; err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestThePageOfTheCommandLineNamesEveryCommandAndFlag(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := kong.New(new(cli.New()))
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(string(page), "\n")
	leaves := parser.Model.Leaves(true)
	for _, leaf := range leaves {
		words := strings.Fields(leaf.Path())
		group, last := words[0], words[len(words)-1]
		named := slices.ContainsFunc(rows, func(row string) bool {
			return strings.HasPrefix(row, "| `") && strings.Contains(row, "`"+group) && (strings.Contains(row, "`"+last) ||
				strings.Contains(row, " "+last+"`") || strings.Contains(row, " "+last+" "))
		})
		if !named && last != "bash" {
			t.Errorf("docs/cli.md does not name %s", leaf.Path())
		}
		for _, flag := range leaf.Flags {
			if !regexp.MustCompile("`--" + flag.Name + "[` ]").Match(page) {
				t.Errorf("docs/cli.md does not name --%s of %s", flag.Name, leaf.Path())
			}
		}
	}
	if len(leaves) < 25 {
		t.Errorf("%d commands: were they read?", len(leaves))
	}
}
