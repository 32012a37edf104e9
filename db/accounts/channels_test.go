package accounts_test

import (
	"encoding/json"
	"fmt"
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

// subscriber is an endpoint with event types.
func (f *told) subscriber(tenant id.UUID, types string) id.UUID {
	f.t.Helper()
	endpoint := db.NewID()
	f.exec("INSERT INTO endpoints (tenant_id, id, url, event_types, created_at) VALUES ($1, $2, 'https://hooks.example', $3::text[], now())",
		tenant.String(), endpoint.String(), types)
	return endpoint
}

func (f *told) postAbout(endpoint *id.UUID, kind notice.Kind, key string) {
	f.t.Helper()
	if err := f.db.Worker(f.t.Context(), func(q *sql.Queries) error {
		_, err := accounts.PostNotice(f.t.Context(), q, accounts.Notice{Tenant: f.tenant, Kind: kind, Key: key, Endpoint: endpoint})
		return err
	}); err != nil {
		f.t.Fatal(err)
	}
}

// alerts lists the types of events that notices became in the tenant itself.
func (f *told) alerts() []string {
	f.t.Helper()
	return schematest.Names(f.t, f.sql, "SELECT type FROM outbox WHERE tenant_id = '"+f.tenant.String()+"' ORDER BY 1")
}

func TestMailAndChannelsGetTheSameNoticesOnceEach(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.person("owner@acme.example", "owner")
	f.subscriber(f.tenant, "{posthorn.*}")
	plain, muted := f.subscriber(f.tenant, "{order.*}"), f.subscriber(f.tenant, "{order.*}")
	f.exec("UPDATE endpoints SET muted_at = now() - interval '1 hour' WHERE id = $1", muted.String())
	var want []string
	mails := 0
	for _, k := range notice.Kinds() {
		for range 2 { // the key makes the second one none
			f.postAbout(&plain, k, "plain:"+string(k))
			f.postAbout(&muted, k, "muted:"+string(k))
		}
		n := 2
		if k.Mutable() {
			n = 1
		}
		for range n {
			want = append(want, k.EventType())
			if k.MailedByDefault() {
				mails++
			}
		}
		if k == notice.EndpointRecovered { // of the muted endpoint too: its channels were told that it was disabled
			want = append(want, k.EventType())
		}
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(f.relay)
	}
	all.Wait()
	f.relay()
	for f.mail() > 0 {
	}
	slices.Sort(want)
	if got := f.alerts(); !slices.Equal(got, want) {
		t.Errorf("channels: %q, want %q", got, want)
	}
	if got := f.mails(); len(got) != mails {
		t.Errorf("%d mails, want %d: %q", len(got), mails, got)
	}
}

func TestOnlyEndpointsThatNameNoticesMakeThemEvents(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.subscriber(f.tenant, "{*,endpoint.*,delivery.failed}")
	gone := f.subscriber(f.tenant, "{posthorn.*}")
	f.exec("UPDATE endpoints SET deleted_at = now() WHERE id = $1", gone.String())
	other := f.subscriber(f.tenant, "{posthorn.quota.*}")
	f.postAbout(nil, notice.KeyCreated, "k")
	f.degrade()
	f.relay()
	if got := f.alerts(); len(got) != 0 {
		t.Errorf("nobody asked for %q", got)
	}
	f.exec("UPDATE endpoints SET event_types = '{posthorn.key.created,posthorn.delivery.failed}' WHERE id = $1", other.String())
	f.postAbout(nil, notice.KeyCreated, "k2")
	f.degrade()
	f.relay()
	if got, want := f.alerts(), []string{"posthorn.delivery.failed", "posthorn.key.created"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNoticesAboutAChannelAreForMailAlone(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.person("owner@acme.example", "owner")
	one, two := f.subscriber(f.tenant, "{posthorn.*}"), f.subscriber(f.tenant, "{order.*,posthorn.*}")
	for i, channel := range []id.UUID{one, two} {
		f.postAbout(&channel, notice.EndpointDisabled, fmt.Sprint("d", i))
		f.exec("INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason) VALUES ($1, $2, $3, 'a', 1)",
			f.tenant.String(), db.NewID().String(), channel.String())
	}
	f.relay()
	for f.mail() > 0 {
	}
	if got := f.alerts(); len(got) != 0 {
		t.Errorf("channels that fail were sent %q", got)
	}
	if got := f.mails(); len(got) < 2 {
		t.Errorf("mails: %q", got)
	}
	if left := schematest.Names(t, f.sql, "SELECT delivery_id::text FROM dead_letters WHERE NOT announced"); len(left) != 0 {
		t.Errorf("not marked: %q", left)
	}
}

func TestAChannelOfASuspendedTenantBlocksNothing(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.subscriber(f.tenant, "{posthorn.*}")
	f.exec("UPDATE tenants SET state = 'suspended' WHERE id = $1", f.tenant.String())
	f.postAbout(nil, notice.TenantSuspended, "s")
	f.relay()
	if left := schematest.Names(t, f.sql, "SELECT key FROM notices WHERE relayed_at IS NULL"); len(left) != 0 || len(f.alerts()) != 0 {
		t.Errorf("left %q, emitted %q", left, f.alerts())
	}
}

func TestAnAlertIsBuiltOfTheNotice(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.subscriber(f.tenant, "{posthorn.*}")
	plain := f.subscriber(f.tenant, "{order.*}")
	f.postAbout(&plain, notice.EndpointDisabled, "d")
	f.relay()
	f.postAbout(&plain, notice.EndpointRecovered, "r")
	f.relay()
	var list []notice.Alert
	for _, text := range schematest.Names(t, f.sql, "SELECT convert_from(data, 'UTF8') FROM outbox ORDER BY id") {
		var a notice.Alert
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		list = append(list, a)
	}
	if len(list) != 2 || list[0].Status != notice.Triggered || list[1].Status != notice.Resolved || list[0].DedupKey != list[1].DedupKey ||
		list[0].URL != "https://posthorn.example/t/"+id.Tenant.Format(f.tenant)+"/endpoints/"+id.Endpoint.Format(plain) {
		t.Errorf("%+v", list)
	}
}

func TestAMutedKindIsNeitherMailedNorSentToChannels(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.person("owner@acme.example", "owner")
	f.subscriber(f.tenant, "{posthorn.*}")
	plain := f.subscriber(f.tenant, "{order.*}")
	mute := func(k notice.Kind, muted bool) {
		t.Helper()
		if err := f.db.Tenant(t.Context(), f.tenant, func(q *sql.Queries) error {
			return accounts.MuteNotices(t.Context(), q, f.tenant, k, muted, db.Author{Kind: "system"})
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range notice.Kinds() {
		mute(k, true)
		f.postAbout(&plain, k, "muted:"+string(k))
	}
	f.degrade()
	f.relay()
	for f.mail() > 0 {
	}
	if got := f.alerts(); len(got) != 0 {
		t.Errorf("channels were sent %q", got)
	}
	for _, m := range f.mails() {
		if !strings.HasPrefix(m, "operator_alert ") { // operators are not the tenant's to mute
			t.Errorf("mailed %q", m)
		}
	}
	if f.digest(f.now()) {
		t.Error("a muted digest was posted")
	}
	mute(notice.SecretRotated, false)
	for _, k := range []notice.Kind{notice.KeyCreated, notice.SecretRotated} {
		f.postAbout(nil, k, "one:"+string(k))
	}
	f.relay()
	if got, want := f.alerts(), []string{"posthorn.secret.rotated"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTheRecoveryOfAMutedEndpointEndsAnAlertThatWasSent(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.subscriber(f.tenant, "{posthorn.*}")
	opened, quiet := f.subscriber(f.tenant, "{order.*}"), f.subscriber(f.tenant, "{order.*}")
	f.postAbout(&opened, notice.EndpointWarning, "opens")
	f.relay()
	f.exec("UPDATE endpoints SET muted_at = now() - interval '1 hour' WHERE id = ANY($1::uuid[])", []string{opened.String(), quiet.String()})
	f.postAbout(&quiet, notice.EndpointWarning, "opens quietly")
	f.postAbout(&opened, notice.EndpointRecovered, "ends")
	f.postAbout(&quiet, notice.EndpointRecovered, "ends quietly")
	f.relay()
	f.postAbout(&opened, notice.EndpointRecovered, "ends again")
	f.relay()
	var got []string
	keys := map[string]bool{}
	for _, text := range schematest.Names(t, f.sql, "SELECT convert_from(data, 'UTF8') FROM outbox ORDER BY id") {
		var a notice.Alert
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		got, keys[a.DedupKey] = append(got, string(a.Status)), true
	}
	if want := []string{"triggered", "resolved"}; !slices.Equal(got, want) || len(keys) != 1 {
		t.Errorf("channels were sent %q of the alerts %v, want %q of one", got, keys, want)
	}
}
