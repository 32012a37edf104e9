package accounts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/delivery"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/mail"
	"posthorn/domain/notice"
	"posthorn/tools/schematest"
)

// told is a database with recipients of notices.
type told struct {
	t      *testing.T
	db     *db.DB
	sql    *pgx.Conn // as the console role
	ring   *seal.Ring
	links  accounts.Links
	tenant id.UUID
}

func newTold(t *testing.T) *told {
	t.Helper()
	d, owner, a, _ := schematest.Tenants(t, 4)
	ring, err := seal.NewRing("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	if err != nil {
		t.Fatal(err)
	}
	f := &told{t: t, db: d, sql: owner, ring: ring, tenant: a, links: accounts.Links{BaseURL: "https://posthorn.example", Keys: ring}}
	f.exec("SET ROLE posthorn_console")
	f.exec("SET search_path = posthorn")
	return f
}

func (f *told) exec(query string, args ...any) {
	f.t.Helper()
	if _, err := f.sql.Exec(f.t.Context(), query, args...); err != nil {
		f.t.Fatal(err)
	}
}

func (f *told) person(email, role string) id.UUID {
	f.t.Helper()
	uuid := db.NewID()
	f.exec("INSERT INTO people (id, email, name, password, created_at) VALUES ($1, $2, 'n', 'x', now())", uuid.String(), email)
	f.exec("INSERT INTO memberships (tenant_id, person_id, id, role, created_at) VALUES ($1, $2, $3, $4, now())", f.tenant.String(), uuid.String(), db.NewID().String(), role)
	return uuid
}

func (f *told) post(kind notice.Kind, key string, details any) {
	f.t.Helper()
	if err := f.db.Worker(f.t.Context(), func(q *sql.Queries) error {
		_, err := accounts.PostNotice(f.t.Context(), q, accounts.Notice{
			Tenant:  f.tenant,
			Kind:    kind,
			Key:     key,
			Details: details,
		})
		return err
	}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *told) mail() int {
	f.t.Helper()
	n, err := accounts.MailNotices(f.t.Context(), f.db, f.links, 20)
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// mails lists "kind recipient" of the outbox, sorted.
func (f *told) mails() []string {
	f.t.Helper()
	return schematest.Names(f.t, f.sql, "SELECT kind || ' ' || recipient FROM mails ORDER BY 1")
}

// confirm makes a contact one that has agreed to get notices.
func (f *told) confirm(contact string) {
	f.t.Helper()
	f.exec(
		"INSERT INTO notice_preferences (tenant_id, recipient, kind, wanted) VALUES ($1, $2, $3, true)",
		f.tenant.String(),
		contact,
		string(notice.ContactConfirmed),
	)
}

func TestAMutedEndpointIsMailedAboutOnlyWhereDeliveriesEnd(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.person("owner@acme.example", "owner")
	muted := func(since string, until any) id.UUID {
		ep := db.NewID()
		f.exec(`INSERT INTO endpoints (tenant_id, id, url, event_types, created_at, muted_at, muted_until)
			VALUES ($1, $2, 'https://a.example', '{*}', now(), now() + $3::interval, now() + $4::interval)`, f.tenant.String(), ep.String(), since, until)
		return ep
	}
	endpoints := map[string]id.UUID{"ever": muted("-1 hour", nil), "now": muted("-1 hour", "1 hour"), "before": muted("-2 hours", "-1 hour")}
	f.exec("INSERT INTO notice_preferences (tenant_id, recipient, kind, wanted) SELECT tenant_id, person_id::text, $1, true FROM memberships",
		string(notice.DeliveryFailed))
	post := func(kind notice.Kind, ep id.UUID) {
		t.Helper()
		if err := f.db.Worker(t.Context(), func(q *sql.Queries) error {
			_, err := accounts.PostNotice(t.Context(), q, accounts.Notice{
				Tenant:   f.tenant,
				Kind:     kind,
				Key:      db.NewID().String(),
				Endpoint: &ep,
				Details:  notice.EndpointDetails{Endpoint: id.Endpoint.Format(ep), URL: "https://a.example"},
			})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for name, ep := range endpoints {
		for kind, mutes := range map[notice.Kind]bool{
			notice.EndpointWarning:   true,
			notice.EndpointRecovered: true,
			notice.DeliveryFailed:    true,
			notice.EndpointDisabled:  false,
			notice.HeldExpiring:      false,
			notice.SecretRotated:     false,
		} {
			before := len(f.mails())
			post(kind, ep)
			for f.mail() > 0 {
			}
			if got, want := len(f.mails()) > before, !mutes || name == "before"; got != want {
				t.Errorf("muted %s: %s was mailed: %t, want %t", name, kind, got, want)
			}
		}
	}
	if n := len(schematest.Names(t, f.sql, "SELECT kind FROM notices WHERE mailed_at IS NOT NULL")); n != 18 {
		t.Errorf("%d notices are listed and done, want all 18", n)
	}
}

func TestAContactGetsNothingBeforeItAgrees(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.person("owner@acme.example", "owner")
	f.exec(`UPDATE tenants SET settings = '{"contacts": ["victim@elsewhere.example", "owner@acme.example"]}' WHERE id = $1`, f.tenant.String())
	tell := func(n int) {
		t.Helper()
		for range n {
			f.post(notice.SecretRotated, db.NewID().String(), notice.SecretDetails{Endpoint: "ep_x", URL: "https://a.example"})
		}
		for f.mail() > 0 {
		}
	}
	count := func(mail string) (n int) {
		for _, m := range f.mails() {
			if m == mail {
				n++
			}
		}
		return n
	}
	tell(30)
	if asked, told := count("confirm_contact victim@elsewhere.example"), count("notice victim@elsewhere.example"); asked != 1 || told != 0 {
		t.Errorf("a contact that never agreed was asked %d times and got %d notices", asked, told)
	}
	if n := count("confirm_contact owner@acme.example"); n != 0 || count("notice owner@acme.example") != 30 {
		t.Errorf("a member was asked %d times", n)
	}
	f.confirm("victim@elsewhere.example")
	tell(1)
	if asked, told := count("confirm_contact victim@elsewhere.example"), count("notice victim@elsewhere.example"); asked != 1 || told != 1 {
		t.Errorf("a contact that agreed was asked %d times and got %d notices", asked, told)
	}
}

func TestNoticesByMailAreLimited(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.person("owner@acme.example", "owner")
	f.exec("INSERT INTO operators (id, email, created_at) VALUES ($1, 'op@posthorn.example', now())", db.NewID().String())
	f.exec(`UPDATE tenants SET settings = '{"contacts": ["victim@elsewhere.example"]}' WHERE id = $1`, f.tenant.String())
	f.confirm("victim@elsewhere.example")
	n := account.MemberNotices.Tries + 5
	for i := range n {
		f.post(notice.EndpointDisabled, fmt.Sprint("d", i), notice.EndpointDetails{Endpoint: "ep_x", URL: "https://a.example", Reason: "gone"})
	}
	for f.mail() > 0 {
	}
	got := map[string]int{}
	for _, mail := range f.mails() {
		got[mail]++
	}
	want := map[string]int{
		"notice owner@acme.example":          account.MemberNotices.Tries,
		"notice victim@elsewhere.example":    account.ContactNotices.Tries,
		"operator_alert op@posthorn.example": account.OperatorAlerts.Tries,
	}
	if !maps.Equal(got, want) {
		t.Errorf("of %d notices: %v, want %v", n, got, want)
	}
}

func TestANoticeIsMailedToThoseWhoWantIt(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	owner := f.person("owner@acme.example", "owner")
	f.person("viewer@acme.example", "viewer")
	quiet := f.person("quiet@acme.example", "developer")
	gone := f.person("gone@acme.example", "admin")
	f.exec("UPDATE people SET disabled_at = now() WHERE id = $1", gone.String())
	f.exec("INSERT INTO operators (id, email, created_at) VALUES ($1, 'op@posthorn.example', now())", db.NewID().String())
	f.exec("INSERT INTO operators (id, email, created_at, disabled_at) VALUES ($1, 'left@posthorn.example', now(), now())", db.NewID().String())
	f.exec(`UPDATE tenants SET settings = '{"contacts": ["ops@acme.example", "Owner@acme.example"]}' WHERE id = $1`, f.tenant.String())
	f.confirm("ops@acme.example")
	for _, k := range []notice.Kind{notice.EndpointDisabled, notice.KeyCreated} {
		f.exec("INSERT INTO notice_preferences (tenant_id, recipient, kind, wanted) VALUES ($1, $2, $3, false)", f.tenant.String(), notice.PersonRecipient(quiet), string(k))
	}
	f.post(notice.EndpointDisabled, "d", notice.EndpointDetails{
		Endpoint:    "ep_x",
		URL:         "https://a.example",
		Reason:      "gone",
		LastFailure: delivery.FailDNS.String(),
	})
	if n := f.mail(); n != 1 {
		t.Fatalf("%d notices", n)
	}
	want := []string{"notice ops@acme.example", "notice owner@acme.example", "notice viewer@acme.example", "operator_alert op@posthorn.example"}
	if got := f.mails(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	alert := schematest.Names(t, f.sql, "SELECT data::text FROM mails WHERE kind = 'operator_alert'")[0]
	for _, part := range []string{
		`"ep_x"`, `"a.example"`, "/console/deliveries?tenant=" + id.Tenant.Format(f.tenant) + `\u0026endpoint=ep_x`,
		health.Gone.Sentence(0, 0) + " (gone)", delivery.AnswerText(0, delivery.FailDNS),
	} {
		if !strings.Contains(alert, part) && !strings.Contains(alert, strings.ReplaceAll(part, `\u0026`, "&")) {
			t.Errorf("the operators' alert does not name and link the endpoint, %s is missing: %s", part, alert)
		}
	}
	if n := f.mail(); n != 0 || len(f.mails()) != 4 {
		t.Errorf("mailed again: %d notices, %q", n, f.mails())
	}
	f.exec("DELETE FROM mails")
	f.post(notice.KeyCreated, "k", nil) // not for viewers, not for operators
	f.post(notice.DeliveryFailed, "f", nil)
	f.mail()
	if got, want := f.mails(), []string{"notice ops@acme.example", "notice owner@acme.example"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	f.exec("INSERT INTO notice_preferences (tenant_id, recipient, kind, wanted) VALUES ($1, $2, 'delivery.failed', true)", f.tenant.String(), notice.PersonRecipient(owner))
	f.post(notice.DeliveryFailed, "f2", nil)
	f.mail()
	if got := f.mails(); len(got) != 3 {
		t.Errorf("asked for: %q", got)
	}
}

func TestSeveralWorkersMailANoticeOnce(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	for i := range 3 {
		f.person(fmt.Sprintf("p%d@acme.example", i), "owner")
	}
	for i := range 50 {
		f.post(notice.KeyCreated, fmt.Sprint(i), notice.KeyDetails{Name: fmt.Sprint(i)})
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				n, err := accounts.MailNotices(t.Context(), f.db, f.links, 7)
				if err != nil {
					t.Error(err)
				}
				if n == 0 {
					return
				}
			}
		})
	}
	all.Wait()
	f.mail()
	if got := f.mails(); len(got) != 150 {
		t.Errorf("%d mails for 50 notices and 3 people", len(got))
	}
}

// A worker that dies in the middle leaves nothing behind: the mails and the mark are one transaction.
func TestAWorkerThatDiesWhileItMailsANoticeLeavesItWhole(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.person("a@acme.example", "owner")
	f.person("b@acme.example", "owner")
	f.post(notice.KeyCreated, "k", nil)
	// The second mail can't be written, as if the connection had broken there.
	f.exec("RESET ROLE")
	f.exec("ALTER TABLE mails ADD CONSTRAINT broken CHECK (recipient <> 'b@acme.example')")
	f.exec("SET ROLE posthorn_console")
	if _, err := accounts.MailNotices(t.Context(), f.db, f.links, 20); err == nil {
		t.Fatal("it was written")
	}
	if got := f.mails(); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
	f.exec("RESET ROLE")
	f.exec("ALTER TABLE mails DROP CONSTRAINT broken")
	f.exec("SET ROLE posthorn_console")
	f.mail()
	if got := f.mails(); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

func TestAMailOfANoticeHoldsAnUnsubscribeLinkThatWorks(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	person := f.person("a@acme.example", "owner")
	f.post(notice.KeyCreated, "k", notice.KeyDetails{Name: "deploy"})
	f.mail()
	var rows []sql.ClaimMailsRow
	if err := f.db.Worker(t.Context(), func(q *sql.Queries) (err error) {
		rows, err = q.ClaimMails(t.Context(), 60, 10)
		return err
	}); err != nil || len(rows) != 1 {
		t.Fatal(len(rows), err)
	}
	text, err := accounts.MailText(rows[0], f.ring)
	var d mail.NoticeData
	if err != nil || json.Unmarshal(text, &d) != nil {
		t.Fatal(err)
	}
	token, ok := strings.CutPrefix(d.Unsubscribe, "https://posthorn.example/unsubscribe/")
	payload, signed := f.ring.OpenToken(accounts.UnsubscribePurpose, token)
	s, read := notice.ParseSubscription(payload)
	if !ok || !signed || !read || s != (notice.Subscription{
		Tenant:    f.tenant,
		Recipient: notice.PersonRecipient(person),
		Kind:      notice.KeyCreated,
	}) {
		t.Errorf("%s: %+v", d.Unsubscribe, s)
	}
	if d.Dashboard != "https://posthorn.example/t/"+id.Tenant.Format(f.tenant) || !strings.Contains(string(d.Details), "deploy") {
		t.Errorf("%+v", d)
	}
	var plain string
	if err := f.sql.QueryRow(t.Context(), "SELECT data::text FROM mails").Scan(&plain); err != nil || strings.Contains(plain, token) {
		t.Errorf("%v; stored in the clear: %s", err, plain)
	}
}

// degrade gives the tenant a reason for a digest: a delivery that has just failed permanently.
func (f *told) degrade() {
	f.exec("INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason) VALUES ($1, $2, $3, 'a', 1)",
		f.tenant.String(), db.NewID().String(), db.NewID().String())
}

func (f *told) digest(now time.Time) bool {
	f.t.Helper()
	posted, err := endpoints.PostDigest(f.t.Context(), f.db, f.tenant, now)
	if err != nil {
		f.t.Fatal(err)
	}
	return posted
}

func (f *told) now() time.Time {
	f.t.Helper()
	now, err := f.db.ServerTime(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return now
}

func TestATenantGetsOneDigestADayHoweverTheClockIsPut(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.person("a@acme.example", "owner")
	now := f.now()
	if f.digest(now) {
		t.Error("a digest although all is well")
	}
	f.degrade()
	day := now.UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	for _, step := range []struct {
		at   time.Time
		want bool
	}{
		{day, true}, {day, false}, {day.Add(time.Hour), false}, {day.Add(-time.Hour), false}, // an hour back and forth
		{day.Add(-30 * 24 * time.Hour), false}, // a month back
		{day.Add(11*time.Hour + 59*time.Minute), false},
	} {
		if got := f.digest(step.at); got != step.want {
			t.Errorf("at %s: %v", step.at, got)
		}
	}
	if n := schematest.Names(t, f.sql, "SELECT n.key FROM notices n JOIN digests d ON d.notice_id = n.id"); len(n) != 1 {
		t.Errorf("the day's row names the notices %q", n)
	}
	if n := schematest.Names(t, f.sql, "SELECT key FROM notices WHERE kind = 'digest'"); len(n) != 1 || n[0] != "digest:"+day.Format(time.DateOnly) {
		t.Errorf("%q", n)
	}
	f.mail()
	if got := f.mails(); !slices.Equal(got, []string{"digest a@acme.example"}) {
		t.Errorf("%q", got)
	}
}

func TestSeveralWorkersPostOneDigest(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.degrade()
	now := f.now()
	var all sync.WaitGroup
	posted := make(chan bool, 8)
	for range 8 {
		all.Go(func() {
			did, err := endpoints.PostDigest(t.Context(), f.db, f.tenant, now)
			if err != nil {
				t.Error(err)
			}
			posted <- did
		})
	}
	all.Wait()
	close(posted)
	n := 0
	for did := range posted {
		if did {
			n++
		}
	}
	if all := schematest.Names(t, f.sql, "SELECT key FROM notices"); n != 1 || len(all) != 1 {
		t.Errorf("%d workers posted %q", n, all)
	}
}

func TestATenantCanSwitchDigestsOff(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.degrade()
	f.exec(`UPDATE tenants SET settings = '{"no_digest": true}' WHERE id = $1`, f.tenant.String())
	if f.digest(f.now()) {
		t.Error("a digest all the same")
	}
}

func TestASweepRunsOnOneWorkerAndAgainWhenRequested(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.exec("INSERT INTO endpoints (tenant_id, id, url, event_types, created_at) VALUES ($1, $2, 'https://a.example', '{*}', now())", f.tenant.String(), db.NewID().String())
	seen := 0
	sweep := func() bool {
		t.Helper()
		did, err := f.db.Sweep(t.Context(), endpoints.SweepDigests, time.Hour, func(tenant id.UUID, _ string) error {
			if tenant == f.tenant {
				seen++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return did
	}
	if !sweep() || sweep() || seen != 1 {
		t.Errorf("the tenant was seen %d times", seen)
	}
	if err := f.db.Console(t.Context(), func(q *sql.Queries) error {
		_, err := q.MakePeriodicDue(context.WithoutCancel(t.Context()), []string{
			endpoints.SweepDigests,
			endpoints.SweepOverdue,
		})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if !sweep() || seen != 2 {
		t.Errorf("recalled, the tenant was seen %d times", seen)
	}
}

func TestOperatorsAreAlertedOnceADayOfOverdueDeliveries(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.exec("INSERT INTO operators (id, email, created_at) VALUES ($1, 'op@posthorn.example', now())", db.NewID().String())
	endpoint, old := db.NewID(), id.New(time.Now().Add(-time.Hour), [10]byte{1})
	f.exec("UPDATE tenants SET state_at = now() - interval '1 day' WHERE id = $1", f.tenant.String())
	f.exec("INSERT INTO endpoints (tenant_id, id, url, event_types, status, status_at, created_at) VALUES ($1, $2, 'https://a.example', '{*}', 'active', now() - interval '1 day', now())", f.tenant.String(), endpoint.String())
	f.exec("INSERT INTO lanes (endpoint_id, tenant_id, held) VALUES ($1, $2, false) ON CONFLICT (endpoint_id) DO UPDATE SET held = false", endpoint.String(), f.tenant.String())
	f.exec("INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id) VALUES ($1, $2, $2, $3)", f.tenant.String(), old.String(), endpoint.String())
	alert := func(bound time.Duration, now time.Time) {
		t.Helper()
		if err := endpoints.AlertOverdue(t.Context(), f.db, f.links, endpoints.Promise{
			Tenant: f.tenant,
			Name:   "Acme",
			Bound:  bound,
		}, now); err != nil {
			t.Fatal(err)
		}
	}
	now := f.now()
	alert(2*time.Hour, now)
	if got := f.mails(); len(got) != 0 {
		t.Errorf("below the bound: %q", got)
	}
	alert(15*time.Minute, now)
	alert(15*time.Minute, now)
	if got := f.mails(); !slices.Equal(got, []string{"operator_alert op@posthorn.example"}) {
		t.Errorf("%q", got)
	}
	alert(15*time.Minute, now.Add(24*time.Hour))
	if got := f.mails(); len(got) != 2 {
		t.Errorf("the next day: %q", got)
	}
}

func TestWhatATrialCausesAlertsNoOperator(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.person("owner@acme.example", "owner")
	f.exec("INSERT INTO operators (id, email, created_at) VALUES ($1, 'op@posthorn.example', now())", db.NewID().String())
	endpoint := func(kind string) id.UUID {
		e := db.NewID()
		f.exec("INSERT INTO endpoints (tenant_id, id, kind, url, event_types, status, created_at) VALUES ($1, $2, $3, 'https://a.example', '{*}', 'disabled', now())",
			f.tenant.String(), e.String(), kind)
		return e
	}
	failed := func(e id.UUID, trial bool) {
		f.exec("INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason, trial) VALUES ($1, $2, $3, 'a', 1, $4)",
			f.tenant.String(), db.NewID().String(), e.String(), trial)
	}
	inbox, tested, live := endpoint("inbox"), endpoint("http"), endpoint("http")
	failed(tested, false)
	failed(tested, true)
	failed(live, true)
	failed(live, false)
	for _, c := range []struct {
		of     id.UUID
		reason health.Reason
		alerts int
	}{{inbox, health.Failures, 0}, {tested, health.Gone, 0}, {tested, health.Failures, 1}, {live, health.Gone, 1}} {
		f.exec("DELETE FROM mails")
		if err := f.db.Worker(t.Context(), func(q *db.Tx) error {
			_, err := accounts.PostNotice(t.Context(), q, accounts.Notice{
				Tenant:   f.tenant,
				Kind:     notice.EndpointDisabled,
				Key:      db.NewID().String(),
				Endpoint: &c.of,
				Details:  notice.EndpointDetails{Reason: string(c.reason)},
			})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		f.mail()
		want := []string{"notice owner@acme.example"}
		if c.alerts > 0 {
			want = append(want, "operator_alert op@posthorn.example")
		}
		if got := f.mails(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", c.reason, got, want)
		}
	}
}
