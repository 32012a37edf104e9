package accounts_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/tools/schematest"
)

// relay relays all new notices and dead letters.
func (f *told) relay() {
	f.t.Helper()
	for _, take := range []func() (int, error){
		func() (int, error) { return accounts.RelayNotices(f.t.Context(), f.db, f.links, 100) },
		func() (int, error) { return accounts.AnnounceDeadLetters(f.t.Context(), f.db, f.links, 100) },
	} {
		if _, err := take(); err != nil {
			f.t.Fatal(err)
		}
	}
}

// emitted lists the types of the platform's events, sorted.
func (f *told) emitted() []string {
	f.t.Helper()
	return schematest.Names(f.t, f.sql, "SELECT type FROM outbox ORDER BY 1")
}

func (f *told) platform() id.UUID {
	f.t.Helper()
	tenant, key, err := accounts.EnsurePlatformTenant(f.t.Context(), f.db, db.Author{Kind: "command"})
	if err != nil || key == "" {
		f.t.Fatal(key, err)
	}
	return tenant
}

func TestThePlatformHasOneTenantOfItsOwn(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	first := f.platform()
	again, key, err := accounts.EnsurePlatformTenant(t.Context(), f.db, db.Author{Kind: "command"})
	if err != nil || again != first || key != "" {
		t.Errorf("%v, %q, %v", again, key, err)
	}
	if n := schematest.Names(t, f.sql, "SELECT kind FROM notices"); len(n) != 0 {
		t.Errorf("told of its first key: %q", n)
	}
}

func TestNoticesBecomeEventsOfThePlatformOnce(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.post(notice.EndpointDisabled, "before", nil)
	f.relay() // there is no tenant yet: the notice is not sent later
	own := f.platform()
	f.relay()
	if got := f.emitted(); len(got) != 0 {
		t.Errorf("of before: %q", got)
	}
	endpoint := db.NewID()
	if err := f.db.Worker(t.Context(), func(q *sql.Queries) error {
		for _, n := range []accounts.Notice{
			{
				Tenant:   f.tenant,
				Kind:     notice.EndpointDisabled,
				Key:      "d",
				Endpoint: &endpoint,
				Details:  notice.EndpointDetails{Reason: "gone"},
			},
			{Tenant: f.tenant, Kind: notice.SecretRotated, Key: "s"},
			{Tenant: f.tenant, Kind: notice.KeyCreated, Key: "k"}, // not one of them
			{Tenant: own, Kind: notice.EndpointDisabled, Key: "own", Endpoint: &endpoint},
		} {
			if _, err := accounts.PostNotice(t.Context(), q, n); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(f.relay)
	}
	all.Wait()
	f.relay()
	if got, want := f.emitted(), []string{"endpoint.disabled", "secret.rotated"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	var text []byte
	var tenant id.UUID
	if err := f.sql.QueryRow(t.Context(), "SELECT data, tenant_id FROM outbox WHERE type = 'endpoint.disabled'").Scan(&text, (*[16]byte)(&tenant)); err != nil {
		t.Fatal(err)
	}
	var o accounts.Operational
	if err := json.Unmarshal(text, &o); err != nil || tenant != own || o.Tenant != id.Tenant.Format(f.tenant) ||
		o.Endpoint != id.Endpoint.Format(endpoint) ||
		!strings.HasPrefix(o.Notice, "ntc_") || !strings.Contains(string(o.Details), `"gone"`) {
		t.Errorf("%s, %v", text, err)
	}
	if left := schematest.Names(t, f.sql, "SELECT key FROM notices WHERE relayed_at IS NULL"); len(left) != 0 {
		t.Errorf("not marked: %q", left)
	}
}

func TestFailedDeliveriesAreAnnouncedWhereThePlatformSubscribesToThem(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	own := f.platform()
	f.degrade()
	f.relay()
	if got := f.emitted(); len(got) != 0 {
		t.Errorf("nobody subscribes: %q", got)
	}
	f.exec("INSERT INTO endpoints (tenant_id, id, url, event_types, created_at) VALUES ($1, $2, 'https://ops.example', '{delivery.*}', now())", own.String(), db.NewID().String())
	f.relay()
	if got := f.emitted(); len(got) != 0 {
		t.Errorf("what failed before is history: %q", got)
	}
	f.degrade()
	// The platform's own failures are not events: each would cause another.
	f.exec("INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason) VALUES ($1, $2, $2, 'a', 1)", own.String(), db.NewID().String())
	f.relay()
	f.relay()
	if got := f.emitted(); !slices.Equal(got, []string{"delivery.failed"}) {
		t.Errorf("%q", got)
	}
	if left := schematest.Names(t, f.sql, "SELECT delivery_id::text FROM dead_letters WHERE NOT announced"); len(left) != 0 {
		t.Errorf("not marked: %q", left)
	}
}

func TestASuspendedPlatformTenantBlocksNothing(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	own := f.platform()
	f.exec("UPDATE tenants SET state = 'suspended' WHERE id = $1", own.String())
	f.post(notice.EndpointDisabled, "d", nil)
	f.relay()
	if left := schematest.Names(t, f.sql, "SELECT key FROM notices WHERE relayed_at IS NULL"); len(left) != 0 || len(f.emitted()) != 0 {
		t.Errorf("left %q, emitted %q", left, f.emitted())
	}
}
