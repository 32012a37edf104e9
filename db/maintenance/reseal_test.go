package maintenance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/db/maintenance"
	"posthorn/db/seal"
	"posthorn/domain/history"
	"posthorn/domain/id"
	"posthorn/tools/schematest"
)

func masterKey(fill byte) string {
	return seal.Generate([32]byte([]byte(strings.Repeat(string(fill), 32))))
}

func newRing(t *testing.T, keys ...string) *seal.Ring {
	t.Helper()
	r, err := seal.NewRing(strings.Join(keys, ","))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Columns of bytes without sealed values. A column that is in neither list fails the test below: add it to one.
var plainBytes = []string{"attempts.response_excerpt", "events.data", "outbox.data", "outbox_rejected.data", "source_messages.digest", "idempotency_keys.body_hash", "account_limits.key", "mail_limits.key", "inbox_requests.body", "passkeys.credential_id", "signing_keys.public_key", "history_parts.digest", "history_parts.lines"}

// Columns of sealed values that a rotation can leave out. A value that a session shows once is read within ten minutes
// of its sealing.
var shortLived = []string{"sessions.once"}

func TestEverySealedColumnIsRotated(t *testing.T) {
	t.Parallel()
	_, owner, _, _ := schematest.Tenants(t, 2)
	sealed := maintenance.SealedColumns()
	found := 0
	for _, column := range schematest.Names(t, owner, `SELECT c.relname || '.' || a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = 'posthorn'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
			AND a.atttypid = 'bytea'::regtype AND a.attnum > 0 AND NOT a.attisdropped`) {
		switch {
		case slices.Contains(sealed, column):
			found++
		case !slices.Contains(plainBytes, column) && !slices.Contains(shortLived, column) && !strings.HasSuffix(column, ".hash"):
			t.Errorf("%s holds bytes: are they sealed? Then the rotation of the master key must know them (db/maintenance/reseal.go), else this test", column)
		}
	}
	if found != len(sealed) {
		t.Errorf("%d of %d columns of sealed values exist", found, len(sealed))
	}
}

func TestARotationResealsEverythingAndCanBeInterrupted(t *testing.T) {
	t.Parallel()
	d, owner, tenant, other := schematest.Tenants(t, 2)
	was, now := newRing(t, masterKey('a')), newRing(t, masterKey('b'), masterKey('a'))
	var objects []id.UUID
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := owner.Exec(t.Context(), "SET ROLE posthorn_console"); err != nil {
			t.Fatal(err)
		}
		if _, err := owner.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	const endpoints = 450 // more than two transactions' worth
	for i := range endpoints {
		uuid, whose := db.NewID(), []id.UUID{tenant, other}[i%2]
		objects = append(objects, uuid)
		exec(`INSERT INTO posthorn.endpoint_secrets (tenant_id, id, endpoint_id, sealed, hint, created_at) VALUES ($1, $2, $3, $4, 'h', now())`,
			whose, db.NewID(), uuid, was.Seal([]byte("secret of "+uuid.String()), whose, uuid))
	}
	person := db.NewID()
	exec(`INSERT INTO posthorn.people (id, email, name, password, totp, created_at) VALUES ($1, 'a@example.com', 'A', '', $2, now())`,
		person, was.Seal([]byte("seed"), id.UUID{}, person))
	mail := db.NewID()
	exec(`INSERT INTO posthorn.mails (id, tenant_id, key, recipient, kind, sealed, created_at) VALUES ($1, $2, 'k', 'a@example.com', 'verify_address', $3, now())`,
		mail, tenant, was.Seal([]byte("link"), tenant, mail))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := maintenance.Reseal(ctx, d, now); err == nil {
		t.Fatal("a rotation that was broken off says nothing")
	}
	n, err := maintenance.Reseal(t.Context(), d, now)
	if err != nil || n != endpoints+2 {
		t.Fatalf("%d values were sealed anew, %v", n, err)
	}
	if n, err := maintenance.Reseal(t.Context(), d, now); n != 0 || err != nil {
		t.Errorf("the second rotation found %d to do, %v", n, err)
	}
	// Stored values open under the new key alone, each for its own row alone.
	alone := newRing(t, masterKey('b'))
	exec("SELECT 1")
	rows, err := owner.Query(t.Context(), "SELECT tenant_id, endpoint_id, sealed FROM posthorn.endpoint_secrets")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	opened := 0
	for rows.Next() {
		var whose, uuid id.UUID
		var sealed []byte
		if err := rows.Scan(&whose, &uuid, &sealed); err != nil {
			t.Fatal(err)
		}
		plain, err := alone.Open(sealed, whose, uuid)
		if err != nil || string(plain) != "secret of "+uuid.String() || !slices.Contains(objects, uuid) {
			t.Fatalf("endpoint %s: %q, %v", uuid, plain, err)
		}
		opened++
	}
	if opened != endpoints {
		t.Errorf("%d of %d secrets are there", opened, endpoints)
	}
}

func TestARotationNamesTheRowThatNoKeyOpens(t *testing.T) {
	t.Parallel()
	d, owner, tenant, _ := schematest.Tenants(t, 2)
	lost, secret := newRing(t, masterKey('x')), db.NewID()
	for _, sql := range []string{"SET ROLE posthorn_console", fmt.Sprintf(
		`INSERT INTO posthorn.endpoint_secrets (tenant_id, id, endpoint_id, sealed, hint, created_at) VALUES ('%s', '%s', '%s', '\x%x', 'h', now())`,
		tenant, secret, secret, lost.Seal([]byte("s"), tenant, secret))} {
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	_, err := maintenance.Reseal(t.Context(), d, newRing(t, masterKey('b'), masterKey('a')))
	if !errors.Is(err, seal.ErrUnopened) || !strings.Contains(err.Error(), "endpoint_secrets.sealed of row "+secret.String()) {
		t.Errorf("got %v", err)
	}
}

// Values that are sealed under the master key are in no table that is stored.
func TestNothingSealedLeavesWithHistory(t *testing.T) {
	t.Parallel()
	for _, column := range maintenance.SealedColumns() {
		table, _, _ := strings.Cut(column, ".")
		if slices.Contains(history.Tables[:], table) {
			t.Errorf("%s is sealed, and %s leaves", column, table)
		}
	}
}
