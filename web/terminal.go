package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// How often a terminal shows what is summed up.
const (
	summaryEvery = 10 * time.Second // of attempts
	repeatsEvery = time.Minute      // of a warning
)

// calm is the handler of a person's terminal: what happens often is summed up, so that what they have to read, such as
// the sign-in link, stays in sight. Migrations are one line, attempts one line every ten seconds, and a warning is
// written once a minute, with how often it was repeated.
type calm struct {
	slog.Handler
	*sums
}

// sums are what was not written yet. It belongs to a logger and all that are derived from it.
type sums struct {
	out   slog.Handler
	after func(time.Duration, func()) // waits and calls

	mu         sync.Mutex
	attempts   map[string]int // by what became of the delivery
	migrations int
	migrated   time.Duration
	repeats    map[string]int // of warnings, by their text
}

func newCalm(out slog.Handler, after func(time.Duration, func())) calm {
	return calm{out, &sums{out: out, after: after, attempts: map[string]int{}, repeats: map[string]int{}}}
}

func (c calm) WithAttrs(attrs []slog.Attr) slog.Handler {
	return calm{c.Handler.WithAttrs(attrs), c.sums}
}

func (c calm) WithGroup(name string) slog.Handler { return calm{c.Handler.WithGroup(name), c.sums} }

func (c calm) Handle(ctx context.Context, r slog.Record) error {
	switch {
	case r.Level == slog.LevelInfo && r.Message == "attempt":
		c.attempt(r)
		return nil
	case r.Level == slog.LevelInfo && r.Message == "migration applied":
		c.migration(r)
		return nil
	case r.Level >= slog.LevelWarn && c.repeated(r):
		return nil
	}
	if line := c.migrationLine(); line != "" {
		c.say(slog.LevelInfo, line)
	}
	return c.Handler.Handle(ctx, r)
}

// say writes a line that nobody logged.
func (s *sums) say(level slog.Level, line string) {
	_ = s.out.Handle(context.Background(), slog.NewRecord(time.Now(), level, line, 0)) // a terminal that is closed
}

// attempt counts an attempt. The first of a summary starts its time.
func (s *sums) attempt(r slog.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.attempts) == 0 {
		s.after(summaryEvery, func() { s.say(slog.LevelInfo, s.attemptLine()) })
	}
	s.attempts[valueOf(r, "decision")]++
}

// attemptLine sums up the attempts: "184 delivered, 12 to retry".
func (s *sums) attemptLine() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var parts []string
	for _, kind := range [][2]string{{"delivered", "delivered"}, {"pending", "to retry"}, {"failed", "failed"}, {"canceled", "canceled"}} {
		if n := s.attempts[kind[0]]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind[1]))
		}
	}
	clear(s.attempts)
	return "attempts in the last 10 s: " + strings.Join(parts, ", ")
}

func (s *sums) migration(r slog.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.migrations++
	if took, err := time.ParseDuration(valueOf(r, "duration")); err == nil {
		s.migrated += took
	}
}

// migrationLine sums up the migrations before the line that follows them; empty: none.
func (s *sums) migrationLine() (line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.migrations > 0 {
		line = fmt.Sprintf("%d migrations applied in %.1f s", s.migrations, s.migrated.Seconds())
	}
	s.migrations, s.migrated = 0, 0
	return line
}

// repeated reports whether a warning was written within the last minute. It is counted then.
func (s *sums) repeated(r slog.Record) bool {
	text := r.Message
	if cause := valueOf(r, "error"); cause != "" {
		text += ": " + cause
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, known := s.repeats[text]; known {
		s.repeats[text] = n + 1
		return true
	}
	s.repeats[text] = 0
	level := r.Level
	s.after(repeatsEvery, func() { s.endRepeats(level, text) })
	return false
}

func (s *sums) endRepeats(level slog.Level, text string) {
	s.mu.Lock()
	n := s.repeats[text]
	delete(s.repeats, text)
	s.mu.Unlock()
	if n > 0 {
		s.say(level, fmt.Sprintf("repeated %d times in a minute: %s", n, text))
	}
}

// valueOf is a record's attribute as text; empty: it has none.
func valueOf(r slog.Record, name string) (text string) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == name {
			text = a.Value.String()
		}
		return text == ""
	})
	return text
}
