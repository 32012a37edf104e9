package docs_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"posthorn/domain/delivery"
	"posthorn/domain/retry"
	"posthorn/domain/signature"
)

// The tables of these pages are made from the rules themselves: `go test ./docs -run Rules -update` writes them.
var update = flag.Bool("update", false, "write the generated tables into the docs")

// TestThePagesShowTheRules compares the generated parts of pages, by the name in their markers.
func TestThePagesShowTheRules(t *testing.T) {
	t.Parallel()
	for page, tables := range map[string]map[string]string{
		"delivery.md": {"schedules": schedules(), "answers": answers(), "headers": headers()},
		"kafka.md":    {"kafka": kafka()},
		"rabbitmq.md": {"rabbitmq": broker("confirmed, and routed to a queue", delivery.RabbitMQStatuses(), delivery.OfRabbitMQ)},
		"sqs.md":      {"sqs": broker("the queue has the message", delivery.SQSStatuses(), delivery.OfSQS)},
		"s3.md":       {"s3": broker("the bucket has the object", delivery.S3Statuses(), delivery.OfS3)},
		"health.md":   {"probes": probes(t), "policies": policies(), "warnings": warnings(), "held": held()},
	} {
		showsRules(t, page, tables)
	}
}

func showsRules(t *testing.T, path string, tables map[string]string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := page
	for name, table := range tables {
		begin, end := fmt.Appendf(nil, "<!-- generated: %s -->\n", name), []byte("<!-- end -->\n")
		head, rest, found := bytes.Cut(want, begin)
		_, tail, closed := bytes.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s has no place for the table %q", path, name)
		}
		want = bytes.Join([][]byte{head, begin, []byte(table), end, tail}, nil)
	}
	switch {
	case bytes.Equal(page, want):
	case *update:
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s does not show the rules as they are: go test ./docs -run Rules -update", path)
	}
}

func kafka() string {
	statuses, other := map[string]int{}, delivery.OfKafka("?").Status
	for code := int16(1); code < 200; code++ {
		name := kerr.TypedErrorForCode(code).Message
		if status := delivery.OfKafka(name).Status; status != other {
			statuses[name] = status
		}
	}
	return broker("acknowledged by all replicas in sync", statuses, delivery.OfKafka)
}

// broker is the table of a broker's responses, with the words for its acknowledgment.
func broker(acknowledged string, statuses map[string]int, of func(string) delivery.Result) string {
	by := map[int][]string{}
	for name, status := range statuses {
		by[status] = append(by[status], "`"+name+"`")
	}
	var b strings.Builder
	b.WriteString("| broker response | counts as |\n| --- | --- |\n")
	fmt.Fprintf(&b, "| %s | %d |\n", acknowledged, of("").Status)
	for _, status := range slices.Sorted(maps.Keys(by)) {
		slices.Sort(by[status])
		fmt.Fprintf(&b, "| %s | %d |\n", strings.Join(by[status], ", "), status)
	}
	fmt.Fprintf(&b, "| any other error | %d |\n", of("?").Status)
	return b.String()
}

func schedules() string {
	var b strings.Builder
	b.WriteString("| name | delays | attempts | total time | jitter |\n| --- | --- | --- | --- | --- |\n")
	for _, name := range retry.Names() {
		s, _ := retry.Named(name)
		var waits []string
		var sum time.Duration
		for _, d := range s.Delays {
			waits = append(waits, lasting(d))
			sum += d
		}
		spread := fmt.Sprintf("±%.0f%%", s.Jitter*100)
		if s.Full {
			spread = "full: 1 s to the whole wait"
		}
		if len(waits) == 0 {
			waits, spread = []string{"none"}, "none"
		}
		if name == retry.Default {
			name += "` (default)"
		} else {
			name += "`"
		}
		fmt.Fprintf(&b, "| `%s | %s | %d | %s | %s |\n", name, strings.Join(waits, ", "), s.Attempts(), about(sum), spread)
	}
	return b.String()
}

// lasting writes a delay in its largest whole unit.
func lasting(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d%time.Minute == 0 && d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d%time.Minute == 0:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

func about(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	}
	return fmt.Sprintf("%.1f days", d.Hours()/24)
}

// answers asks the rule what each answer means, by the default policy and with retry_client_errors.
func answers() string {
	var b strings.Builder
	b.WriteString("| response | delivery | endpoint health |\n| --- | --- | --- |\n")
	standard, _ := retry.Named(retry.Default)
	for _, row := range []struct {
		words   string
		results []delivery.Result
	}{
		{"200 to 299", []delivery.Result{{Status: 200}, {Status: 204}, {Status: 299}}},
		{"300 to 399 (redirects are not followed)", []delivery.Result{{Status: 301}, {Status: 308}, {Status: 399}}},
		{"401, 403, 404", []delivery.Result{{Status: 401}, {Status: 403}, {Status: 404}}},
		{"408", []delivery.Result{{Status: 408}}},
		{"409", []delivery.Result{{Status: 409}}},
		{"410", []delivery.Result{{Status: 410}}},
		{"425", []delivery.Result{{Status: 425}}},
		{"429", []delivery.Result{{Status: 429}}},
		{"other 400 to 499", []delivery.Result{{Status: 400}, {Status: 413}, {Status: 422}, {Status: 499}}},
		{"500 to 599", []delivery.Result{{Status: 500}, {Status: 503}, {Status: 599}}},
		{"none: DNS, connection, or TLS failure, reset, timeout, or not HTTP", []delivery.Result{
			{Failure: delivery.FailDNS},
			{Failure: delivery.FailConnect},
			{Failure: delivery.FailTLS},
			{Failure: delivery.FailTimeout},
			{Failure: delivery.FailReset},
			{Failure: delivery.FailProtocol},
		}},
		{"none: a connection that was kept from an earlier request is closed before a byte of the response", []delivery.Result{
			{Failure: delivery.FailReset, Stale: true},
		}},
		{"401 to an access token that was obtained before", []delivery.Result{{Status: 401, Stale: true}}},
		{"none: the authorization server gives no access token, so nothing is sent", []delivery.Result{{Failure: delivery.FailToken}}},
		{"none: the platform's own [proxy](ops/egress.md) fails, so nothing is sent", []delivery.Result{{Failure: delivery.FailProxy}}},
		{"none: the name resolves to a blocked address", []delivery.Result{{Failure: delivery.FailBlocked}}},
	} {
		outcomes := map[string]bool{}
		var outcome, class string
		for _, r := range row.results {
			d := delivery.Decide(delivery.Policy{Schedule: standard}, 1, r, 0.5)
			outcome, class = outcomeWords(d), classWords(d.Class)
			if d.Repeat || r.Failure.Unsent() {
				class = "not counted: says nothing about the endpoint"
			}
			if r.Status != 0 && r.Stale {
				outcome = strings.Replace(outcome, "on a new connection", "with a new token", 1)
			}
			if lenient := delivery.Decide(delivery.Policy{Schedule: standard, RetryClientErrors: true}, 1, r, 0.5); lenient.Status != d.Status {
				outcome += "; with `retry_client_errors` " + outcomeWords(lenient)
			}
			if patient := delivery.Decide(delivery.Policy{Schedule: standard, RetryRefusal: true}, 1, r, 0.5); patient.Status != d.Status {
				outcome = "retried once, then " + outcome + "; with `health_policy.auth_minutes` 0 " + outcomeWords(d) + " immediately"
			}
			if both := delivery.Decide(delivery.Policy{Schedule: standard, RetryClientErrors: true, RetryGone: true}, 1, r, 0.5); r.Status == 410 {
				outcome += "; with `retry_client_errors` and `health_policy.gone` off " + outcomeWords(both)
			}
			if accepting := delivery.Decide(delivery.Policy{Schedule: standard, AcceptConflict: true}, 1, r, 0.5); accepting.Status != d.Status {
				outcome += "; with `accept_conflict` " + outcomeWords(accepting)
			}
			outcomes[outcome+class] = true
		}
		if len(outcomes) != 1 {
			outcome = "NOT ALL ALIKE"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", row.words, outcome, class)
	}
	return b.String()
}

func outcomeWords(d delivery.Decision) string {
	switch {
	case d.Disable != "":
		return "failed, and the endpoint is disabled immediately"
	case d.Status == delivery.Delivered:
		return "delivered"
	case d.Hold > 0:
		return "sent again within 20 seconds, without using up a retry"
	case d.Repeat:
		return "sent again immediately on a new connection, without using up a retry"
	case d.Status == delivery.Retrying:
		return "retried"
	}
	return "failed permanently"
}

func classWords(c delivery.Class) string {
	return map[delivery.Class]string{
		delivery.Success:   "success: all counts are reset",
		delivery.Unhealthy: "unhealthy",
		delivery.Auth:      "authentication failure, counted separately",
		delivery.Throttled: "not counted: the endpoint asks for a lower rate",
		delivery.Neutral:   "not counted: concerns this delivery only",
	}[c]
}

// headers lists what each format sets, with the default prefix.
func headers() string {
	var b strings.Builder
	b.WriteString("| format | deduplicate by | headers |\n| --- | --- | --- |\n")
	for _, f := range signature.Formats() {
		w := signature.Wire{Format: f}
		fmt.Fprintf(&b, "| `%s` | `%s` | `%s` |\n", f, w.DedupeHeader(), strings.Join(w.HeaderNames(), "` `"))
	}
	return b.String()
}
