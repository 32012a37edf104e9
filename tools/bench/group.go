package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// group is a set of tenants with equal endpoints, and where to emit so that each event reaches `fan` of them.
type group struct {
	tenants []string // UUIDs
	targets []target
	fan     int64
	plan    string // the file of targets, for the generator
	byPath  bool   // each target has a path of its own
}

// shape says how a group's tenants look.
type shape struct {
	name      string
	tenants   int
	endpoints int    // of each tenant
	ownTypes  bool   // each endpoint subscribes to a type of its own, so that an event reaches one endpoint, not all
	address   string // of the receiver
	fields    map[string]any
}

// unthrottled lets an endpoint show what the engine can do, without its limits.
var unthrottled = map[string]any{"rate_limit": nil, "max_in_flight": 50}

// setUp makes a group with the calls of a provider, and waits until every endpoint is verified.
func (s *system) setUp(ctx context.Context, sh shape) (*group, error) {
	g := &group{fan: int64(sh.endpoints)}
	if sh.ownTypes {
		g.fan = 1
	}
	names := make([]string, sh.tenants)
	perTenant := make([][]target, sh.tenants)
	for i := range names {
		names[i] = fmt.Sprintf("%s %d", sh.name, i)
	}
	err := eachOf(sh.tenants, 4, func(i int) (err error) {
		perTenant[i], err = s.makeTenant(ctx, sh, names[i], i)
		return err
	})
	if err != nil {
		return nil, err
	}
	// Neighbors in the plan are different tenants.
	for at := range len(perTenant[0]) {
		for i := range perTenant {
			g.targets = append(g.targets, perTenant[i][at])
		}
	}
	if g.tenants, err = s.db.tenantUUIDs(ctx, names); err != nil {
		return nil, err
	}
	text, err := json.Marshal(g.targets)
	if err != nil {
		return nil, err
	}
	g.plan = filepath.Join(s.dir, sh.name+".json")
	if err := os.WriteFile(g.plan, text, 0o600); err != nil {
		return nil, err
	}
	return g, s.server.waitFor(ctx, 10*time.Minute, "all endpoints are active", func() error {
		n, err := s.db.inactive(ctx)
		if err == nil && n > 0 {
			err = fmt.Errorf("%d endpoints are not active", n)
		}
		return err
	})
}

// makeTenant makes one tenant with its endpoints, and returns where to emit.
func (s *system) makeTenant(ctx context.Context, sh shape, name string, number int) ([]target, error) {
	var made struct {
		Key string `json:"api_key"`
	}
	if err := s.post(ctx, s.platformKey, "/api/v1/tenants", map[string]any{"name": name}, &made); err != nil {
		return nil, err
	}
	var targets []target
	for e := range sh.endpoints {
		to := target{Key: made.Key, Type: "bench.order"}
		if sh.ownTypes {
			to.Type = fmt.Sprintf("bench.order%d", e)
		}
		endpoint := map[string]any{
			"url":          fmt.Sprintf("http://%s/%d/%d", sh.address, number, e),
			"event_types":  []string{to.Type},
			"verification": "simple",
		}
		for field, value := range sh.fields {
			endpoint[field] = value
		}
		if err := s.post(ctx, made.Key, "/api/v1/endpoints", endpoint, nil); err != nil {
			return nil, err
		}
		if e == 0 || sh.ownTypes {
			targets = append(targets, to)
		}
	}
	return targets, nil
}

// post sends JSON, waits as long as a Retry-After says, and decodes the response where somewhere to put it is given.
func (s *system) post(ctx context.Context, key, path string, what, into any) error {
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.api+path, bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+key)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		answer, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			return err
		}
		switch {
		case response.StatusCode/100 == 2 && into == nil:
			return nil
		case response.StatusCode/100 == 2:
			return json.Unmarshal(answer, into)
		case response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusServiceUnavailable:
			return fmt.Errorf("POST %s answered %d: %s", path, response.StatusCode, answer)
		}
		seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
		if err != nil {
			seconds = 1
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(seconds) * time.Second):
		}
	}
}

// eachOf calls do for 0 to n-1, a few at a time, and returns the first error.
func eachOf(n, parallel int, do func(int) error) error {
	numbers := make(chan int)
	failed := make(chan error, n)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for i := range numbers {
				if err := do(i); err != nil {
					failed <- err
				}
			}
		})
	}
	for i := range n {
		if len(failed) > 0 {
			break
		}
		numbers <- i
	}
	close(numbers)
	workers.Wait()
	close(failed)
	return <-failed
}
