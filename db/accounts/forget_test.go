package accounts_test

import (
	"slices"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/tools/schematest"
)

func TestWhatHasExpiredIsForgotten(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	person := f.person("ada@acme.example", "owner")
	for i, age := range []string{"-1 day", "-1 minute", "1 minute", "1 day"} {
		f.exec("INSERT INTO sessions (id, hash, kind, person_id, expires_at) VALUES ($1, $2, 'person', $3, now() + $4::interval)",
			db.NewID().String(), []byte{byte(i)}, person.String(), age)
		f.exec("INSERT INTO one_time_links (hash, purpose, email, expires_at) VALUES ($1, 'sign_up', 'ada@acme.example', now() + $2::interval)", []byte{byte(i)}, age)
		f.exec("INSERT INTO account_limits (key, n, until) VALUES ($1, 1, now() + $2::interval)", []byte{byte(i)}, age)
	}
	forget := func() (n int64) {
		t.Helper()
		if err := f.db.Worker(t.Context(), func(q *sql.Queries) (err error) {
			n, err = q.ForgetExpired(t.Context(), 1)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if a, b, c := forget(), forget(), forget(); a != 1 || b != 1 || c != 0 {
		t.Errorf("one at a time: %d, %d, %d", a, b, c)
	}
	for _, table := range []string{"sessions", "one_time_links", "account_limits"} {
		until := map[string]string{"account_limits": "until"}[table]
		if until == "" {
			until = "expires_at"
		}
		if left := schematest.Names(t, f.sql, "SELECT ("+until+" > now())::text FROM "+table); !slices.Equal(left, []string{"true", "true"}) {
			t.Errorf("%s: left are %q", table, left)
		}
	}
}

// The worker sends requests to receivers: a secret that it can't read can't leak through it.
func TestTheWorkerReadsNoSecretOfPeopleAndOperators(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	f.person("ada@acme.example", "owner")
	f.exec("INSERT INTO operators (id, email, password, totp, created_at) VALUES ($1, 'op@posthorn.example', 'x', 'x', now())", db.NewID().String())
	f.exec("RESET ROLE")
	f.exec("SET ROLE posthorn_worker")
	secrets := map[string][]string{
		"operators":      {"password", "password_at", "totp", "totp_step", "*"},
		"people":         {"password", "totp", "*"},
		"sessions":       {"hash", "data", "address", "*"},
		"one_time_links": {"email", "data", "*"},
		"recovery_codes": {"hash"},
	}
	for table, columns := range secrets {
		for _, column := range columns {
			_, err := f.sql.Exec(t.Context(), "SELECT "+column+" FROM posthorn."+table)
			if err == nil || !strings.Contains(err.Error(), "42501") {
				t.Errorf("%s.%s: %v", table, column, err)
			}
		}
	}
	if to := schematest.Names(t, f.sql, "SELECT email FROM posthorn.operators"); !slices.Equal(to, []string{"op@posthorn.example"}) {
		t.Errorf("whom to alert: %q", to)
	}
	var operators []sql.AlertedOperatorsRow
	if err := f.db.Worker(t.Context(), func(q *sql.Queries) (err error) {
		operators, err = q.AlertedOperators(t.Context())
		return err
	}); err != nil || len(operators) != 1 || operators[0].ID == (id.UUID{}) {
		t.Errorf("%+v, %v", operators, err)
	}
}
