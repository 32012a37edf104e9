// Package demo is a small shop that uses Posthorn: its catalogue of event types, the receivers of its customers, good
// and bad, and events that keep coming. It speaks to the server as any product does, through the API.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/oapi-codegen/nullable"

	"posthorn/client"
)

// Config is what the demo works with.
type Config struct {
	Server    string // its URL
	Key       string // of the demo tenant, with every scope
	Receivers net.Listener
	Log       *slog.Logger
}

// The pace of events: many at first, so that there is something to look at, then one now and then.
const (
	firstEvents = 240
	firstPace   = 40 * time.Millisecond
	laterPace   = 2 * time.Second
)

// Run completes the tenant's set-up and emits events until the context ends.
func Run(ctx context.Context, c Config) error {
	server := &http.Server{Handler: receivers(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(c.Receivers) }()
	defer func() { _ = server.Close() }()
	api, err := client.New(c.Server, c.Key)
	if err != nil {
		return err
	}
	first, err := createData(ctx, api, "http://"+c.Receivers.Addr().String())
	if err != nil {
		return fmt.Errorf("the demo data can't be created: %w", err)
	}
	left := 0
	if first {
		left = firstEvents
	}
	for order := 1; ; order++ {
		if err := emit(ctx, api, order); err != nil {
			return err
		}
		pace := laterPace
		if left > 0 {
			left--
			pace = firstPace
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pace):
		}
	}
}

// createData makes the catalogue and the endpoints, unless they are there from an earlier start.
func createData(ctx context.Context, api *client.Client, receivers string) (first bool, err error) {
	there, err := api.ListEndpoints(ctx, client.ListEndpointsParams{})
	if err != nil || len(there.Data) > 0 {
		return false, errors.Join(err, move(ctx, api, there.Data, receivers))
	}
	for _, t := range catalogue {
		example, err := json.Marshal(t.data(1))
		if err != nil {
			return false, err
		}
		in := client.EventTypeInput{
			Name:        t.name,
			Description: &t.description,
			Example:     nullable.NewNullableWithValue(client.Example(example)),
		}
		if _, err := api.CreateEventType(ctx, in); err != nil {
			return false, err
		}
	}
	var made []client.Endpoint
	for _, e := range customers {
		in := client.EndpointInput{
			URL:         receivers + e.path,
			Description: &e.name,
			EventTypes:  &e.types,
			RetryPolicy: &client.RetryPolicyInput{Delays: &e.delays},
		}
		created, err := api.CreateEndpoint(ctx, in)
		if err != nil {
			return false, err
		}
		made = append(made, client.Endpoint{ID: created.ID})
	}
	return true, awaitVerified(ctx, api, made)
}

// move leads the endpoints of an earlier start to where the receivers listen now. An endpoint that leads elsewhere
// stays as it is.
func move(ctx context.Context, api *client.Client, made []client.Endpoint, receivers string) error {
	var moved []client.Endpoint
	for _, e := range made {
		at, err := url.Parse(e.URL)
		if err != nil || "http://"+at.Host == receivers || at.Hostname() != "127.0.0.1" {
			continue
		}
		if !slices.ContainsFunc(customers, func(c customer) bool { return c.path == at.Path }) {
			continue
		}
		if _, err := api.UpdateEndpoint(ctx, e.ID, client.EndpointPatch{URL: new(receivers + at.Path)}); err != nil {
			return err
		}
		if e.Status != client.EndpointStatusPaused {
			moved = append(moved, e)
		}
	}
	return awaitVerified(ctx, api, moved)
}

// awaitVerified waits until the endpoints are verified: earlier events would only be held for a moment.
func awaitVerified(ctx context.Context, api *client.Client, made []client.Endpoint) error {
	for _, e := range made {
		for {
			now, err := api.GetEndpoint(ctx, e.ID)
			if err != nil {
				return err
			}
			if now.Status == "active" {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	return nil
}

// emit lets the shop do something: the frequent events more often than the rare.
func emit(ctx context.Context, api *client.Client, order int) error {
	at := rand.IntN(total())
	for _, t := range catalogue {
		if at -= t.weight; at >= 0 {
			continue
		}
		data, err := json.Marshal(t.data(order))
		if err != nil {
			return err
		}
		_, err = api.Emit(ctx, client.Emission{Type: t.name, Data: data})
		return err
	}
	return nil
}

func total() (n int) {
	for _, t := range catalogue {
		n += t.weight
	}
	return n
}
