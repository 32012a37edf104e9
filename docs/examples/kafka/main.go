// Command kafka is what a customer of yours writes who takes events from a topic: it verifies each record with the
// official Standard Webhooks library, and acts once on each event.
//
//	WEBHOOK_SECRET=whsec_... BROKERS=broker.example.com:9092 TOPIC=orders go run ./docs/examples/kafka
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := newConsumer(os.Getenv("WEBHOOK_SECRET"), func(e event) { log.Printf("%s %s %s", e.ID, e.Type, e.Data) })
	if err != nil {
		log.Fatal(err)
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Getenv("BROKERS"), ",")...),
		kgo.ConsumeTopics(os.Getenv("TOPIC")), kgo.ConsumerGroup("posthorn-example"),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(c.take)
	}
}

// event is the value of a record in the format `standard`.
type event struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Timestamp time.Time       `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
}

type consumer struct {
	verifier *standardwebhooks.Webhook
	act      func(event)
	seen     map[string]bool // a real one keeps the ids in its database, in the transaction that acts on the event
}

// newConsumer needs the secret that was shown when the endpoint was created.
func newConsumer(secret string, act func(event)) (*consumer, error) {
	if secret == "" {
		return nil, errors.New("set WEBHOOK_SECRET to the endpoint's secret (whsec_...)")
	}
	verifier, err := standardwebhooks.NewWebhook(secret)
	return &consumer{verifier: verifier, act: act, seen: map[string]bool{}}, err
}

// take verifies a record and acts on its event, unless that was done before: deliveries are at least once, and a
// duplicate carries the same id.
func (c *consumer) take(r *kgo.Record) {
	if err := c.verify(r); err != nil {
		log.Printf("record %d of partition %d is not Posthorn's: %v", r.Offset, r.Partition, err)
		return
	}
	var e event
	if err := json.Unmarshal(r.Value, &e); err != nil || e.Type == "endpoint.verification" || c.seen[e.ID] {
		return
	}
	c.seen[e.ID] = true
	c.act(e)
}

// verify is the same check as for a request: the signature is in the record's headers and covers the value.
func (c *consumer) verify(r *kgo.Record) error {
	headers := http.Header{}
	for _, h := range r.Headers {
		headers.Add(h.Key, string(h.Value))
	}
	// A record may be read long after it was written, so its age says nothing.
	return c.verifier.VerifyIgnoringTimestamp(r.Value, headers)
}
