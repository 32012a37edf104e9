package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// serveOne mounts a public handler and calls it once.
func serveOne(t *testing.T, h Handler, log *bytes.Buffer) (*httptest.ResponseRecorder, problem) {
	t.Helper()
	k := New(Config{Log: slog.New(slog.NewTextHandler(log, nil)), Now: time.Now})
	e := k.NewEngine()
	k.Mount(e, []Route{{Method: "POST", Path: "/x", Access: Access{Public: true}, Handler: h, MaxBody: 10}})
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/x", strings.NewReader("0123456789ab")))
	var p problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return w, p
}

func TestEveryKindHasItsStatus(t *testing.T) {
	t.Parallel()
	for kind, status := range map[fault.Kind]int{
		fault.Invalid:         400,
		fault.Unauthenticated: 401,
		fault.Forbidden:       403,
		fault.NotFound:        404,
		fault.Conflict:        409,
		fault.Gone:            410,
		fault.TooLarge:        413,
		fault.Limited:         429,
		fault.Unavailable:     503,
		fault.Internal:        500,
		fault.UnsupportedType: 415,
	} {
		var log bytes.Buffer
		w, p := serveOne(t, func(*Call) error { return fmt.Errorf("wrapped: %w", fault.New(kind, "some_code", "Do this.")) }, &log)
		if w.Code != status || p.Status != status {
			t.Errorf("kind %d: %d", kind, w.Code)
		}
		if kind != fault.Internal && (p.Code != "some_code" || p.Detail != "Do this." || p.Type != "/docs/errors/some_code") {
			t.Errorf("kind %d: %s", kind, w.Body)
		}
		if retry := w.Header().Get("Retry-After"); (retry != "") != (status == 429 || status == 503) {
			t.Errorf("kind %d: Retry-After %q", kind, retry)
		}
	}
}

func TestInternalErrorsAreLoggedAndNotShown(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]Handler{
		"an unknown error": func(*Call) error { return errors.New("pq: canary") },
		"an internal one": func(*Call) error {
			return &fault.Error{Kind: fault.Internal, Code: "canary", Detail: "canary", Cause: errors.New("canary")}
		},
		"a panic":       func(*Call) error { panic("canary") },
		"a nil pointer": func(c *Call) error { c.Context = nil; return errors.New(c.Param("canary")) },
	} {
		var log bytes.Buffer
		w, p := serveOne(t, h, &log)
		if w.Code != 500 || p.Code != "internal" || strings.Contains(w.Body.String(), "canary") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if !strings.Contains(log.String(), p.RequestID) || (name != "a nil pointer" && !strings.Contains(log.String(), "canary")) {
			t.Errorf("%s: logged %s", name, log.String())
		}
	}
}

func TestATooLargeReadEndsAtTheBound(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w, p := serveOne(t, func(c *Call) error { _, err := c.Body(); return err }, &log)
	if w.Code != http.StatusRequestEntityTooLarge || p.Code != "body_too_large" || w.Header().Get("Connection") != "close" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestCanceledRequestsAreNoFaultOfOurs(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w, _ := serveOne(t, func(*Call) error { return fmt.Errorf("query: %w", context.Canceled) }, &log)
	if w.Code != 503 || log.Len() > 0 {
		t.Errorf("%d, logged %s", w.Code, log.String())
	}
}

func TestABucketEmptiesAndFills(t *testing.T) {
	t.Parallel()
	var b bucket
	r := Rate{PerSecond: 10, Burst: 20}
	take := func(at time.Duration, n int) (ok int) {
		for range n {
			if yes, left, _ := b.take(at, r); yes {
				ok++
				if left < 0 || left >= r.Burst {
					t.Fatalf("%d left", left)
				}
			}
		}
		return ok
	}
	if got := take(0, 30); got != 20 {
		t.Errorf("burst: %d", got)
	}
	if got := take(time.Second, 30); got != 10 {
		t.Errorf("after a second: %d", got)
	}
	if got := take(time.Hour, 30); got != 20 {
		t.Errorf("after an hour: %d", got)
	}
	_, left, reset := b.take(time.Hour, r)
	if left != 0 || reset != 2 {
		t.Errorf("empty: %d left, full in %d s", left, reset)
	}
}

func TestOverItsRateAKeyIsToldWhenToComeBack(t *testing.T) {
	t.Parallel()
	c := &clock{at: time.Now()}
	l := newLimiter(Rate{PerSecond: 1, Burst: 2}, c.now)
	h := http.Header{}
	for i := range 3 {
		err := l.key(l.of(id.UUID{1}), h)
		if (err != nil) != (i == 2) {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	if h.Get("RateLimit-Remaining") != "0" || h.Get("RateLimit-Limit") != "1" || h.Get("RateLimit-Reset") != "2" {
		t.Errorf("%v", h)
	}
	if err := l.key(l.of(id.UUID{2}), h); err != nil {
		t.Error("another key has a bucket of its own")
	}
}

func TestARequestWhoseTimeIsOverIsToldToComeAgain(t *testing.T) {
	t.Parallel()
	for _, err := range []error{context.DeadlineExceeded, fmt.Errorf("rendering: %w", context.DeadlineExceeded)} {
		if e := Known(err); e.Code != "timeout" || Status(e) != http.StatusServiceUnavailable {
			t.Errorf("%v is answered %d %s", err, Status(e), e.Code)
		}
	}
}
