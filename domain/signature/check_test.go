package signature

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestADebuggerTellsWhichPartFails(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := Message{EventID: "evt_1", DeliveryID: "dlv_1", EndpointID: "ep_1", Type: "a.b", CreatedAt: at, Data: []byte(`{"a":1}`)}
	for name, c := range map[string]struct {
		secret string
		now    time.Duration
		change func(http.Header, *[]byte)
		want   string // check=state of what is not passed
	}{
		"good":           {},
		"another secret": {secret: "whsec_OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5", want: "signature=failed"},
		"no secret":      {secret: " ", want: "secret=failed headers=skipped id=skipped timestamp=skipped scheme=skipped signature=skipped"},
		"an old one":     {now: time.Hour, want: "timestamp=failed"},
		"from the future, and changed": {
			now:    -time.Hour,
			change: func(_ http.Header, b *[]byte) { *b = append(*b, ' ') },
			want:   "timestamp=failed signature=failed",
		},
		"a changed body":     {change: func(_ http.Header, b *[]byte) { *b = []byte(strings.Replace(string(*b), "1", "2", 1)) }, want: "signature=failed"},
		"no signature":       {change: func(h http.Header, _ *[]byte) { h.Del("webhook-signature") }, want: "headers=failed id=skipped timestamp=skipped scheme=skipped signature=skipped"},
		"a time of no shape": {change: func(h http.Header, _ *[]byte) { h.Set("webhook-timestamp", "noon") }, want: "timestamp=failed scheme=skipped signature=skipped"},
		"an id with a stop":  {change: func(h http.Header, _ *[]byte) { h.Set("webhook-id", "a.b") }, want: "id=failed timestamp=skipped scheme=skipped signature=skipped"},
		"an unknown scheme":  {change: func(h http.Header, _ *[]byte) { h.Set("webhook-signature", "v9,abc") }, want: "scheme=failed signature=skipped"},
		"old and no scheme":  {now: time.Hour, change: func(h http.Header, _ *[]byte) { h.Set("webhook-signature", "v9,abc") }, want: "timestamp=failed scheme=failed signature=skipped"},
	} {
		key, err := ParseKey(Standard, secret)
		if err != nil {
			t.Fatal(err)
		}
		body := AppendBody(nil, Standard, m)
		h := http.Header{}
		for _, one := range (Signing{Format: Standard, Keys: []Key{key}}).Headers(nil, m, body, Send{At: at, Attempt: 1}) {
			h.Set(one.Name, one.Value)
		}
		if c.change != nil {
			c.change(h, &body)
		}
		if c.secret == "" {
			c.secret = secret
		}
		findings, good := Wire{Format: Standard}.Debug(h.Get, body, c.secret, at.Add(c.now), DefaultTolerance)
		var got []string
		for _, f := range findings {
			if f.State != Passed {
				got = append(got, string(f.Check)+"="+string(f.State))
			}
			if (f.Detail != "") != (f.State == Broken) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if strings.Join(got, " ") != c.want || good != (c.want == "") || len(findings) != 6 {
			t.Errorf("%s: %v, good %v", name, got, good)
		}
	}
}

func TestADebuggerLooksAtWhatTheFormatHas(t *testing.T) {
	t.Parallel()
	for format, want := range map[Format]int{Standard: 6, XWebhook: 5, TV1: 5, BodyHex: 4, Raw: 5} {
		findings, good := Wire{Format: format}.Debug(
			func(string) string { return "" },
			nil,
			"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3",
			time.Unix(0, 0),
			DefaultTolerance,
		)
		if len(findings) != want || good {
			t.Errorf("%s: %+v", format, findings)
		}
	}
}
