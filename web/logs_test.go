package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
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
