package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"posthorn/client"
)

// example is a fake server, so that the examples run alone.
func example(answers map[string]string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := answers[r.Method+" "+r.URL.RequestURI()]
		if !ok {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			text = `{"type":"/docs/errors/not_found","title":"Not Found","status":404,"code":"not_found","detail":"There is no such object.","request_id":"req_1"}`
		}
		_, _ = fmt.Fprint(w, text)
	}))
}

func Example() {
	server := example(map[string]string{
		"POST /api/v1/events": `{"id":"evt_01jd0000000000000000000000","created_at":"2026-01-31T12:00:00Z","deliveries":2}`,
	})
	defer server.Close()

	c, err := client.New(server.URL, "phk_...") // your server's address, and os.Getenv("POSTHORN_API_KEY")
	if err != nil {
		panic(err)
	}
	event, err := client.NewEmission("order.completed", map[string]any{"order_id": "ord_1", "total": 4200})
	if err != nil {
		panic(err)
	}
	event.Key = new("ord_1")                      // keeps the events of one order in order
	event.IdempotencyKey = new("ord_1.completed") // safe to emit again, even after a crash
	accepted, err := c.Emit(context.Background(), event)
	if err != nil {
		panic(err)
	}
	fmt.Println(accepted.ID, "goes to", accepted.Deliveries, "endpoints")
	// Output: evt_01jd0000000000000000000000 goes to 2 endpoints
}

func ExampleClient_Deliveries() {
	server := example(map[string]string{
		"GET /api/v1/deliveries?status=failed":            `{"data":[{"id":"dlv_2","reason":"exhausted"},{"id":"dlv_1","reason":"rejected"}],"next_cursor":"abc"}`,
		"GET /api/v1/deliveries?cursor=abc&status=failed": `{"data":[{"id":"dlv_0","reason":"gone"}],"next_cursor":null}`,
	})
	defer server.Close()
	c, err := client.New(server.URL, "phk_...")
	if err != nil {
		panic(err)
	}
	failed := client.ListDeliveriesParams{Status: new(client.ListDeliveriesParamsStatusFailed)}
	for delivery, err := range c.Deliveries(context.Background(), failed) {
		if err != nil {
			panic(err)
		}
		reason, _ := delivery.Reason.Get()
		fmt.Println(delivery.ID, reason)
	}
	// Output:
	// dlv_2 exhausted
	// dlv_1 rejected
	// dlv_0 gone
}

func ExampleError() {
	server := example(nil)
	defer server.Close()
	c, err := client.New(server.URL, "phk_...")
	if err != nil {
		panic(err)
	}
	_, err = c.GetEndpoint(context.Background(), "ep_01jd0000000000000000000000")
	var refused *client.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Status, refused.Code, refused.RequestID)
	}
	fmt.Println(client.Code(err) == "not_found")
	// Output:
	// 404 not_found req_1
	// true
}

func ExampleVerifier_Read() {
	verifier := client.Verifier{Secrets: []string{os.Getenv("WEBHOOK_SECRET")}}
	verifier.Secrets = []string{"whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="}
	verifier.Now = func() time.Time { return time.Unix(1700000000, 0) } // the example's signature is of that second

	handler := func(w http.ResponseWriter, r *http.Request) {
		webhook, err := verifier.Read(r)
		if err != nil {
			http.Error(w, "not verified", http.StatusUnauthorized)
			return
		}
		if challenge := webhook.Challenge(); challenge != "" {
			_, _ = fmt.Fprint(w, challenge) // proves that this endpoint wants the events
			return
		}
		fmt.Println(webhook.Type, string(webhook.Data)) // act once on each webhook.ID
	}

	request := httptest.NewRequest(http.MethodPost, "/hooks", strings.NewReader(
		`{"type":"invoice.paid","timestamp":"2026-01-02T03:04:05.678901Z","data":{"id":"inv_1","amount":1250}}`))
	request.Header.Set("webhook-id", "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W")
	request.Header.Set("webhook-timestamp", "1700000000")
	request.Header.Set("webhook-signature", "v1,wp6vdYhzfYxt4p5UcvB0o8yICTSmkjc3RrOACvT/2Lk=")
	handler(httptest.NewRecorder(), request)
	// Output: invoice.paid {"id":"inv_1","amount":1250}
}
