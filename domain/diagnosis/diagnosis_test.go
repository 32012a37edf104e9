package diagnosis

import (
	"strings"
	"testing"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/pause"
)

func TestEachFailureAndStatusIsSaidInWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		failure    delivery.Failure
		status     int
		problem    health.Problem
		title, fix string
	}{
		{delivery.FailDNS, 0, health.ProblemDNS, "The host name was not found", "DNS records"},
		{delivery.FailConnect, 0, health.ProblemConnect, "No connection", "listens"},
		{delivery.FailTLS, 0, health.ProblemTLS, "No secure connection", "certificate"},
		{delivery.FailTimeout, 0, health.ProblemTimeout, "Timed out", "Respond first"},
		{delivery.FailReset, 0, health.ProblemReset, "Connection closed early", "load balancer"},
		{delivery.FailBlocked, 0, health.ProblemBlocked, "Blocked address", "public address"},
		{delivery.FailProtocol, 0, health.ProblemProtocol, "Not an HTTP response", "listens"},
		{delivery.FailInternal, 0, health.ProblemInternal, "Not sent", "format and secrets"},
		{delivery.FailToken, 0, health.ProblemToken, "No access token", "token URL"},
		{delivery.FailProxy, 0, health.ProblemProxy, "The platform's proxy failed", "operators"},
		{delivery.FailDNS, 200, health.ProblemDNS, "The host name was not found", "DNS records"}, // a failure wins
		{delivery.FailNone, 200, "", "Delivered", ""},
		{delivery.FailNone, 204, "", "Delivered", ""},
		{delivery.FailNone, 301, health.ProblemRedirect, "Redirected", "redirect's target"},
		{delivery.FailNone, 308, health.ProblemRedirect, "Redirected", "redirect's target"},
		{delivery.FailNone, 400, health.ProblemRejected, "Rejected as malformed", "body"},
		{delivery.FailNone, 401, health.ProblemAuth, "Not authorized", "secret"},
		{delivery.FailNone, 403, health.ProblemAuth, "Forbidden", "firewall"},
		{delivery.FailNone, 404, health.ProblemURL, "URL not found", "path"},
		{delivery.FailNone, 405, health.ProblemRejected, "Method not allowed", "POST"},
		{delivery.FailNone, 408, health.ProblemTimeout, "Timed out", "Respond first"},
		{delivery.FailNone, 409, health.ProblemRejected, "Conflict", "Treat 409 as delivered"},
		{delivery.FailNone, 410, health.ProblemURL, "Gone", "resume"},
		{delivery.FailNone, 413, health.ProblemRejected, "Body too large", "limit"},
		{delivery.FailNone, 415, health.ProblemRejected, "Content type rejected", "application/json"},
		{delivery.FailNone, 418, health.ProblemRejected, "Rejected", "log"},
		{delivery.FailNone, 422, health.ProblemRejected, "Rejected as invalid", "data"},
		{delivery.FailNone, 429, health.ProblemThrottled, "Too many requests", "limit"},
		{delivery.FailNone, 500, health.ProblemServer, "Server error", "log"},
		{delivery.FailNone, 502, health.ProblemServer, "Server error", "proxy"},
		{delivery.FailNone, 503, health.ProblemServer, "Server error", "Retry-After"},
		{delivery.FailNone, 504, health.ProblemServer, "Server error", "Respond first"},
		{delivery.FailNone, 599, health.ProblemServer, "Server error", "log"},
		{delivery.FailNone, 101, health.ProblemProtocol, "Not an HTTP response", "listens"},
		{delivery.FailNone, 0, health.ProblemProtocol, "Not an HTTP response", "listens"},
	} {
		got := Attempt(endpoint.HTTP, delivery.Result{Failure: c.failure, Status: c.status}, 15*time.Second, Response{})
		if got.Problem != c.problem || got.Title != c.title || !strings.Contains(got.Fix, c.fix) ||
			!strings.HasSuffix(got.Detail, ".") || got.Next != "" {
			t.Errorf("%s %d: %+v", c.failure, c.status, got)
		}
		if c.fix == "" && got.Fix != "" {
			t.Errorf("%s %d is no problem, and is to be fixed: %s", c.failure, c.status, got.Fix)
		}
	}
	if got := Attempt(endpoint.HTTP, delivery.Result{Failure: delivery.FailTimeout}, 15*time.Second, Response{}); !strings.Contains(got.Detail, "15 seconds") {
		t.Errorf("a time-out does not say how long: %s", got.Detail)
	}
}

func TestEachProblemIsNamed(t *testing.T) {
	t.Parallel()
	for _, kind := range endpoint.Kinds() {
		eachProblemIsNamed(t, kind)
	}
}

func eachProblemIsNamed(t *testing.T, kind endpoint.Kind) {
	t.Helper()
	for failure := delivery.FailNone; failure <= delivery.FailProxy; failure++ {
		for status := range 700 {
			got := Attempt(kind, delivery.Result{Failure: failure, Status: status}, 0, Response{})
			if got.Title == "" || got.Detail == "" || (got.Fix == "") != (got.Problem == "") {
				t.Fatalf("%s: %s %d: %+v", kind, failure, status, got)
			}
		}
	}
}

func TestATopicIsSpokenOfInKafkasWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		result     delivery.Result
		title, fix string
	}{
		{delivery.OfKafka(""), "Delivered", ""},
		{delivery.OfKafka("SASL_AUTHENTICATION_FAILED"), "Not authenticated", "password"},
		{delivery.OfKafka("TOPIC_AUTHORIZATION_FAILED"), "Not permitted", "WRITE"},
		{delivery.OfKafka("UNKNOWN_TOPIC_OR_PARTITION"), "No such topic", "Create the topic"},
		{delivery.OfKafka("MESSAGE_TOO_LARGE"), "Record too large", "max.message.bytes"},
		{delivery.OfKafka("INVALID_RECORD"), "Record rejected", "key"},
		{delivery.OfKafka("THROTTLING_QUOTA_EXCEEDED"), "Throttled", "quota"},
		{delivery.OfKafka("NOT_ENOUGH_REPLICAS"), "Broker error", "replicas"},
		{delivery.Result{Failure: delivery.FailBlocked}, "Blocked address", "advertised.listeners"},
		{delivery.Result{Failure: delivery.FailTimeout}, "Timed out", "timeout"},
		{delivery.Result{Failure: delivery.FailConnect}, "No connection", "firewall"},
	} {
		got := Attempt(endpoint.Kafka, c.result, 15*time.Second, Response{})
		if got.Title != c.title || !strings.Contains(got.Fix, c.fix) || strings.Contains(got.Detail+got.Fix, "URL") {
			t.Errorf("%+v: %+v", c.result, got)
		}
	}
	if got := Of(Facts{
		Kind:     endpoint.Kafka,
		Status:   delivery.Delivered,
		Attempts: 1,
		Last:     delivery.Result{Status: 200},
	}); !strings.Contains(got.Detail, "replicas") {
		t.Errorf("delivered: %+v", got)
	}
}

func TestADeliveryIsDiagnosedByItsState(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		facts            Facts
		title, fix, next string
		problem          health.Problem
		detail           string
		nothingToDo      bool
	}{
		"delivered at once": {
			facts:       Facts{Status: delivery.Delivered, Attempts: 1, Last: delivery.Result{Status: 200}},
			title:       "Delivered",
			detail:      "returned 200.",
			next:        "replay",
			nothingToDo: true,
		},
		"delivered late": {
			facts:       Facts{Status: delivery.Delivered, Attempts: 3, Last: delivery.Result{Status: 204}},
			title:       "Delivered",
			detail:      "3 attempts",
			nothingToDo: true,
		},
		"a 409 that counts": {
			facts:       Facts{Status: delivery.Delivered, Attempts: 1, Last: delivery.Result{Status: 409}, AcceptConflict: true},
			title:       "Delivered",
			detail:      "already has the event",
			nothingToDo: true,
		},
		"pending": {
			facts:       Facts{Status: delivery.Pending, Wait: waits(condition.Next)},
			title:       "Sent next",
			next:        "in a moment",
			nothingToDo: true,
		},
		"its row has gone": {facts: Facts{Status: delivery.Pending}, title: "Being processed", next: "in a moment", nothingToDo: true},
		"scheduled": {
			facts:       Facts{Status: delivery.Pending, Wait: waits(condition.Deferred)},
			title:       "Scheduled",
			next:        "when it is due",
			nothingToDo: true,
		},
		"behind a breaker": {
			facts:       Facts{Status: delivery.Pending, Wait: waits(condition.Breaker)},
			title:       "On hold: the endpoint is failing",
			detail:      "circuit breaker open",
			next:        "next probe",
			nothingToDo: true,
		},
		"a probe that failed": {
			facts:   Facts{Status: delivery.Retrying, Attempts: 2, Last: delivery.Result{Status: 500}, Wait: waits(condition.Breaker)},
			title:   "On hold: the endpoint is failing",
			fix:     "log",
			detail:  "returned 500",
			problem: health.ProblemServer,
		},
		"retrying": {
			facts: Facts{
				Status:   delivery.Retrying,
				Attempts: 2,
				Last:     delivery.Result{Status: 500},
				Wait:     waits(condition.Retry),
			},
			title:   "Server error",
			fix:     "log",
			next:    "retried",
			problem: health.ProblemServer,
		},
		"held, unverified": {facts: Facts{Status: delivery.Held, Wait: waits(condition.EndpointUnverified)}, title: "On hold: the endpoint is not verified", fix: "Verify", next: "7 days it fails"},
		"held, paused":     {facts: Facts{Status: delivery.Held, Wait: waits(condition.EndpointPaused)}, title: "On hold: the endpoint is paused", fix: "Resume", detail: "paused"},
		"held, disabled": {
			facts: Facts{
				Status:   delivery.Held,
				Wait:     waits(condition.EndpointDisabled),
				Attempts: 4,
				Last:     delivery.Result{Status: 401},
			},
			title:   "On hold: the endpoint is disabled",
			fix:     "resume",
			problem: health.ProblemAuth,
		},
		"exhausted": {
			facts: Facts{
				Status:   delivery.Failed,
				Reason:   delivery.Exhausted,
				Attempts: 10,
				Last:     delivery.Result{Failure: delivery.FailDNS},
			},
			title:   "The host name was not found",
			fix:     "DNS",
			next:    "all 10 attempts",
			problem: health.ProblemDNS,
		},
		"exhausted by one attempt": {
			facts:   Facts{Status: delivery.Failed, Reason: delivery.Exhausted, Attempts: 1, Last: delivery.Result{Status: 500}},
			title:   "Server error",
			fix:     "log",
			next:    "the only attempt of the schedule was made",
			problem: health.ProblemServer,
		},
		"rejected": {
			facts:   Facts{Status: delivery.Failed, Reason: delivery.Rejected, Attempts: 1, Last: delivery.Result{Status: 422}},
			title:   "Rejected as invalid",
			next:    "doesn't retry 4xx",
			fix:     "data",
			problem: health.ProblemRejected,
		},
		"gone": {
			facts:   Facts{Status: delivery.Failed, Reason: delivery.Gone, Attempts: 1, Last: delivery.Result{Status: 410}},
			title:   "Gone",
			next:    "is disabled",
			fix:     "resume",
			problem: health.ProblemURL,
		},
		"expired, untried":       {facts: Facts{Status: delivery.Failed, Reason: delivery.RetentionEnded}, title: "Retention ended", fix: "Emit", next: "nothing left"},
		"waits until its expiry": {facts: Facts{Status: delivery.Held, Wait: waits(condition.EndpointPaused), Expires: true}, title: "On hold: the endpoint is paused", fix: "Resume", next: "not sent after its expiry"},
		"past its expiry":        {facts: Facts{Status: delivery.Expired, Reason: delivery.PastExpiry}, title: "Expired", next: "doesn't expire"},
		"deleted":                {facts: Facts{Status: delivery.Failed, Reason: delivery.EndpointDeleted}, title: "Endpoint deleted", fix: "new endpoint"},
		"internal": {
			facts: Facts{
				Status:   delivery.Failed,
				Reason:   delivery.Internal,
				Attempts: 1,
				Last:     delivery.Result{Failure: delivery.FailInternal},
			},
			title:   "Not sent",
			fix:     "secrets",
			problem: health.ProblemInternal,
		},
		"failed of no reason": {facts: Facts{Status: delivery.Failed}, title: "Failed", next: "replay", nothingToDo: true},
		"canceled":            {facts: Facts{Status: delivery.Canceled}, title: "Canceled", next: "replay", nothingToDo: true},
		"canceled after tries": {
			facts:       Facts{Status: delivery.Canceled, Attempts: 2, Last: delivery.Result{Status: 503}},
			title:       "Canceled",
			detail:      "after 2 attempts",
			problem:     health.ProblemServer,
			nothingToDo: true,
		},
		"canceled with its endpoint": {
			facts:   Facts{Status: delivery.Canceled, Reason: delivery.EndpointDeleted, Attempts: 1, Last: delivery.Result{Status: 500}},
			title:   "Endpoint deleted",
			fix:     "new endpoint",
			problem: health.ProblemServer,
		},
	} {
		got := Of(c.facts)
		if got.Title != c.title || got.Problem != c.problem || !strings.Contains(got.Detail, c.detail) ||
			!strings.Contains(got.Fix, c.fix) || !strings.Contains(got.Next, c.next) {
			t.Errorf("%s: %+v", name, got)
		}
		if got.Detail == "" || got.Next == "" || c.nothingToDo && got.Fix != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// waits is a wait for a reason.
func waits(r condition.Reason) condition.Wait { return condition.Wait{Reason: r} }

func TestEveryWaitIsDiagnosed(t *testing.T) {
	t.Parallel()
	for _, r := range condition.Reasons() {
		w := condition.Wait{Reason: r, Scope: pause.Host}
		d := Of(Facts{Status: delivery.Pending, Wait: w})
		if d.Title != w.Title() || d.Detail != w.Detail() || d.Next == "" {
			t.Errorf("%s: %+v", r, d)
		}
		tried := Of(Facts{Status: delivery.Retrying, Attempts: 1, Last: delivery.Result{Status: 500}, Wait: w})
		if tried.Problem != health.ProblemServer || !strings.Contains(tried.Detail, "500") || tried.Next == "" {
			t.Errorf("%s, after an attempt: %+v", r, tried)
		}
		if d := Of(Facts{Status: delivery.Delivered, Last: delivery.Result{Status: 200}, Wait: w}); d.Title != "Delivered" {
			t.Errorf("%s, delivered: %+v", r, d)
		}
	}
}
