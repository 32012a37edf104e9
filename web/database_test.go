package main

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/tools/dbtest"
)

// databaseURL is the database of a test's environment.
func databaseURL(t *testing.T, environ []string) string {
	t.Helper()
	for _, pair := range environ {
		if u, ok := strings.CutPrefix(pair, "POSTHORN_DATABASE_URL="); ok {
			return u
		}
	}
	t.Fatal("no database in this environment")
	return ""
}

func emptyDatabase(t *testing.T) []string {
	t.Helper()
	return databaseEnvironment(dbtest.Clone(t, "", nil))
}

func openTest(t *testing.T, environ []string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), databaseURL(t, environ), db.Options{Name: "test", MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func mustParse(t *testing.T, kind id.Kind, text string) id.UUID {
	t.Helper()
	uuid, err := kind.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return uuid
}

func holder(t *testing.T, d *db.DB, key string) accounts.Credential {
	t.Helper()
	row, err := (accounts.Keys{DB: d}).FindKey(t.Context(), sha256.Sum256([]byte(key)))
	if err != nil {
		t.Fatalf("the key is not known: %v", err)
	}
	return row
}

// auditActions are the actions noted for a tenant, sorted.
func auditActions(t *testing.T, d *db.DB, tenant id.UUID) (actions []string) {
	t.Helper()
	err := d.Console(t.Context(), func(q *db.Tx) error {
		page, err := db.TenantAudit(t.Context(), q, tenant, "", show.Range{Ascending: true, Limit: 100})
		for _, e := range page.Rows {
			actions = append(actions, e.Action)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(actions)
	return actions
}

var silent = slog.New(slog.DiscardHandler)

func TestADatabaseThatCannotBeUsedIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	good, err := url.Parse(databaseURL(t, emptyDatabase(t)))
	if err != nil {
		t.Fatal(err)
	}
	missing := *good
	missing.Path = "/no_such_database"
	otherRole := *good
	otherRole.User = url.UserPassword("no_such_role", "c4n4ry")
	for name, c := range map[string]struct{ url, code, fix string }{
		"database": {missing.String(), "database_missing", "createdb"},
		"role":     {otherRole.String(), "database_refused", "user or password"},
	} {
		started := time.Now()
		err := waitForDatabase(t.Context(), c.url, false, silent, time.Hour)
		e := fault.As(err)
		if e == nil || e.Code != c.code || !strings.Contains(e.Detail, c.fix) || strings.Contains(err.Error(), "c4n4ry") {
			t.Errorf("%s: %v", name, err)
		}
		if time.Since(started) > patience {
			t.Errorf("%s: waited %s for what does not heal", name, time.Since(started))
		}
	}
	if err := waitForDatabase(t.Context(), good.String(), false, silent, 0); err != nil {
		t.Errorf("a good database: %v", err)
	}
}

func TestADatabaseThatIsAwayIsWaitedFor(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	away := "postgres://u:c4n4ry@" + l.Addr().String() + "/d?sslmode=disable"
	tries := make(chan struct{}, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close() // as a server that is starting behind a proxy
			tries <- struct{}{}
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- waitForDatabase(ctx, away, false, silent, time.Hour) }()
	for range 2 {
		select {
		case <-tries:
		case err := <-done:
			t.Fatalf("gave up: %v", err)
		}
	}
	cancel()
	if err := <-done; err == nil || fault.As(err) != nil {
		t.Errorf("interrupted, it says %v", err)
	}
	_ = l.Close()
	err = waitForDatabase(t.Context(), "postgres://u:c4n4ry@127.0.0.1:1/d?sslmode=disable", false, silent, 0)
	if e := fault.As(err); e == nil || e.Code != "database_unavailable" || !strings.Contains(e.Detail, "POSTHORN_DATABASE_URL") || strings.Contains(err.Error(), "c4n4ry") {
		t.Errorf("after its patience it says %v", err)
	}
}
