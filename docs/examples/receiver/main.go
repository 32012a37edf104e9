// Command receiver is what a customer of yours writes: an endpoint that verifies Posthorn's webhooks with the official
// Standard Webhooks library, proves itself when it is asked to, and acts once on each event.
//
//	WEBHOOK_SECRET=whsec_... go run ./docs/examples/receiver
package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	address := os.Getenv("ADDR")
	if address == "" {
		address = "127.0.0.1:9000"
	}
	handler, err := newReceiver(os.Getenv("WEBHOOK_SECRET"), func(event webhook) {
		log.Printf("%s %s %s", event.ID, event.Type, event.Data)
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(serve(address, handler, log.Default()))
}

// serve says that it waits only after it has the port.
func serve(address string, handler http.Handler, log *log.Logger) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	log.Printf("waiting for webhooks on http://%s", listener.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	return server.Serve(listener)
}

// webhook is the body of the format `standard`.
type webhook struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Timestamp time.Time       `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
}

// receiver hands each verified event to act, once.
type receiver struct {
	verifier *standardwebhooks.Webhook
	act      func(webhook)

	mu   sync.Mutex
	seen map[string]bool // a real one keeps the ids in its database, in the transaction that acts on the event
}

// newReceiver needs the secret that was shown when the endpoint was created. An empty one is refused here, since the
// library's first release would accept it.
func newReceiver(secret string, act func(webhook)) (*receiver, error) {
	if secret == "" {
		return nil, errors.New("set WEBHOOK_SECRET to the endpoint's secret (whsec_...)")
	}
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return nil, err
	}
	return &receiver{verifier: verifier, act: act, seen: map[string]bool{}}, nil
}

func (rc *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The signature covers the body's exact bytes: verify first, parse afterwards.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "the body is too large or was cut", http.StatusBadRequest)
		return
	}
	if err := rc.verifier.Verify(body, r.Header); err != nil {
		log.Printf("rejected: %v", err)
		http.Error(w, "the signature does not match", http.StatusUnauthorized)
		return
	}
	var event webhook
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, "the body is not a webhook", http.StatusBadRequest)
		return
	}
	if event.Type == "endpoint.verification" {
		// Data is {"challenge":"..."}; to send it back proves that this endpoint wants the events.
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(event.Data)
		return
	}
	if rc.first(event.ID) {
		rc.act(event)
	}
	w.WriteHeader(http.StatusNoContent)
}

// first says whether an event is new: deliveries are at least once, and a duplicate carries the same id.
func (rc *receiver) first(id string) bool {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	if rc.seen[id] {
		return false
	}
	rc.seen[id] = true
	return true
}
