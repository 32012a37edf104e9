package main

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// What happens often is one line at a terminal, and nothing is lost: each attempt, migration, and repeated warning is
// counted in one.
func TestATerminalSumsUpWhatHappensOften(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	type timer struct {
		in time.Duration
		do func()
	}
	var timers []timer
	passes := func(d time.Duration) { // lets what was started so far happen
		for _, one := range timers {
			if one.in == d {
				one.do()
			}
		}
		timers = nil
	}
	log := slog.New(guarded{newCalm(slog.NewTextHandler(&out, nil), func(d time.Duration, do func()) { timers = append(timers, timer{d, do}) })})
	lines := func() []string {
		all := strings.Split(strings.TrimSpace(out.String()), "\n")
		out.Reset()
		return all
	}
	for range 50 {
		log.Info("migration applied", "name", "00001_engine.sql", "duration", "30ms")
	}
	log.Info("posthorn runs", "url", "http://127.0.0.1:8080")
	if got := lines(); len(got) != 2 || !strings.Contains(got[0], `msg="50 migrations applied in 1.5 s"`) || !strings.Contains(got[1], "posthorn runs") {
		t.Errorf("the start is %q", got)
	}
	lane := log.With("endpoint", "ep_1")
	for n := range 200 {
		decision := "delivered"
		if n%20 == 0 {
			decision = "pending"
		}
		lane.Info("attempt", "decision", decision)
	}
	if got := out.String(); got != "" {
		t.Errorf("attempts are written: %s", got)
	}
	passes(summaryEvery)
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], `msg="attempts in the last 10 s: 190 delivered, 10 to retry"`) {
		t.Errorf("the summary is %q", got)
	}
	lane.Info("attempt", "decision", "failed")
	passes(summaryEvery)
	if got := lines(); !strings.Contains(got[0], "1 failed") {
		t.Errorf("the next summary is %q", got)
	}
	for range 30 {
		log.Warn("results wait for the database", "error", errors.New("refused"))
	}
	log.Warn("results wait for the database", "error", errors.New("Bearer abcdefghijkl"))
	if got := lines(); len(got) != 2 {
		t.Errorf("31 warnings of two kinds are %d lines: %q", len(got), got)
	}
	passes(repeatsEvery)
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "repeated 29 times in a minute: results wait for the database: refused") || strings.Contains(got[0], "abcdefghijkl") {
		t.Errorf("after a minute: %q", got)
	}
	log.Warn("results wait for the database", "error", errors.New("refused"))
	if got := lines(); !strings.Contains(got[0], "results wait") {
		t.Error("a warning of a later minute is not written")
	}
}
