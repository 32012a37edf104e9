// Command example emits an event, lists and replays its delivery, and verifies what arrives.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"posthorn/client"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c, err := client.New(os.Getenv("POSTHORN_URL"), os.Getenv("POSTHORN_API_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, c); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, c *client.Client) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	endpoint, err := c.CreateEndpoint(ctx, client.EndpointInput{
		URL:          "http://" + listener.Addr().String(),
		EventTypes:   &[]string{"order.*"},
		Verification: new(client.Simple),
	})
	if err != nil {
		return err
	}
	defer func() { _ = c.DeleteEndpoint(context.WithoutCancel(ctx), endpoint.ID) }()
	arrived := receive(listener, endpoint.Secret) // shown once
	for status := endpoint.Status; status != client.EndpointStatusActive; {
		time.Sleep(100 * time.Millisecond)
		now, err := c.GetEndpoint(ctx, endpoint.ID)
		if err != nil {
			return err
		}
		status = now.Status
	}

	event, err := client.NewEmission("order.completed", map[string]any{"order_id": "ord_1", "total": 4200})
	if err != nil {
		return err
	}
	accepted, err := c.Emit(ctx, event)
	if err != nil {
		return err
	}
	fmt.Println("emitted", accepted.ID)
	webhook := <-arrived
	fmt.Println("verified", webhook.ID, string(webhook.Data))

	delivery, err := delivered(ctx, c, accepted.ID, endpoint.ID)
	if err != nil {
		return err
	}
	fmt.Println("listed", delivery.ID, delivery.Status)
	again, err := c.ReplayDelivery(ctx, delivery.ID, client.ReplayInput{Reason: new("to see it again")})
	if err != nil {
		return err
	}
	fmt.Println("replayed as", again.ID)
	webhook = <-arrived
	fmt.Println("verified", webhook.ID)
	return nil
}

// receive sends on the webhooks that arrive at a listener and are signed with a secret.
func receive(listener net.Listener, secret string) <-chan client.Webhook {
	arrived := make(chan client.Webhook, 10)
	verifier := client.Verifier{Secrets: []string{secret}}
	handler := func(w http.ResponseWriter, r *http.Request) {
		webhook, err := verifier.Read(r)
		switch {
		case err != nil:
			http.Error(w, "not verified", http.StatusUnauthorized)
		case webhook.Type != "endpoint.verification":
			arrived <- webhook
		}
	}
	server := &http.Server{Handler: http.HandlerFunc(handler), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	return arrived
}

// delivered waits for the delivery of an event to an endpoint.
func delivered(ctx context.Context, c *client.Client, event, endpoint string) (client.Delivery, error) {
	for {
		for delivery, err := range c.EventDeliveries(ctx, event, client.ListEventDeliveriesParams{}) {
			if err != nil {
				return delivery, err
			}
			if delivery.EndpointID == endpoint && delivery.Status == client.DeliveryStatusDelivered {
				return delivery, nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}
