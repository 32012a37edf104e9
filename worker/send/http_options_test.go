package send

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/db/sql"
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
