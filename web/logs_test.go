package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestLogsNeverHoldASecret(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ryHunter2c4n4ry"
	for name, args := range map[string][]any{
		"key":              {"api_key", canary},
		"key in a group":   {slog.Group("request", "Authorization", canary)},
		"hyphenated":       {"Set-Cookie", canary},
		"suffix":           {"old_secret", canary},
		"number":           {"token", 42, "note", "Bearer " + canary},
		"any":              {"secrets", []string{canary}},
		"header":           {"headers", http.Header{"Authorization": {canary}, "X-Api-Key": {canary}, "Accept": {"Bearer " + canary}}},
		"signing secret":   {"detail", "made whsec_" + canary + " just now"},
		"private key":      {"detail", "whsk_" + canary},
		"API key":          {"detail", "phk_" + canary},
		"URL":              {"target", "postgres://user:" + canary + "@host:5432/db"},
		"error":            {"error", fmt.Errorf("dial: %w", errors.New("amqp://u:"+canary+"@h refused"))},
		"bytes":            {"body", []byte("whsec_" + canary)},
		"structure":        {"reply", struct{ Line string }{"Bearer " + canary}},
		"group in a group": {slog.Group("request", slog.Group("answer", "line", "Bearer "+canary, "token", 42))},
		"later value":      {"reply", later("Bearer " + canary)},
		"later group":      {"reply", laterGroup{canary}},
		"map":              {"reply", map[string]any{"line": "Bearer " + canary}},
		"message of later": {"database_url", canary},
	} {
		for _, format := range []string{"json", "text"} {
			var out strings.Builder
			log := newLogger(&out, format, slog.LevelDebug)
			log.Info("a line", args...)
			log.With(args...).WithGroup("g").Info("Bearer "+canary, args...)
			if out.Len() == 0 || strings.Contains(out.String(), canary) {
				t.Errorf("%s as %s: %s", name, format, out.String())
			}
		}
	}
}

func TestLogsKeepWhatIsNoSecret(t *testing.T) {
	t.Parallel()
	for _, kept := range []string{
		"http://127.0.0.1:8080/healthz", "https://example.com:8443/a?b=c@d", "tokens left", "the bearer of this", "evt_01jd000000000000000000000",
	} {
		var out strings.Builder
		newLogger(&out, "json", slog.LevelInfo).Info(kept, "url", kept, "tokens", 3.5, "error", errors.New(kept))
		if got := out.String(); strings.Count(got, kept) != 3 || !strings.Contains(got, `"tokens":3.5`) {
			t.Errorf("%s: %s", kept, got)
		}
	}
}

// later is a value that a logger asks for when it writes.
type later string

func (l later) LogValue() slog.Value { return slog.StringValue(string(l)) }

type laterGroup struct{ secret string }

func (l laterGroup) LogValue() slog.Value { return slog.GroupValue(slog.String("token", l.secret)) }

func TestLogsShowTimesAndErrorsAsTexts(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	newLogger(&out, "json", slog.LevelInfo).With("since", 90*time.Second).Warn("a line", "took", 1500*time.Millisecond,
		"level_of", slog.LevelWarn, slog.Group("of", "wait", time.Minute))
	for _, want := range []string{
		`"level":"WARN"`, `"since":"1m30s"`, `"took":"1.5s"`, `"level_of":"WARN"`, `"of":{"wait":"1m0s"}`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("without %s: %s", want, out.String())
		}
	}
}

func BenchmarkTheLineOfAnAttempt(b *testing.B) {
	log := newLogger(io.Discard, "json", slog.LevelInfo).With("tenant", "tnt_01m85z93m9ephs14nygj4stgt1",
		"endpoint", "ep_01m85z93m9ephs14nygj4stgt1", "url", "https://hooks.example.com/in")
	b.ReportAllocs()
	for b.Loop() {
		log.LogAttrs(b.Context(), slog.LevelInfo, "attempt", slog.String("delivery", "dlv_01m85z93m9ephs14nygj4stgt1"),
			slog.String("type", "invoice.paid"), slog.Int("attempt", 1), slog.String("decision", "delivered"),
			slog.String("event", "evt_01m85z93m9ephs14nygj4stgt1"), slog.Int("status", 200), slog.Int("total_us", 812),
			slog.Int("wait_us", 410))
	}
}
