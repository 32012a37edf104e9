package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/mail"
	"posthorn/domain/show"
	"posthorn/web/cli"
)

type made struct {
	TenantID string   `json:"tenant_id"`
	APIKey   string   `json:"api_key"`
	KeyID    string   `json:"key_id"`
	Scopes   []string `json:"scopes"`
}

func TestTenantCreatePrintsTheTenantAndAKeyThatMayDoEverything(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	var m made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
	if _, err := id.Tenant.Parse(m.TenantID); err != nil || !strings.HasPrefix(m.APIKey, "phk_") {
		t.Fatalf("%+v", m)
	}
	d, tenant := openTest(t, environ), mustParse(t, id.Tenant, m.TenantID)
	who := holder(t, d, m.APIKey)
	if who.Tenant != tenant || !slices.Equal(who.Scopes, access.Scopes(access.TenantScopes()).Names()) {
		t.Errorf("the key is %+v", who)
	}
	if text := succeed(t, environ, nil, "tenant", "create", "--name", "Grüße & Söhne"); !strings.Contains(text, "ten_") || !strings.Contains(text, "phk_") {
		t.Errorf("for people: %s", text)
	}
	var list []struct{ Name, State string }
	succeed(t, environ, &list, "tenant", "list", "--json")
	if fmt.Sprint(list) != "[{Acme active} {Grüße & Söhne active}]" {
		t.Errorf("listed: %v", list)
	}
	if entries := auditActions(t, d, tenant); !slices.Equal(entries, []string{"key.created", "tenant.created"}) {
		t.Errorf("audit log: %v", entries)
	}
}

func TestKeyCreateGivesTheScopesAskedForAndNoOthers(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	var tenant, key made
	succeed(t, environ, &tenant, "tenant", "create", "--name", "Acme", "--json")
	d := openTest(t, environ)

	succeed(t, environ, &key, "key", "create", "--tenant", tenant.TenantID, "--scopes", "events:write,events:read", "--json")
	if who := holder(t, d, key.APIKey); fmt.Sprint(who.Scopes) != "[events:write events:read]" || who.Tenant.IsZero() ||
		id.Key.Format(who.Key) != key.KeyID {
		t.Errorf("a tenant's key: %+v", who)
	}
	succeed(t, environ, &key, "key", "create", "--platform", "--scopes", "all", "--json")
	if who := holder(t, d, key.APIKey); len(who.Scopes) != len(access.PlatformScopes()) || !who.Tenant.IsZero() ||
		!strings.HasPrefix(key.APIKey, "php_") {
		t.Errorf("a platform key: %+v", who)
	}
	succeed(t, environ, &key, "key", "create", "--platform", "--scopes", "events:write", "--lives", "1h", "--json")
	if who := holder(t, d, key.APIKey); who.ExpiresAt.Year() > 9000 {
		t.Errorf("a key that lives an hour: %+v", who)
	}
}

func TestCommandsRefuseInPlainWords(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	unknown := id.Tenant.Format(id.UUID{1})
	for _, c := range []struct {
		args string
		code int
		fix  string
	}{
		{"frobnicate", exitUsage, "--help"},
		{"migrate distribute", exitUsage, "posthorn migrate --help"},
		{"tenant create", exitUsage, "--name"},
		{"tenant create --name=", exitUsage, "1 to 100 visible characters"},
		{"tenant create --name=" + strings.Repeat("x", 101), exitUsage, "1 to 100 visible characters"},
		{"tenant create --name=a\nb", exitUsage, "one line"},
		{"key create --scopes events:write", exitUsage, "--platform"},
		{"key create --platform", exitUsage, "--scopes"},
		{"key create --platform --tenant x --scopes all", exitUsage, "--tenant"},
		{"key create --tenant x --scopes all", exitUsage, "posthorn tenant list"},
		{"key create --tenant " + unknown + " --scopes all", exitFailed, "posthorn tenant list"},
		{"key create --tenant " + unknown + " --scopes tenants:write", exitUsage, "events:write, events:read"},
		{"key create --platform --scopes events:eat", exitUsage, "events:eat"},
		{"key create --platform --scopes all --lives=-1h", exitUsage, "720h"},
		{"key create --platform --scopes all --lives=soon", exitUsage, "lives"},
		{"operator create --email ada", exitUsage, "ada@example.com"},
		{"operator create --email=Ada<ada@example.com>", exitUsage, "ada@example.com"},
	} {
		r := command(t, environ, strings.Split(c.args, " ")...)
		if r.code != c.code || !strings.Contains(r.stderr, c.fix) || r.stdout != "" || !strings.HasPrefix(r.stderr, "posthorn: ") {
			t.Errorf("%s: exit code %d, want %d\n%s%s", c.args, r.code, c.code, r.stdout, r.stderr)
		}
	}
	var list []any
	if succeed(t, environ, &list, "tenant", "list", "--json"); len(list) != 0 {
		t.Errorf("a refused command made something: %v", list)
	}
}

func TestOperatorCreateTakesAnAddressOnce(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	var m struct {
		ID    string `json:"operator_id"`
		Email string `json:"email"`
	}
	succeed(t, environ, &m, "operator", "create", "--email", "Ada@Example.com", "--json")
	if _, err := id.Operator.Parse(m.ID); err != nil || m.Email != "ada@example.com" {
		t.Errorf("%+v", m)
	}
	if err := openTest(t, environ).Console(t.Context(), func(q *db.Tx) error {
		sent, err := accounts.MailList{}.List(t.Context(), q, show.Range{Limit: 2})
		if err == nil && (len(sent.Rows) != 1 || sent.Rows[0].Kind != mail.OperatorAccess || sent.Rows[0].Recipient != m.Email) {
			t.Errorf("the operator gets %+v", sent.Rows)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if r := command(t, environ, "operator", "create", "--email", "ada@EXAMPLE.com"); r.code != exitFailed || !strings.Contains(r.stderr, "already") {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
}

func TestAccountsOfAProviderAreUnlinked(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	person := []string{"account", "unlink-sso", "--email", "Ada@example.com", "--reason", "the realm was rebuilt"}
	operator := []string{"operator", "unlink-sso", "--email", "op@example.com", "--reason", "the realm was rebuilt"}
	for _, args := range [][]string{person, operator} {
		if r := command(t, environ, args...); r.code != exitFailed || !strings.Contains(r.stderr, "There is no ") {
			t.Errorf("exit code %d: %s", r.code, r.stderr)
		}
	}
	d := openTest(t, environ)
	tenant, operatorID := db.NewID(), db.NewID()
	if err := d.Console(t.Context(), func(q *db.Tx) error {
		if err := q.InsertTenant(t.Context(), sql.InsertTenantParams{
			ID:            tenant,
			Name:          "Acme",
			RetentionDays: 7,
			CreatedAt:     tenant.Time(),
		}); err != nil {
			return err
		}
		p, err := accounts.AddPerson(t.Context(), q, "ada@example.com", "Ada", "none")
		if err != nil {
			return err
		}
		if _, err := accounts.AddMember(t.Context(), q, tenant, p, access.Owner); err != nil {
			return err
		}
		if err := q.PutIdentity(t.Context(), sql.PutIdentityParams{
			TenantID: tenant,
			Subject:  "1",
			PersonID: p,
		}); err != nil {
			return err
		}
		if _, err := q.InsertOperator(t.Context(), sql.InsertOperatorParams{
			ID:        operatorID,
			Email:     "op@example.com",
			CreatedAt: operatorID.Time(),
		}); err != nil {
			return err
		}
		_, err = q.LinkOperator(t.Context(), sql.LinkOperatorParams{
			ID:      operatorID,
			Issuer:  new("https://id.example.com"),
			Subject: new("1"),
		})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{person, operator} {
		if r := command(t, environ, args[:4]...); r.code == exitOK {
			t.Errorf("without a reason: %s", r.stdout)
		}
		if r := command(t, environ, args...); r.code != exitOK || !strings.Contains(r.stdout, "is unlinked") {
			t.Errorf("exit code %d: %s%s", r.code, r.stdout, r.stderr)
		}
		if r := command(t, environ, args...); r.code != exitOK || !strings.Contains(r.stdout, "Nothing was changed") {
			t.Errorf("a second time, exit code %d: %s%s", r.code, r.stdout, r.stderr)
		}
	}
}

func TestASecondFactorIsResetForWhoLostIt(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	reset := []string{"account", "reset-second-factor", "--email", "ada@example.com", "--reason", "lost the phone"}
	if r := command(t, environ, reset...); r.code != exitFailed || !strings.Contains(r.stderr, "no account") {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
	d := openTest(t, environ)
	personID := db.NewID()
	if err := d.Console(t.Context(), func(q *db.Tx) error {
		if err := q.InsertPerson(t.Context(), sql.InsertPersonParams{
			ID:        personID,
			Email:     "ada@example.com",
			Name:      "Ada",
			Password:  "none",
			CreatedAt: personID.Time(),
		}); err != nil {
			return err
		}
		if err := q.SetPersonTOTP(t.Context(), []byte("sealed"), personID); err != nil {
			return err
		}
		_, err := q.ConfirmPersonTOTP(t.Context(), 1, personID)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{"is off", "Nothing was changed"} {
		if r := command(t, environ, reset...); r.code != 0 || !strings.Contains(r.stdout, said) {
			t.Errorf("exit code %d: %s%s", r.code, r.stdout, r.stderr)
		}
	}
	if err := d.Console(t.Context(), func(q *db.Tx) error {
		p, err := q.FindPerson(t.Context(), "ada@example.com")
		if err == nil && (p.Totp != nil || p.TotpAt != nil) {
			t.Error("the second factor is still on")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestMigrateGoesUpAndDownAndSaysWhereItStands(t *testing.T) {
	t.Parallel()
	environ := emptyDatabase(t)
	type migration struct {
		Version int64
		Applied bool
	}
	status := func() (all []migration) {
		succeed(t, environ, &all, "migrate", "status", "--json")
		return all
	}
	if all := status(); len(all) == 0 || all[0].Applied {
		t.Fatalf("an empty database: %+v", all)
	}
	succeed(t, environ, nil, "migrate", "up")
	if all := status(); slices.ContainsFunc(all, func(m migration) bool { return !m.Applied }) {
		t.Errorf("after up: %+v", all)
	}
	succeed(t, environ, nil, "migrate", "down")
	if all := status(); all[len(all)-1].Applied {
		t.Errorf("after down: %+v", all)
	}
	succeed(t, environ, nil, "tenant", "create", "--name", "Acme") // brings the schema up to date by itself
	if text := succeed(t, environ, nil, "migrate", "status"); strings.Contains(text, "missing") || !strings.Contains(text, "applied") {
		t.Errorf("for people: %s", text)
	}
}

func TestVersionAndHelpNeedNoDatabase(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"--help"}, {}, {"serve", "--help"}, {"key", "create", "--help"}, {"help"}, {"help", "endpoints", "create"}} {
		if r := command(t, []string{"POSTHORN_ADDR=wrong"}, args...); r.code != exitOK || r.stdout == "" || r.stderr != "" {
			t.Errorf("%v: exit code %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}

func TestHelpSpeaksToPeople(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, wants, lacks string }{
		{"help", "Commands that speak to a server", ""},
		{"help emit", "Usage: posthorn emit", `=""`},
		{"help endpoints create", "standard, x-webhook", `=""`},
		{"help endpoints create", "--event-types=TYPE,...  ", ",standard"},
		{"help deliveries list", "pending, retrying", ",pending"},
		{"help key create", "never expires", "720h  "},
	} {
		r := command(t, nil, strings.Fields(c.args)...)
		if r.code != exitOK || !strings.Contains(r.stdout, c.wants) || c.lacks != "" && strings.Contains(r.stdout, c.lacks) {
			t.Errorf("posthorn %s: exit code %d\n%s", c.args, r.code, r.stdout)
		}
	}
	for args, advice := range map[string]string{
		"emit":                      "`posthorn emit --help`",
		"endpoints":                 "`posthorn endpoints --help`",
		"endpoints create --colour": "`posthorn endpoints create --help`",
		"frobnicate":                "`posthorn --help`",
	} {
		if r := command(t, nil, strings.Fields(args)...); r.code != exitUsage || !strings.Contains(r.stderr, "Try "+advice) {
			t.Errorf("posthorn %s: %s", args, r.stderr)
		}
	}
}

// What is wrong with a command line is said in sentences, and no word of a program's types is in them.
func TestAWrongCommandLineIsSaidInSentences(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"events list --limit x":               `--limit takes a whole number, not "x".`,
		"test ep_1 --wait soon":               `--wait takes a duration such as 30s or 24h, not "soon".`,
		"deliveries list --status lost":       `--status takes one of "pending",`,
		"tenant create":                       "Missing: --name=NAME.",
		"emit":                                `Missing: "<type>`,
		"endpoint list":                       `There is no command or argument "endpoint". Did you mean "endpoints"?`,
		"events list --sideways":              "There is no flag --sideways.",
		"emit order.completed @/nowhere/at":   "/nowhere/at does not exist.",
		"endpoints create --body {\"url\":x}": "--body is not JSON: check line 1 at character 8.",
	} {
		r := command(t, []string{"POSTHORN_API_KEY=phk_x"}, strings.Fields(line)...)
		if r.code != exitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("posthorn %s: exit code %d, %q, want %q", line, r.code, r.stderr, want)
		}
	}
}

func TestAServerThatIsAwayIsNamedAndWhy(t *testing.T) {
	t.Parallel()
	environ := []string{"POSTHORN_URL=http://127.0.0.1:1", "POSTHORN_API_KEY=phk_x"}
	r := command(t, environ, "endpoints", "create", "https://example.com/hooks")
	if r.code != cli.ExitUnavailable || !strings.Contains(r.stderr, "The server http://127.0.0.1:1 can't be reached: connection refused.") || strings.Contains(r.stderr, "dial tcp") {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
	for _, flags := range []string{"--topic=x", "--kafka=broker.example.com:9093", "--sasl=plain --user=x"} {
		r := command(t, environ, append([]string{"endpoints", "create"}, strings.Fields(flags)...)...)
		if r.code != exitUsage || !strings.Contains(r.stderr, "A connection to kafka also needs --") {
			t.Errorf("%s: exit code %d: %s", flags, r.code, r.stderr)
		}
	}
	if r := command(t, environ, "endpoints", "create", "--exchange=x", "--user=x"); r.code != exitUsage || !strings.Contains(r.stderr, "A connection to rabbitmq also needs --rabbitmq") {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
}

func TestAnErrorIsOneLineWithoutSecretsAndRepetitions(t *testing.T) {
	t.Parallel()
	err := errors.New("failed:\n\tdial a: refused\n\tdial a: refused\n\tdial postgres://u:c4n4ry@b/d: refused")
	if got, want := oneLine(err), "failed: dial a: refused dial postgres://u:redacted@b/d: refused"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTheCommandListsTheAlertsOfThePlatform(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	if text := succeed(t, environ, nil, "platform", "alerts"); text != "No open alerts.\n" {
		t.Errorf("%q", text)
	}
	d, now := openTest(t, environ), time.Now()
	if err := d.Worker(t.Context(), func(q *sql.Queries) error {
		for _, a := range []incidents.Alert{{Kind: incidents.WorkerLost, Title: "A worker", Message: "m"}, {Kind: incidents.DownHost, Key: "a", Title: "a.example.com: down", Message: "m"}} {
			at := now
			if a.Kind == incidents.WorkerLost {
				at = now.Add(-time.Hour)
			}
			if err := accounts.RaiseAlert(t.Context(), q, accounts.Links{}, a, at); err != nil {
				return err
			}
		}
		return accounts.EndAlerts(t.Context(), q, accounts.Links{}, now)
	}); err != nil {
		t.Fatal(err)
	}
	if text := succeed(t, environ, nil, "platform", "alerts"); !strings.Contains(text, "a.example.com: down") || strings.Contains(text, "A worker") {
		t.Errorf("%s", text)
	}
	var list []struct{ Kind, Status string }
	succeed(t, environ, &list, "platform", "alerts", "--all", "--json")
	if len(list) != 2 || list[0].Kind != "host_down" || list[0].Status != "triggered" || list[1].Status != "resolved" {
		t.Errorf("%+v", list)
	}
}
