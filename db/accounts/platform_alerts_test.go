package accounts_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/notice"
	"posthorn/tools/schematest"
)

// raise raises an alert of the platform at a moment.
func (f *told) raise(a incidents.Alert, at time.Time) {
	f.t.Helper()
	if err := f.db.Worker(f.t.Context(), func(q *sql.Queries) error { return accounts.RaiseAlert(f.t.Context(), q, f.links, a, at) }); err != nil {
		f.t.Error(err)
	}
}

// endAlerts ends the alerts whose cause is over at a moment.
func (f *told) endAlerts(at time.Time) {
	f.t.Helper()
	if err := f.db.Worker(f.t.Context(), func(q *sql.Queries) error { return accounts.EndAlerts(f.t.Context(), q, f.links, at) }); err != nil {
		f.t.Error(err)
	}
}

// channelWas lists the statuses and types of what a tenant's channels were sent, in order.
func (f *told) channelWas(tenant id.UUID) (list []string) {
	f.t.Helper()
	for _, text := range schematest.Names(f.t, f.sql, "SELECT convert_from(data, 'UTF8') FROM outbox WHERE tenant_id = '"+tenant.String()+"' ORDER BY id") {
		var a notice.Alert
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			f.t.Fatal(err)
		}
		list = append(list, string(a.Status)+" "+a.Notice)
	}
	return list
}

func (f *told) openAlerts() []string {
	f.t.Helper()
	return schematest.Names(f.t, f.sql, "SELECT kind || ' ' || key FROM platform_alerts WHERE ended_at IS NULL ORDER BY 1")
}

func TestChannelsOfOperatorsAreToldOnceOfTheStartAndOnceOfTheEnd(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	own := f.platform()
	f.subscriber(own, "{posthorn.platform.*}")
	f.subscriber(f.tenant, "{posthorn.*}") // a tenant's channel hears nothing of the platform
	now := f.now()
	a := incidents.Alert{Kind: incidents.ProxyFails, Key: "p:3128", Title: "The egress proxy fails", Message: "m"}
	other := a
	other.Key = "other:3128"
	together := func(fn func()) {
		var all sync.WaitGroup
		for range 4 {
			all.Go(fn)
		}
		all.Wait()
	}
	together(func() { f.raise(a, now) })
	f.raise(other, now)
	f.raise(a, now.Add(4*time.Minute))
	if got, want := f.channelWas(own), []string{"triggered platform.egress_proxy_failing", "triggered platform.egress_proxy_failing"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	together(func() { f.endAlerts(now.Add(6 * time.Minute)) }) // the other's cause is over, and a's was there two minutes ago
	if got := f.openAlerts(); !slices.Equal(got, []string{"egress_proxy_failing p:3128"}) {
		t.Errorf("open: %q", got)
	}
	together(func() { f.endAlerts(now.Add(10 * time.Minute)) })
	if got := f.channelWas(own); len(got) != 4 || got[2] != "resolved platform.egress_proxy_failing" || got[3] != got[2] {
		t.Errorf("%q", got)
	}
	f.raise(a, now.Add(time.Hour))
	if got := f.channelWas(own); len(got) != 5 || got[4] != "triggered platform.egress_proxy_failing" {
		t.Errorf("it comes again: %q", got)
	}
	if got := f.channelWas(f.tenant); len(got) != 0 {
		t.Errorf("a tenant's channel: %q", got)
	}
}

func TestAMutedKindOfAlertIsNeitherMailedNorSent(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	own := f.platform()
	f.subscriber(own, "{posthorn.*}")
	f.exec("INSERT INTO operators (id, email, created_at) VALUES ($1, 'op@posthorn.example', now())", db.NewID().String())
	now := f.now()
	mute := func(k incidents.Kind, text string) {
		t.Helper()
		if _, err := accounts.ChangePlatform(t.Context(), f.db, accounts.PlatformChange{Texts: map[string]string{k.Setting(): text}}, db.Author{Kind: "command"}); err != nil {
			t.Fatal(err)
		}
	}
	open := incidents.Alert{Kind: incidents.DownHost, Key: "a.example", Title: "t", Message: "m"}
	f.raise(open, now)
	mute(incidents.DownHost, "off")
	mute(incidents.Disabled, "off")
	f.raise(incidents.Alert{Kind: incidents.DownHost, Key: "b.example", Title: "t", Message: "m"}, now)
	plain := f.subscriber(f.tenant, "{order.*}")
	f.exec("UPDATE endpoints SET status = 'disabled' WHERE id = $1", plain.String())
	f.postAbout(&plain, notice.EndpointDisabled, "d")
	for f.mail() > 0 {
	}
	if got := f.mails(); len(got) != 0 {
		t.Errorf("mails: %q", got)
	}
	if got := f.openAlerts(); len(got) != 3 { // the console shows them
		t.Errorf("open: %q", got)
	}
	f.endAlerts(now.Add(time.Hour))
	// What was told before the mute is ended, and nothing else: its incident would stay open.
	if got, want := f.channelWas(own), []string{"triggered platform.host_down", "resolved platform.host_down"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	mute(incidents.Disabled, "")
	f.postAbout(&plain, notice.EndpointDisabled, "d2")
	for f.mail() > 0 {
	}
	if got := f.mails(); !slices.Equal(got, []string{"operator_alert op@posthorn.example"}) {
		t.Errorf("unmuted: %q", got)
	}
}

func TestAnAlertOfADisabledEndpointEndsWithTheDisablement(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	own := f.platform()
	f.subscriber(own, "{posthorn.platform.endpoint_disabled}")
	back, deleted, stays := f.subscriber(f.tenant, "{a}"), f.subscriber(f.tenant, "{a}"), f.subscriber(f.tenant, "{a}")
	for i, ep := range []id.UUID{back, deleted, stays} {
		f.exec("UPDATE endpoints SET status = 'disabled' WHERE id = $1", ep.String())
		f.postAbout(&ep, notice.EndpointDisabled, string(rune('a'+i)))
	}
	for f.mail() > 0 {
	}
	f.endAlerts(f.now().Add(time.Hour))
	if got := f.channelWas(own); len(got) != 3 {
		t.Errorf("all are disabled: %q", got)
	}
	f.exec("UPDATE endpoints SET status = 'active' WHERE id = $1", back.String())
	f.exec("UPDATE endpoints SET deleted_at = now() WHERE id = $1", deleted.String())
	f.endAlerts(f.now().Add(time.Hour + time.Second))
	if got := f.openAlerts(); !slices.Equal(got, []string{"endpoint_disabled " + id.Endpoint.Format(stays)}) {
		t.Errorf("open: %q", got)
	}
	if got := f.channelWas(own); len(got) != 5 || got[3] != "resolved platform.endpoint_disabled" || got[4] != got[3] {
		t.Errorf("%q", got)
	}
}

func TestAlertsAboutTheChannelsThemselvesAreNotSentToThem(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	own := f.platform()
	channel := f.subscriber(own, "{posthorn.*}")
	f.exec("INSERT INTO operators (id, email, created_at) VALUES ($1, 'op@posthorn.example', now())", db.NewID().String())
	f.exec("UPDATE endpoints SET status = 'disabled' WHERE id = $1", channel.String())
	if err := f.db.Worker(t.Context(), func(q *sql.Queries) error {
		_, err := accounts.PostNotice(t.Context(), q, accounts.Notice{Tenant: own, Kind: notice.EndpointDisabled, Key: "d", Endpoint: &channel})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for f.mail() > 0 {
	}
	f.raise(incidents.Alert{Kind: incidents.LateTenant, Key: "own", Title: "t", Message: "m", Tenant: id.Tenant.Format(own)}, f.now())
	f.relay()
	if got := f.channelWas(own); len(got) != 0 {
		t.Errorf("%q", got)
	}
	if got := f.mails(); !slices.Equal(got, []string{"operator_alert op@posthorn.example"}) {
		t.Errorf("mails: %q", got)
	}
}

func TestAlertsNeedNeitherAPlatformTenantNorAChannel(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	now := f.now()
	f.raise(incidents.Alert{Kind: incidents.WorkerLost, Title: "t", Message: "m"}, now)
	own := f.platform()
	f.raise(incidents.Alert{Kind: incidents.Rejected, Title: "t", Message: "m"}, now)
	channel := f.subscriber(own, "{posthorn.platform.*}")
	f.exec("UPDATE tenants SET state = 'suspended' WHERE id = $1", own.String())
	f.raise(incidents.Alert{Kind: incidents.Mails, Title: "t", Message: "m"}, now)
	f.exec("UPDATE tenants SET state = 'active' WHERE id = $1", own.String())
	f.endAlerts(now.Add(time.Hour)) // no channel was told of any, so none is told of its end
	if got := f.channelWas(own); len(got) != 0 || len(f.openAlerts()) != 0 {
		t.Errorf("sent %q, open %q", got, f.openAlerts())
	}
	f.raise(incidents.Alert{Kind: incidents.Mails, Title: "t", Message: "m"}, now.Add(2*time.Hour))
	f.exec("UPDATE endpoints SET deleted_at = now() WHERE id = $1", channel.String())
	f.endAlerts(now.Add(3 * time.Hour))
	if got := f.channelWas(own); !slices.Equal(got, []string{"triggered platform.mails_failed"}) {
		t.Errorf("%q", got)
	}
	f.endAlerts(now.Add(100 * 24 * time.Hour))
	if n := schematest.Names(t, f.sql, "SELECT kind FROM platform_alerts"); len(n) != 0 {
		t.Errorf("kept for ever: %q", n)
	}
}
