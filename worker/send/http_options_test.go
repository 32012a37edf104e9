package send

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/transform"
)

// TestTheHandshakeOfCloudEventsNeedsConsent: a receiver permits this platform's origin by name or by *, and its rate is
// read. A 200 alone is no consent.
func TestTheHandshakeOfCloudEventsNeedsConsent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		origin, rate string
		verified     bool
		perSecond    int
		detail       string
	}{
		"this origin":            {"posthorn.example.com", "", true, 0, ""},
		"any origin":             {"*", "*", true, 0, ""},
		"a rate":                 {"*", "600", true, 10, ""},
		"no header":              {"", "", false, 0, "without the header WebHook-Allowed-Origin"},
		"another origin":         {"other.example.com", "", false, 0, "permits requests from other.example.com"},
		"a rate that is too low": {"*", "30", false, 0, "at least 60"},
		"no rate":                {"*", "many", false, 0, "is a number of requests per minute"},
	} {
		var seen http.Request
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = *r
			if c.origin != "" {
				w.Header().Set("WebHook-Allowed-Origin", c.origin)
			}
			if c.rate != "" {
				w.Header().Set("WebHook-Allowed-Rate", c.rate)
			}
		}))
		rate := int32(50)
		_, detail, verified, permitted := newTestSender(t).Verify(t.Context(), someDestination(t, server.URL), Ask{Mode: modeOptions, Origin: "posthorn.example.com", Rate: &rate},
			sql.PendingVerificationsRow{ID: db.NewID(), Challenge: "abc", Tries: 1})
		server.Close()
		if verified != c.verified || permitted.PerSecond() != c.perSecond || !strings.Contains(detail, c.detail) {
			t.Errorf("%s: %t, %d a second, %q", name, verified, permitted.PerSecond(), detail)
		}
		if seen.Method != http.MethodOptions || seen.Header.Get("WebHook-Request-Origin") != "posthorn.example.com" || seen.Header.Get("WebHook-Request-Rate") != "3000" {
			t.Errorf("%s: %s %v", name, seen.Method, seen.Header)
		}
	}
}

// TestAVerificationIsTransformed: a receiver that wants its own JSON, such as PagerDuty or Slack, accepts no other, and
// a verification opens no incident. A challenge stays as it is, and so does what the transformation can't be applied
// to.
func TestAVerificationIsTransformed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ expression, mode, body string }{
		"simple":            {`{"event_action": data.status == "resolved" ? "resolve" : "trigger"}`, "simple", `{"event_action":"resolve"}`},
		"challenge":         {`{"event_action": "trigger"}`, "challenge", `"challenge":"abc"`},
		"can't be applied":  {`{"total": data.total}`, "simple", `"challenge":"abc"`},
		"no transformation": {"", "simple", `"data":{"challenge":"abc"}`},
	} {
		var body []byte
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { body, _ = io.ReadAll(r.Body) }))
		to := someDestination(t, server.URL)
		if c.expression != "" {
			to.transformations = transform.Versions{{From: 1, T: &transform.Transformation{Kind: transform.CEL, Expression: c.expression}}}
		}
		newTestSender(t).Verify(t.Context(), to, Ask{Mode: c.mode}, sql.PendingVerificationsRow{ID: db.NewID(), Challenge: "abc", Tries: 1})
		server.Close()
		if !strings.Contains(string(body), c.body) {
			t.Errorf("%s: it was sent as %s", name, body)
		}
	}
}
