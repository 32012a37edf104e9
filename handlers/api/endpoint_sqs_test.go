package api_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"posthorn/domain/id"
)

func someQueue(more map[string]any) map[string]any {
	q := map[string]any{
		"queue_url":         "https://sqs.eu-west-1.amazonaws.com/123456789012/webhooks",
		"access_key_id":     "AKIDEXAMPLE",
		"secret_access_key": "canary-secret",
	}
	for name, value := range more {
		q[name] = value
	}
	return map[string]any{"kind": "sqs", "sqs": q}
}

func TestAQueueIsAnEndpointWhoseSecretNobodySees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	made := w.do("POST", "/api/v1/endpoints", tn.key, someQueue(nil)).want(http.StatusCreated)
	if made.text("url") != "https://sqs.eu-west-1.amazonaws.com/123456789012/webhooks" || made.text("sqs.region") != "eu-west-1" ||
		made.text("sqs.access_key_id") != "AKIDEXAMPLE" || made.text("verification") != "simple" || strings.Contains(string(made.Body), "canary") {
		t.Errorf("got %s", made.Body)
	}
	patch := func(change map[string]any) *answer {
		return w.do("PATCH", "/api/v1/endpoints/"+made.text("id"), tn.key, map[string]any{"sqs": change})
	}
	patch(map[string]any{"secret_access_key": "***"}).want(http.StatusOK)
	for _, change := range []map[string]any{{"queue_url": "https://evil.example.com/1/webhooks"}, {"region": "us-east-1"}, {"access_key_id": "OTHER"}} {
		patch(change).problem(http.StatusBadRequest, "sqs_secret_needed", "sqs.secret_access_key")
	}
	if n := one[int](w, "SELECT count(*)::int FROM endpoints WHERE id = $1 AND kind = 'sqs' AND connection IS NOT NULL AND position('canary'::bytea IN connection) = 0", w.uuid(id.Endpoint, made.text("id"))); n != 1 {
		t.Error("the connection is not sealed")
	}
}

func TestTheExampleOfTheSQSPageMakesAnEndpoint(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/sqs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "\n```json\n")
	example, _, _ = strings.Cut(example, "```")
	w := newWorld(t)
	if a := w.do("POST", "/api/v1/endpoints", w.tenant("a").key, example).want(http.StatusCreated); a.text("sqs.region") != "eu-west-1" {
		t.Errorf("got %s", a.Body)
	}
}

func TestAnInvalidQueueIsRejectedByField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	for _, tt := range []struct {
		body        map[string]any
		code, field string
	}{
		{map[string]any{"kind": "sqs"}, "sqs_missing", "sqs"},
		{map[string]any{"url": hook, "sqs": someQueue(nil)["sqs"]}, "sqs_unwanted", "sqs"},
		{someQueue(map[string]any{"queue_url": "https://sqs.eu-west-1.amazonaws.com/?Action=DeleteQueue"}), "sqs_queue_malformed", "sqs.queue_url"},
		{someQueue(map[string]any{"queue_url": "https://sqs.eu-west-1.amazonaws.com/webhooks"}), "sqs_queue_malformed", "sqs.queue_url"},
		{someQueue(map[string]any{"queue_url": "http://sqs.eu-west-1.amazonaws.com/1/webhooks"}), "endpoint_url_refused", "sqs.queue_url"},
		{someQueue(map[string]any{"queue_url": "https://10.0.0.1/1/webhooks", "region": "eu-west-1"}), "endpoint_url_refused", "sqs.queue_url"},
		{someQueue(map[string]any{"queue_url": "https://sqs.example.com/1/webhooks"}), "sqs_region_malformed", "sqs.region"},
		{someQueue(map[string]any{"access_key_id": "a b"}), "sqs_credentials_malformed", "sqs.access_key_id"},
		{someQueue(map[string]any{"secret_access_key": "a\nb"}), "sqs_credentials_malformed", "sqs.secret_access_key"},
	} {
		w.do("POST", "/api/v1/endpoints", tn.key, tt.body).problem(http.StatusBadRequest, tt.code, tt.field)
	}
}
