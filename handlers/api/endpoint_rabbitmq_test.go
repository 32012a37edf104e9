package api_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"posthorn/domain/id"
)

func someExchange(more map[string]any) map[string]any {
	r := map[string]any{"url": "amqps://RabbitMQ.example.com/shop", "exchange": "webhooks", "username": "posthorn", "password": "canary-password"}
	for name, value := range more {
		r[name] = value
	}
	return map[string]any{"kind": "rabbitmq", "rabbitmq": r}
}

func TestAnExchangeIsAnEndpointWhosePasswordNobodySees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	made := w.do("POST", "/api/v1/endpoints", tn.key, someExchange(nil)).want(http.StatusCreated)
	path := "/api/v1/endpoints/" + made.text("id")
	patch := func(change map[string]any) *answer {
		return w.do("PATCH", path, tn.key, map[string]any{"rabbitmq": change})
	}
	// The stored password stays while the broker and the user stay.
	changed := patch(map[string]any{"routing_key": "shop.{type}", "password": "***"}).want(http.StatusOK)
	for a, key := range map[*answer]string{made: "{type}", changed: "shop.{type}"} {
		if a.text("url") != "amqps://rabbitmq.example.com:5671/shop/webhooks" || a.text("rabbitmq.url") != "amqps://rabbitmq.example.com:5671/shop" ||
			a.text("rabbitmq.routing_key") != key || a.text("rabbitmq.username") != "posthorn" || a.text("verification") != "simple" ||
			a.text("status") != "unverified" || strings.Contains(string(a.Body), "canary") {
			t.Errorf("got %s", a.Body)
		}
	}
	for _, change := range []map[string]any{{"url": "amqps://evil.example.com/shop"}, {"url": "amqps://rabbitmq.example.com/other"}, {"username": "other"}} {
		patch(change).problem(http.StatusBadRequest, "rabbitmq_password_needed", "rabbitmq.password")
	}
	patch(map[string]any{"username": "other", "password": "new"}).want(http.StatusOK)
	if n := one[int](w, "SELECT count(*)::int FROM endpoints WHERE id = $1 AND kind = 'rabbitmq' AND connection IS NOT NULL AND position('other'::bytea IN connection) = 0", w.uuid(id.Endpoint, made.text("id"))); n != 1 {
		t.Error("the connection is not sealed")
	}
}

func TestTheExampleOfTheRabbitMQPageMakesAnEndpoint(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/rabbitmq.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "\n```json\n")
	example, _, _ = strings.Cut(example, "```")
	w := newWorld(t)
	if a := w.do("POST", "/api/v1/endpoints", w.tenant("a").key, example).want(http.StatusCreated); a.text("url") != "amqps://rabbitmq.example.com:5671/shop/webhooks" {
		t.Errorf("got %s", a.Body)
	}
}

func TestAnInvalidExchangeIsRejectedByField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	for _, tt := range []struct {
		body        map[string]any
		code, field string
	}{
		{map[string]any{"kind": "rabbitmq"}, "rabbitmq_missing", "rabbitmq"},
		{map[string]any{"url": hook, "rabbitmq": someExchange(nil)["rabbitmq"]}, "rabbitmq_unwanted", "rabbitmq"},
		{someExchange(map[string]any{"url": "https://rabbitmq.example.com"}), "rabbitmq_url_malformed", "rabbitmq.url"},
		{someExchange(map[string]any{"url": "amqps://a:b@rabbitmq.example.com"}), "rabbitmq_url_malformed", "rabbitmq.url"},
		{someExchange(map[string]any{"url": "amqps://rabbitmq.example.com/a/b"}), "rabbitmq_url_malformed", "rabbitmq.url"},
		{someExchange(map[string]any{"url": "amqps://rabbitmq.example.com/a?heartbeat=1"}), "rabbitmq_url_malformed", "rabbitmq.url"},
		{someExchange(map[string]any{"url": "amqps://10.0.0.1/a"}), "server_refused", "rabbitmq.url"},
		{someExchange(map[string]any{"url": "amqp://rabbitmq.example.com"}), "server_refused", "rabbitmq.url"},
		{someExchange(map[string]any{"exchange": "a\nb"}), "rabbitmq_text_malformed", "rabbitmq.exchange"},
		{someExchange(map[string]any{"routing_key": "{type}.{type}"}), "rabbitmq_text_malformed", "rabbitmq.routing_key"},
		{someExchange(map[string]any{"username": strings.Repeat("é", 128)}), "rabbitmq_text_malformed", "rabbitmq.username"},
		{someExchange(map[string]any{"ca_certificate": "x"}), "ca_certificate_refused", "rabbitmq.ca_certificate"},
	} {
		w.do("POST", "/api/v1/endpoints", tn.key, tt.body).problem(http.StatusBadRequest, tt.code, tt.field)
	}
}
