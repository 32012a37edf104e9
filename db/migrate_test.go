package db_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/maintenance"
	"posthorn/db/migrations"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/id"
	"posthorn/domain/sso"
	"posthorn/tools/dbtest"
	"posthorn/tools/schematest"
)

// connect is a plain connection to a database.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// shape describes everything in the schema: tables and columns, indexes, policies, grants, functions and their owners.
func shape(t *testing.T, c *pgx.Conn) []string {
	t.Helper()
	return names(t, c, `
		SELECT format('column %s.%s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid))
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
		WHERE c.relnamespace = 'posthorn'::regnamespace AND c.relkind IN ('r', 'p')
		UNION ALL SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = 'posthorn'
		UNION ALL SELECT format('policy %s.%s %s %s %s', c.relname, p.polname, p.polroles, pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
			FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
		UNION ALL SELECT format('table %s %s %s %s', c.relname, c.relrowsecurity, c.relforcerowsecurity, c.relacl)
			FROM pg_class c WHERE c.relnamespace = 'posthorn'::regnamespace AND c.relname NOT LIKE 'goose%'
		UNION ALL SELECT format('function %s %s %s %s', p.oid::regprocedure, p.proowner::regrole, p.prosecdef, p.proacl)
			FROM pg_proc p WHERE p.pronamespace = 'posthorn'::regnamespace
		ORDER BY 1`)
}

func TestMigrationsGoDownAndUpAgain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := dbtest.Clone(t, "", nil)
	if err := schematest.Migrate(ctx, url); err != nil {
		t.Fatal(err)
	}
	owner := connect(t, url)
	first := shape(t, owner)
	if len(first) < 200 {
		t.Fatalf("only %d things in the schema", len(first))
	}
	states, err := db.MigrateStatus(ctx, url)
	if err != nil || len(states) == 0 {
		t.Fatal(states, err)
	}
	for _, s := range states {
		if !s.Applied {
			t.Errorf("%s is not applied", s.Name)
		}
	}
	for range states {
		if err := db.MigrateDown(ctx, url); err != nil {
			t.Fatal(err)
		}
	}
	if left := names(t, owner, `SELECT relname FROM pg_class WHERE relnamespace = 'posthorn'::regnamespace AND relname NOT LIKE 'goose%'
		UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'posthorn'::regnamespace`); len(left) > 0 {
		t.Errorf("after going down there are still %q", left)
	}
	if states, err := db.MigrateStatus(ctx, url); err != nil || slices.ContainsFunc(states, func(s db.MigrationState) bool { return s.Applied }) {
		t.Errorf("after going down: %+v, %v", states, err)
	}
	if err := schematest.Migrate(ctx, url); err != nil {
		t.Fatal(err)
	}
	second := shape(t, owner)
	for _, line := range first {
		if !slices.Contains(second, line) {
			t.Errorf("not there the second time: %s", line)
		}
	}
	for _, line := range second {
		if !slices.Contains(first, line) {
			t.Errorf("there only the second time: %s", line)
		}
	}
	if err := schematest.Migrate(ctx, url); err != nil {
		t.Errorf("up twice: %v", err)
	}
}

func TestEachAppliedMigrationIsLogged(t *testing.T) {
	t.Parallel()
	url := schematest.Clone(t)
	if err := db.MigrateDown(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	for range 2 { // the second time nothing is left to apply, and nothing is logged
		if err := db.MigrateUp(t.Context(), url, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
			t.Fatal(err)
		}
	}
	if text := log.String(); strings.Count(text, "migration applied") != 1 || !strings.Contains(text, ".sql") {
		t.Errorf("the log says %s", text)
	}
}

// A migration that waits for a table blocks every later statement on it: it must release the table soon, and try again.
func TestAMigrationThatWaitsForATableLetsOthersPass(t *testing.T) {
	t.Parallel()
	url := schematest.Clone(t)
	if err := db.MigrateDown(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	// A transaction of a running version: it has read from every table.
	holder, passer := connect(t, url), connect(t, url)
	tables := names(t, holder, "SELECT relname FROM pg_class WHERE relnamespace = 'posthorn'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND relname NOT LIKE 'goose%'")
	if _, err := holder.Exec(t.Context(), "BEGIN; LOCK TABLE posthorn."+strings.Join(tables, ", posthorn.")+" IN ACCESS SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- schematest.Migrate(t.Context(), url) }()
	waits := func() bool {
		return len(names(t, passer, "SELECT a.application_name FROM pg_stat_activity a WHERE a.datname = current_database() AND a.wait_event_type = 'Lock'")) > 0
	}
	for !waits() {
		select {
		case err := <-done:
			// No statement of the newest migration needs an exclusive lock: then nobody waits.
			if err != nil {
				t.Error(err)
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	// A later transaction gets the table while the holder continues.
	began := time.Now()
	for _, table := range tables {
		if _, err := passer.Exec(t.Context(), "SELECT 1 FROM posthorn."+table+" LIMIT 1"); err != nil && !strings.Contains(err.Error(), "permission") {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("a query waited %v behind the migration", took)
	}
	if _, err := holder.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the migration does not come to its end")
	}
}

func TestSeveralProcessesCanMigrateConcurrently(t *testing.T) {
	t.Parallel()
	url := dbtest.Clone(t, "", nil)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := schematest.Migrate(t.Context(), url); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if d, err := db.Open(t.Context(), url, db.Options{}); err != nil {
		t.Error(err)
	} else {
		defer d.Close()
		if _, _, err := accounts.CreateTenant(t.Context(), d, accounts.NewTenant{Name: "t"}, db.Author{Kind: "command"}); err != nil {
			t.Error(err)
		}
	}
}

func TestPartitionsAreMadeOnceAndReachedThroughTheirParentsAlone(t *testing.T) {
	t.Parallel()
	d, owner, _, _ := two(t, 2)
	ctx := t.Context()
	day := time.Date(2031, 2, 27, 0, 0, 0, 0, time.UTC)
	if made, err := d.MakePartitions(ctx, day, day.AddDate(0, 0, 3)); err != nil || made != 12 {
		t.Errorf("%d partitions made, %v; want 4 days of 3 tables", made, err)
	}
	if made, err := d.MakePartitions(ctx, day, day.AddDate(0, 0, 4)); err != nil || made != 3 {
		t.Errorf("%d partitions made the second time, %v; want the one day that was missing", made, err)
	}
	days, err := maintenance.PartitionDays(ctx, d)
	if err != nil || !slices.Contains(days, day) || !slices.Contains(days, day.AddDate(0, 0, 2)) ||
		days[len(days)-1] != day.AddDate(0, 0, 4) {
		t.Errorf("%v, %v", days, err)
	}
	if direct := names(t, owner, `SELECT c.relname || ' to ' || r.rolname FROM pg_class c, pg_roles r
		WHERE c.relnamespace = 'posthorn'::regnamespace AND c.relispartition AND r.rolname IN (`+roles+`)
		AND has_table_privilege(r.oid, c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE')`); len(direct) > 0 {
		t.Errorf("partitions are reached directly: %q", direct)
	}
	// Every index of the parent exists, and the bounds are UTC days whatever the session's time zone.
	if _, err := owner.Exec(ctx, "SET TIME ZONE 'Asia/Tokyo'"); err != nil {
		t.Fatal(err)
	}
	if bounds := names(t, owner, `SELECT pg_get_expr(c.relpartbound, c.oid) FROM pg_class c WHERE c.relname = 'events_y20310227'`); len(bounds) != 1 ||
		bounds[0] != "FOR VALUES FROM ('2031-02-27 09:00:00+09') TO ('2031-02-28 09:00:00+09')" {
		t.Errorf("%q", bounds)
	}
	if err := maintenance.DropDay(ctx, d, day); err != nil {
		t.Fatal(err)
	}
	if err := maintenance.DropDay(ctx, d, day); err != nil {
		t.Errorf("dropped twice: %v", err)
	}
	if left := names(t, owner, `SELECT relname FROM pg_class WHERE relname LIKE '%_y20310227'`); len(left) > 0 {
		t.Errorf("still there: %q", left)
	}
}

// Days that had deliveries when deliveries_later came keep the older index, which finds all of theirs; it goes with the
// last of them.
func TestAnIndexThatOnlyOldDaysNeedGoesWithThem(t *testing.T) {
	t.Parallel()
	d, owner, a, _ := two(t, 2)
	ctx := t.Context()
	has := func(index string) bool {
		t.Helper()
		return len(names(t, owner, "SELECT relname FROM pg_class WHERE relnamespace = 'posthorn'::regnamespace AND relname = '"+index+"'")) > 0
	}
	if has("deliveries_event") || !has("deliveries_later") {
		t.Fatal("a new database has the index of old days")
	}
	url := owner.Config().ConnString()
	for has("deliveries_later") {
		if err := db.MigrateDown(ctx, url); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := owner.Exec(ctx, "SET ROLE posthorn_console"); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Exec(ctx, `INSERT INTO posthorn.deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type)
		SELECT $1, now(), $2, $2, $2, 'a'`, a.String(), db.NewID().String()); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Exec(ctx, "RESET ROLE"); err != nil {
		t.Fatal(err)
	}
	if err := schematest.Migrate(ctx, url); err != nil {
		t.Fatal(err)
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	name := "deliveries_y" + today.Format("20060102")
	if has(name+"_later") || !has("deliveries_y"+today.AddDate(0, 0, 1).Format("20060102")+"_later") {
		t.Error("an index was made for a day that has deliveries, or none for an empty one")
	}
	if err := maintenance.DropOldIndexes(ctx, d); err != nil || !has("deliveries_event") {
		t.Errorf("dropped while today needs it, %v", err)
	}
	if err := maintenance.DropDay(ctx, d, today); err != nil {
		t.Fatal(err)
	}
	if _, err := d.MakePartitions(ctx, today, today); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := maintenance.DropOldIndexes(ctx, d); err != nil || has("deliveries_event") {
			t.Errorf("still there after the last day that needs it, %v", err)
		}
	}
}

// An address of before is found in the form in which people's addresses are read now.
func TestMailDomainsOfOlderRowsBecomeASCII(t *testing.T) {
	t.Parallel()
	_, owner, a, _ := two(t, 2)
	ctx, url := t.Context(), owner.Config().ConnString()
	for {
		states, err := db.MigrateStatus(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(states, func(s db.MigrationState) bool {
			return s.Applied && strings.Contains(s.Name, "mail_domains")
		}) {
			break
		}
		if err := db.MigrateDown(ctx, url); err != nil {
			t.Fatal(err)
		}
	}
	older := []string{
		"user@bücher.example", "a@münchen.de", "b@例え.テスト", "c@faß.de", "d@xn--dmin-moa0i.example", "e@plain.example",
		"f@почта.рф", "g@a.b.c.ñandú.example", "h@" + strings.Repeat("ü", 20) + ".example", "i@😀.example", "jörg@example.com",
	}
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := owner.Exec(ctx, statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("SET ROLE posthorn_console")
	contacts, _ := json.Marshal(older)
	for i, email := range older {
		exec(`INSERT INTO posthorn.people (id, email, name, password, created_at) VALUES ($1, $2, 'A', 'none', now())`, db.NewID().String(), email)
		exec(`INSERT INTO posthorn.operators (id, email, created_at) VALUES ($1, $2, now())`, db.NewID().String(), email)
		exec(`INSERT INTO posthorn.invitations (tenant_id, id, email, role, hash, invited_by, created_at, expires_at)
			VALUES ($1, $2, $3, 'viewer', $4, '', now(), now())`, a.String(), db.NewID().String(), email, []byte{byte(i)})
		exec(`INSERT INTO posthorn.sso_domains (tenant_id, domain, proof, created_at) VALUES ($1, $2, '', now())`, a.String(), sso.DomainOf(email))
		exec(`INSERT INTO posthorn.notice_preferences (tenant_id, recipient, kind, wanted) VALUES ($1, $2, 'digest', true)`, a.String(), email)
	}
	exec(`INSERT INTO posthorn.people (id, email, name, password, created_at) VALUES ($1, 'z@bücher.example', 'A', 'none', now()),
		($2, 'z@xn--bcher-kva.example', 'A', 'none', now())`, db.NewID().String(), db.NewID().String())
	exec(`UPDATE posthorn.tenants SET settings = jsonb_build_object('contacts', $2::jsonb) WHERE id = $1`, a.String(), string(contacts))
	exec("RESET ROLE")
	if err := schematest.Migrate(ctx, url); err != nil {
		t.Fatal(err)
	}
	exec("SET ROLE posthorn_console")
	var now, domains []string
	for _, email := range older {
		ascii, err := account.Email(email)
		if err != nil {
			t.Fatalf("%s: %v", email, err)
		}
		now = append(now, ascii)
		domains = append(domains, sso.DomainOf(ascii))
	}
	slices.Sort(domains)
	for query, want := range map[string][]string{
		`SELECT email FROM posthorn.people WHERE email !~ '^(z|alice|bob)@' AND created_at > now() - interval '1 hour' AND name = 'A' ORDER BY id`: now,
		`SELECT email FROM posthorn.operators WHERE email LIKE '_%@%' AND created_at > now() - interval '1 hour' ORDER BY id`:                      now,
		`SELECT email FROM posthorn.invitations ORDER BY id`:                                                                                       now,
		`SELECT recipient FROM posthorn.notice_preferences ORDER BY left(recipient, 1) COLLATE "C", recipient DESC`:                                nil,
		`SELECT domain FROM posthorn.sso_domains ORDER BY domain COLLATE "C"`:                                                                      domains,
		`SELECT jsonb_array_elements_text(settings -> 'contacts') FROM posthorn.tenants WHERE settings ? 'contacts'`:                               now,
		`SELECT email FROM posthorn.people WHERE email LIKE 'z@%' ORDER BY email COLLATE "C" DESC`:                                                 {"z@xn--bcher-kva.example", "z@bücher.example"},
	} {
		got := names(t, owner, query)
		if want == nil {
			want = slices.Clone(now)
			slices.Sort(want)
			slices.Sort(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%q\nwant\n%q", query, got, want)
		}
	}
}

// However a transaction ends, the next one on the same connection starts without any of its state.
func TestAConnectionCarriesNothingOver(t *testing.T) {
	t.Parallel()
	d, _, a, _ := two(t, 1)
	ctx := t.Context()
	clean := func(after string) {
		t.Helper()
		if _, err := d.ServerTime(ctx); err != nil {
			t.Fatalf("after %s: %v", after, err)
		}
		err := d.Tenant(ctx, a, func(q *sql.Queries) error {
			_, err := q.GetTenant(ctx, a)
			return err
		})
		if err != nil {
			t.Errorf("after %s: %v", after, err)
		}
	}
	func() {
		defer func() { _ = recover() }()
		_ = d.Tenant(ctx, a, func(*sql.Queries) error { panic("in mid-transaction") })
	}()
	clean("a panic")
	_ = d.Tenant(ctx, a, func(q *sql.Queries) error {
		_, err := q.InsertEventType(ctx, sql.InsertEventTypeParams{TenantID: a, Name: "kept.not", SchemaCheck: "off"})
		if err != nil {
			t.Error(err)
		}
		return context.DeadlineExceeded
	})
	clean("an error")
	_ = d.Tenant(ctx, a, func(q *sql.Queries) error {
		gone, cancel := context.WithCancel(ctx)
		cancel()
		_, err := q.GetTenant(gone, a)
		return err
	})
	clean("a canceled statement")
	_ = d.Worker(ctx, func(q *sql.Queries) error { return q.AssertAlive(ctx, a) }) // fails inside
	clean("a failed statement")
	var n int64
	if err := d.Tenant(ctx, a, func(q *sql.Queries) (err error) {
		n, err = q.CountEventTypes(ctx, a)
		return err
	}); err != nil || n != 0 {
		t.Errorf("%d event types, %v: what was rolled back is there", n, err)
	}
}

func TestNotificationsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	ids := []struct {
		n          int
		again, all bool
	}{
		{0, false, false},
		{1, false, false},
		{3, true, false},
		{230, false, false},
		{231, false, true},
		{5000, true, true},
	}
	for _, tt := range ids {
		made := make([]id.UUID, tt.n)
		for i := range made {
			made[i] = db.NewID()
		}
		payload := db.WakePayload(made, tt.again)
		if len(payload) >= 8000 {
			t.Errorf("%d endpoints make %d bytes; PostgreSQL takes fewer than 8,000", tt.n, len(payload))
		}
		got, all, again := db.ParseWake(payload)
		if all != tt.all || again != tt.again || !all && !slices.Equal(got, made) {
			t.Errorf("%d endpoints came back as %d, all %v, again %v", tt.n, len(got), all, again)
		}
	}
	if got, all, _ := db.ParseWake("junk,," + strings.Repeat("z", 32)); len(got) != 0 || all {
		t.Errorf("junk was read as %v", got)
	}
}

// A failed migration does not change the schema: PostgreSQL rolls its transaction back. So no migration may leave its
// transaction.
func TestEachMigrationIsOneTransaction(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil || len(files) < 50 {
		t.Fatal(len(files), err)
	}
	leaves := regexp.MustCompile(`(?im)no transaction|^\s*(commit|begin|rollback)\s*;|concurrently`)
	for _, file := range files {
		source, err := fs.ReadFile(migrations.FS, file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(source)) {
			if code, _, _ := strings.Cut(line, "-- "); leaves.MatchString(code) || strings.Contains(line, "+goose NO TRANSACTION") {
				t.Errorf("%s leaves its transaction: %s", file, line)
			}
		}
	}
}
