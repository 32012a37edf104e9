package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// readyTime bounds the question of the ready command.
const readyTime = 3 * time.Second

type readyCommand struct{}

// Run asks the process that runs with this configuration on this machine whether it is ready. Container engines call
// it as the health check of the image, which has no other program to ask with.
func (readyCommand) Run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	addr := cfg.MetricsAddr // web processes and workers both serve it
	if addr == "off" {
		addr = cfg.Addr
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "0" {
		return fmt.Errorf("the port of %s is not fixed, so the process cannot be asked: set POSTHORN_METRICS_ADDR to an address with a port", addr)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("no process responds at %s: start one with posthorn serve, web or worker", addr)
	}
	defer func() { _ = res.Body.Close() }()
	var got report
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
		return fmt.Errorf("the process at %s is not Posthorn", addr)
	}
	if res.StatusCode != http.StatusOK {
		return errors.New(got.sentence())
	}
	a.printf("%s\n", got.Status)
	return nil
}

// sentence says which checks fail, and why.
func (r report) sentence() string {
	var failed []string
	for name, p := range r.Checks {
		if !p.OK {
			failed = append(failed, name+" ("+p.Detail+")")
		}
	}
	slices.Sort(failed)
	if len(failed) == 0 {
		return "the process is " + r.Status
	}
	return "the process is " + r.Status + ": " + strings.Join(failed, ", ")
}
