package diagnosis

import (
	"strings"
	"testing"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
)

func TestARejectionByAFilterNamesItAndTheRule(t *testing.T) {
	t.Parallel()
	for filter, rule := range rules {
		if !strings.HasSuffix(rule, ".") || !strings.Contains(rule, "{path}") {
			t.Errorf("%s: %s", filter, rule)
		}
	}
	r := delivery.Result{Status: 403}
	response := Response{URL: "https://shop.example.com/hooks?token=***", Headers: "Cf-Mitigated: challenge"}
	d := Attempt(endpoint.HTTP, r, time.Second, response)
	if d.Title != "Blocked by Cloudflare" || !strings.Contains(d.Detail, "cf-mitigated: challenge") ||
		!strings.Contains(d.Fix, `(http.host eq "shop.example.com" and http.request.uri.path eq "/hooks"`) || strings.Contains(d.Fix, "{") {
		t.Errorf("%+v", d)
	}
	if d := Attempt(endpoint.HTTP, r, time.Second, Response{Headers: "Server: nginx"}); d.Title != "Forbidden" {
		t.Errorf("a receiver's own 403 is %+v", d)
	}
	// A challenge with a 202 was recorded as a failure.
	r = delivery.Result{Status: 202, Failure: delivery.FailProtocol}
	if d := Attempt(endpoint.HTTP, r, time.Second, Response{Headers: "X-Amzn-Waf-Action: challenge"}); d.Title != "Blocked by AWS WAF" || d.Problem == "" {
		t.Errorf("%+v", d)
	}
	if d := Attempt(endpoint.Kafka, r, time.Second, response); strings.HasPrefix(d.Title, "Blocked by") {
		t.Errorf("a broker has no filter: %+v", d)
	}
}
