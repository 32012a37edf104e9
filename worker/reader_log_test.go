package worker

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/domain/id"
)

func TestAnOutageOfTheDatabaseIsLoggedOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	gone, err := db.Open(t.Context(), h.url, db.Options{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	var log strings.Builder // written by this goroutine alone
	w := New(Config{
		DB:        gone,
		ListenURL: h.url,
		Log:       slog.New(slog.NewTextHandler(&log, nil)),
		Egress:    h.policy,
		Keys:      h.ring,
		Name:      t.Name(),
	})
	const tries = 5
	ctx, end := context.WithTimeout(t.Context(), tries*readRetry)
	defer end()
	w.dispatch.Want([]id.UUID{db.NewID()})
	w.signal()
	w.read(ctx)
	if n := strings.Count(log.String(), "lanes could not be read"); n != 1 {
		t.Errorf("%d lines about %d tries: %s", n, tries, log.String())
	}
}
