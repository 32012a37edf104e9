package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"posthorn/client"
	"posthorn/tools/optest"
	"posthorn/web/cli"
)

// newApplyDesk is a terminal with a platform key of a new installation.
func newApplyDesk(t *testing.T, more ...string) *desk {
	t.Helper()
	environ := append(newDatabase(t), "POSTHORN_EGRESS_ALLOW=127.0.0.1")
	var m made
	succeed(t, environ, &m, "key", "create", "--platform", "--scopes", "all", "--json")
	p := program(t, environ, Parts{Web: true})
	return &desk{
		t:      t,
		server: environ,
		url:    p.URL(),
		key:    m.APIKey,
		environ: append(more, "POSTHORN_URL="+p.URL(), "POSTHORN_API_KEY="+m.APIKey, "HOME="+
			t.TempDir()),
	}
}

// wholeFile names every field that a file can have at least once.
const wholeFile = `version: 1
platform:
  settings:
    limits.events_per_month: 5000000
    features.portal: off
    endpoints.retry_policy: five
tenants:
  - external_id: customer-1
    name: Customer One
    strict_types: true
    retention_days: 30
    viewers_read_payloads: false
    health_policy: {gone: false, exhausted: 9}
    retry_policy: {delays: [60, 300], jitter: 0.25}
    contacts: [ops@example.com, dev@example.com]
    digest: false
    muted_notices: [secret.rotated, endpoint.recovered]
    limits: {events_per_second: 100, endpoints: 20, payload_bytes: 65536}
    mcp_access: {audience: "https://agents.example.com", claim: org_id, claim_value: acme, message_id_hosts: [agent.example.com]}
    event_types:
      - name: order.completed
        description: An order was paid for.
        group: Orders
        schema:
          type: object
          required: [order_id]
          properties:
            order_id: {type: string, pattern: "^ord_${1,20}"}
            url_from: {type: string}
        example: {order_id: ord_}
        schema_check: warn
        versions:
          "2026-01": {schema: {type: object}, example: {a: 1}}
      - {name: order.canceled, deprecated: true}
    endpoints:
      - external_id: customer-1/main
        url: https://hooks.example.com/in?token=abc
        description: Their main hook
        event_types: [order.*]
        filter: data.total > 10
        channels: [shop]
        format: x-webhook
        prefix: Acme
        type_field: both
        wire: {header_names: {event: X-Acme-Kind}, also_sign: {format: standard, secret: "${ALSO_SECRET}"}}
        rotation_signatures: all
        public_signature: rfc9421
        retry_policy: {name: exponential}
        retry_client_errors: true
        timeout_seconds: 20
        max_in_flight: 3
        rate_limit: null
        ordering: key
        payload_version: 2026-01
        accept_conflict: true
        circuit_breaker: false
        send_traceparent: true
        verification: simple
        when_held: drop
        custom_headers: {Authorization: "Bearer ${TOKEN}", X-Team: shop, X-Mark: "$${plain}"}
        sensitive_headers: [X-Team]
        metadata: {team: shop}
        secret_from: env:HOOK_SECRET
        assume_verified: true
        paused: true
      - external_id: customer-1/github
        url: https://github.example.com/in
        preset: github
        secret: It-s-a-secret-of-their-own-with-32
        assume_verified: true
        rate_limit: 10
        burst: 50
      - external_id: customer-1/topic
        kind: kafka
        kafka:
          bootstrap_servers: ["broker.example.com:9092"]
          topic: orders
          sasl: {mechanism: SCRAM-SHA-256, username: ada, password: "${KAFKA_PASSWORD}"}
      - external_id: customer-1/exchange
        kind: rabbitmq
        rabbitmq: {url: "amqps://rabbitmq.example.com/shop", exchange: webhooks, username: ada, password: "${KAFKA_PASSWORD}"}
      - external_id: customer-1/queue
        kind: sqs
        sqs: {queue_url: "https://sqs.eu-west-1.amazonaws.com/123456789012/webhooks", access_key_id: AKIDEXAMPLE, secret_access_key: "${KAFKA_PASSWORD}"}
      - external_id: customer-1/bucket
        kind: s3
        s3: {bucket: acme-events, region: eu-west-1, key_template: "dt={date}/{id}", gzip: true, access_key_id: AKIDEXAMPLE, secret_access_key: "${KAFKA_PASSWORD}"}
      - external_id: customer-1/api
        url: https://api.example.com/in
        auth: {type: oauth2, token_url: "https://login.example.com/token", client_id: posthorn, client_secret: "${OAUTH_SECRET}", scopes: [hooks]}
        tls: {ca_certificate: "${AUTHORITY}"}
        secret_from: env:ALSO_SECRET
      - {external_id: customer-1/inbox, kind: inbox, description: To look at, event_types: [order.*], answer: 500}
    members:
      - {email: ada@example.com, role: owner}
      - {email: bob@example.com, role: viewer}
    keys:
      - {name: producer, scopes: ["events:write", "events:read"], expires_at: 2099-01-01T00:00:00Z}
    sso:
      issuer: ISSUER
      client_id: posthorn
      client_secret: ${SSO_SECRET}
      role_claim: realm_access.roles
      roles: {webhooks-admins: admin, "a_from = b": viewer}
      default_role: null
      join_members: false
      trust_email: true
      required: true
      break_glass: ada@example.com
      session_seconds: 3600
      domains: [shop.example.com, example.com]
  - external_id: customer-2
    name: Customer Two
    suspended: true
    endpoints: []
`

// wholeEnviron are the variables of whole. The file is read when a test needs it: this program also runs as posthorn,
// in other folders.
func wholeEnviron(t *testing.T) []string {
	t.Helper()
	authority, err := os.ReadFile("../domain/endpoint/testdata/authority.pem")
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		"TOKEN=token-of-theirs", "HOOK_SECRET=a-secret-that-is-long-enough-1234", "ALSO_SECRET=whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
		"KAFKA_PASSWORD=sesame", "OAUTH_SECRET=sesame-of-a-client", "AUTHORITY=" + string(authority), "SSO_SECRET=a-client-secret-of-the-provider",
	}
}

// whole is the file with a provider that responds.
func whole(t *testing.T) string {
	t.Helper()
	return strings.Replace(wholeFile, "ISSUER", optest.New(t, "https://unused.example.com").URL, 1)
}

// file writes a file for apply and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "posthorn.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

type planned struct {
	Applied bool `json:"applied"`
	Changes []struct {
		Action, Kind, Tenant, Name string
		Fields                     []struct {
			Field    string
			From, To any
			Secret   bool
		}
	} `json:"changes"`
}

func (p planned) String() string {
	var lines []string
	for _, c := range p.Changes {
		line := c.Action + " " + c.Kind + " " + c.Name
		for _, f := range c.Fields {
			line += " " + f.Field
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (d *desk) apply(text, flags string) planned {
	d.t.Helper()
	var p planned
	d.ok(&p, "apply --json --secrets-file "+filepath.Join(d.t.TempDir(), "secrets")+" "+flags+" -f "+file(d.t, text))
	return p
}

func TestApplyTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	text := whole(t)
	d := newApplyDesk(t, wholeEnviron(t)...)
	dry := d.apply(text, "--dry-run")
	if again := d.apply(text, "--dry-run"); len(dry.Changes) != 17 || again.String() != dry.String() || dry.Applied {
		t.Errorf("a dry run did something, or less than all: %v", dry)
	}
	secrets := filepath.Join(t.TempDir(), "secrets")
	var first planned
	d.ok(&first, "apply --json --secrets-file "+secrets+" -f "+file(t, text))
	if first.String() != dry.String() || !first.Applied {
		t.Errorf("planned\n%v\nand did\n%v", dry, first)
	}
	made, err := os.ReadFile(secrets)
	if err != nil || strings.Count(string(made), "\n") != 6 || !strings.Contains(string(made), `"phk_`) ||
		!strings.Contains(string(made), "whsec_") {
		t.Errorf("secrets that were made: %s, %v", made, err)
	}
	if second := d.apply(text, ""); len(second.Changes) != 0 {
		t.Errorf("the second time changes\n%v", second)
	}
	if r := d.run("apply --check -f " + file(t, text)); r.code != cli.ExitOK || !strings.Contains(r.stdout, "No changes") {
		t.Errorf("the check: %d %s%s", r.code, r.stdout, r.stderr)
	}
	// A schedule by name and one with delays are the same on the next day too; so is a file in another order.
	swapped := strings.Replace(text, "contacts: [ops@example.com, dev@example.com]", "contacts: [dev@example.com, ops@example.com]", 1)
	if p := d.apply(swapped, ""); len(p.Changes) != 0 {
		t.Errorf("another order changes %v", p)
	}
}

func TestExportAndApplyReproduceAnInstallation(t *testing.T) {
	t.Parallel()
	text := whole(t)
	from := newApplyDesk(t, wholeEnviron(t)...)
	from.apply(text, "")
	// What was made by hand has no external id.
	from.ok(nil, "endpoints create --tenant customer-1 https://other.example.com/in")
	exported := from.run("export")
	if exported.code != cli.ExitOK {
		t.Fatalf("%s%s", exported.stdout, exported.stderr)
	}
	for _, secret := range []string{"token-of-theirs", "a-secret-that-is", "sesame", "whsec_", "It-s-a-secret", "a-client-secret", from.key} {
		if strings.Contains(exported.stdout+exported.stderr, secret) {
			t.Errorf("the export has the secret %s", secret)
		}
	}
	for _, field := range fieldsIn(text) {
		if !strings.Contains(exported.stdout, field+":") && !slices.Contains([]string{"preset", "secret_from"}, field) {
			t.Errorf("the export has no %s", field)
		}
	}
	var environ []string
	for line := range strings.Lines(exported.stderr) {
		if name := strings.TrimSpace(line); strings.HasPrefix(name, "POSTHORN_") {
			environ = append(environ, name+"="+map[bool]string{
				true:  "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
				false: "a-value-of-the-right-length-0123456789",
			}[strings.Contains(name, "EXPORTED") || strings.Contains(name, "TOPIC_SECRET") || strings.Contains(name, "EXCHANGE_SECRET") || strings.HasSuffix(name, "BUCKET_SECRET") || strings.HasSuffix(name, "QUEUE_SECRET") || strings.Contains(name, "API_SECRET") || strings.Contains(name, "ALSO")])
		}
	}
	if len(environ) != 17 {
		t.Errorf("%d variables: %v", len(environ), environ)
	}
	to := newApplyDesk(t, environ...)
	to.apply(exported.stdout, "")
	if p := to.apply(exported.stdout, ""); len(p.Changes) != 0 {
		t.Errorf("the second time changes\n%v", p)
	}
	again := to.run("export")
	var want []string
	for line := range strings.Lines(exported.stdout) {
		if name := strings.TrimLeft(line, " -"); !strings.HasPrefix(name, "id: ") || strings.HasPrefix(name, `id: ""`) {
			want = append(want, line)
		}
	}
	if got := again.stdout; got != strings.Join(want, "") {
		t.Errorf("exported\n%s\nand after apply elsewhere\n%s", strings.Join(want, ""), got)
	}
	// On the installation itself the file only adds the external id that the export had to choose.
	if p := from.apply(exported.stdout, "--keep-secrets"); len(p.Changes) != 1 || !strings.HasPrefix(p.String(), "update endpoint exported-") ||
		!strings.HasSuffix(p.String(), " external_id") {
		t.Errorf("on the same installation: %v", p)
	}
	if p := from.apply(exported.stdout, "--keep-secrets"); len(p.Changes) != 0 {
		t.Errorf("and again: %v", p)
	}
	next := strings.ReplaceAll(exported.stdout, "external_id: customer-1/topic", "external_id: customer-1/next")
	if r := from.run("apply --keep-secrets -f " + file(t, next)); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "nothing to keep") {
		t.Errorf("a new object without its secrets: %d %s", r.code, r.stderr)
	}
}

// The platform's own tenant is made by a command on each server. The file finds it there by its id.
func TestThePlatformsOwnTenantIsFoundByItsID(t *testing.T) {
	t.Parallel()
	ids, desks := make([]string, 2), make([]*desk, 2)
	for i := range desks {
		desks[i] = newApplyDesk(t)
		var m struct {
			ID string `json:"tenant_id"`
		}
		succeed(t, desks[i].server, &m, "platform", "tenant", "--json")
		ids[i] = m.ID
	}
	exported := desks[0].ok(nil, "export")
	text := strings.ReplaceAll(exported, "id: "+ids[0], "id: "+ids[1])
	if text == exported {
		t.Fatalf("the export has no %s:\n%s", ids[0], exported)
	}
	if p := desks[1].apply(text, ""); strings.Contains(p.String(), "create tenant") {
		t.Errorf("a second tenant: %v", p)
	}
	if again := desks[1].ok(nil, "export"); strings.Count(again, "name: Posthorn") != 1 {
		t.Errorf("it has\n%s", again)
	}
}

// fieldsIn are the names of a file's fields.
func fieldsIn(text string) (names []string) {
	for _, field := range []string{
		"strict_types", "retention_days", "viewers_read_payloads", "health_policy", "retry_policy", "contacts", "digest", "muted_notices", "limits", "mcp_access", "event_types", "schema",
		"example", "schema_check", "versions", "deprecated", "filter", "channels", "format", "prefix", "type_field", "rotation_signatures", "public_signature", "retry_client_errors",
		"timeout_seconds", "max_in_flight", "rate_limit", "burst", "ordering", "payload_version", "accept_conflict", "circuit_breaker", "verification", "when_held",
		"custom_headers", "sensitive_headers", "metadata", "paused", "assume_verified", "suspended", "wire", "also_sign", "kafka", "members", "keys", "settings", "answer",
		"send_traceparent", "auth", "tls", "token_url", "sso", "issuer", "client_id", "client_secret", "role_claim", "roles", "default_role", "join_members", "trust_email",
		"session_seconds", "domains",
	} {
		if strings.Contains(text, field) {
			names = append(names, field)
		}
	}
	return names
}

func TestDriftIsFoundAndEndsTheCheckWithItsOwnCode(t *testing.T) {
	t.Parallel()
	text := whole(t)
	d := newApplyDesk(t, wholeEnviron(t)...)
	d.apply(text, "")
	path := file(t, text)
	for _, c := range []struct{ name, command, want string }{
		{"an endpoint's field", "endpoints update --tenant customer-1 customer-1/main --timeout 9", "update endpoint customer-1/main timeout_seconds"},
		{"a write-only header", `endpoints update --tenant customer-1 customer-1/main --body {"custom_headers":{"Authorization":"other","X-Team":null,"X-Mark":"${plain}"}}`, "update endpoint customer-1/main"},
		{"a secret", "endpoints secret rotate --tenant customer-1 customer-1/github", "update endpoint customer-1/github secret"},
		{"a password of a broker", `endpoints update --tenant customer-1 customer-1/topic --body {"kafka":{"sasl":{"mechanism":"SCRAM-SHA-256","username":"ada","password":"other"}}}`, "update endpoint customer-1/topic"},
		{"a client's secret", `endpoints update --tenant customer-1 customer-1/api --auth oauth2 --auth-token-url https://login.example.com/token --auth-client-id posthorn --auth-scopes hooks --auth-secret other`, "update endpoint customer-1/api write-only values"},
		{"an authority", "endpoints update --tenant customer-1 customer-1/api --receiver-ca none", "update endpoint customer-1/api tls"},
		{"a pause", "endpoints resume --tenant customer-1 customer-1/main", "update endpoint customer-1/main paused"},
		{"a deleted endpoint", "endpoints delete --tenant customer-1 customer-1/topic", "create endpoint customer-1/topic"},
	} {
		d.ok(nil, c.command)
		r := d.run("apply --check --json -f " + path)
		var p planned
		if err := json.Unmarshal([]byte(r.stdout), &p); err != nil || r.code != cli.ExitDiffers || p.Applied ||
			!strings.HasPrefix(p.String(), c.want) || len(p.Changes) != 1 {
			t.Errorf("%s: exit code %d, %s%v, %v", c.name, r.code, r.stderr, p, err)
		}
		if strings.Contains(r.stdout, "token-of-theirs") || strings.Contains(r.stdout, "sesame") {
			t.Errorf("%s: the plan shows a secret: %s", c.name, r.stdout)
		}
		if p := d.apply(text, ""); len(p.Changes) != 1 {
			t.Errorf("%s: put right by %v", c.name, p)
		}
		if p := d.apply(text, ""); len(p.Changes) != 0 {
			t.Errorf("%s: still differs: %v", c.name, p)
		}
	}
}

// What the command line has no command for drifts too: the response of a test inbox, and single sign-on.
func TestDriftOfAnInboxAndOfSingleSignOn(t *testing.T) {
	t.Parallel()
	text := whole(t)
	d := newApplyDesk(t, wholeEnviron(t)...)
	d.apply(text, "")
	platform, err := client.New(d.url, d.key)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := platform.GetTenantSSO(t.Context(), "customer-1")
	if _, none := shown.BreakGlass.Get(); err != nil || shown.Required || none == nil {
		t.Errorf("an owner who is only invited is the break-glass account: %+v, %v", shown, err)
	}
	if r := d.run("apply --check -f " + file(t, text)); !strings.Contains(r.stderr, "once ada@example.com is a member") {
		t.Errorf("nobody is told what waits: %s%s", r.stdout, r.stderr)
	}
	sso := func(p client.SSOPatch) error {
		_, err := platform.UpdateTenantSSO(t.Context(), "customer-1", p)
		return err
	}
	for _, c := range []struct {
		name string
		do   func() error
		want string
	}{
		{"an inbox", func() error {
			_, err := platform.Tenant("customer-1").UpdateInbox(t.Context(), "customer-1/inbox", client.InboxPatch{Answer: client.InboxSlow})
			return err
		}, "update endpoint customer-1/inbox answer"},
		{"a client secret", func() error { return sso(client.SSOPatch{ClientSecret: client.Value("another-secret-of-the-client")}) }, "update sso single sign-on client_secret"},
		{"a public client", func() error { return sso(client.SSOPatch{ClientSecret: client.Null[string]()}) }, "update sso single sign-on client_secret"},
		{"domains and roles", func() error {
			return sso(client.SSOPatch{Domains: &[]string{"example.com"}, Roles: &map[string]client.SSORole{}})
		}, "update sso single sign-on domains roles"},
		{"none", func() error { return platform.RemoveTenantSSO(t.Context(), "customer-1") }, "create sso single sign-on"},
	} {
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		r := d.run("apply --check --json -f " + file(t, text))
		if strings.Contains(r.stdout, "a-client-secret") {
			t.Errorf("%s: the plan shows a secret: %s", c.name, r.stdout)
		}
		if p := d.apply(text, ""); p.String() != c.want {
			t.Errorf("%s: put right by %v", c.name, p)
		}
		if p := d.apply(text, ""); len(p.Changes) != 0 {
			t.Errorf("%s: still differs: %v", c.name, p)
		}
	}
	without := "tenants: [{external_id: customer-1, sso: null}]\n"
	if p := d.apply(without, ""); len(p.Changes) != 0 {
		t.Errorf("null without --prune: %v", p)
	}
	if p := d.apply(without, "--prune"); p.String() != "delete sso single sign-on" {
		t.Errorf("null with --prune: %v", p)
	}
}

func TestOnlyPruneDeletes(t *testing.T) {
	t.Parallel()
	text := whole(t)
	d := newApplyDesk(t, wholeEnviron(t)...)
	d.apply(text, "")
	less := "tenants:\n  - external_id: customer-1\n    endpoints: []\n    members: [{email: ada@example.com, role: owner}]\n    keys: []\n"
	if p := d.apply(less, ""); len(p.Changes) != 0 {
		t.Errorf("without --prune: %v", p)
	}
	p := d.apply(less, "--prune")
	want := "delete key producer (events:read, events:write)\ndelete member bob@example.com\n" +
		"delete endpoint customer-1/api\ndelete endpoint customer-1/bucket\ndelete endpoint customer-1/exchange\ndelete endpoint customer-1/github\ndelete endpoint customer-1/inbox\ndelete endpoint customer-1/main\ndelete endpoint customer-1/queue\ndelete endpoint customer-1/topic"
	if p.String() != want {
		t.Errorf("with --prune:\n%v", p)
	}
	if p := d.apply(less, "--prune"); len(p.Changes) != 0 {
		t.Errorf("again: %v", p)
	}
	// Event types are not in the file's lists: they stay. So do other tenants.
	left := d.ok(nil, "export")
	if !strings.Contains(left, "order.completed") || !strings.Contains(left, "customer-2") || strings.Contains(left, "customer-1/main") {
		t.Errorf("what is left: %s", left)
	}
	if p := d.apply(less, "--prune-tenants"); p.String() != "delete tenant customer-2" {
		t.Errorf("with --prune-tenants: %v", p)
	}
}

func TestWhatIsWrongWithAFileIsSaidWithItsLine(t *testing.T) {
	t.Parallel()
	d := newApplyDesk(t)
	d.apply("tenants: [{external_id: there}]", "")
	for _, c := range []struct{ name, text, line, fix string }{
		{"not YAML", "tenants:\n\t- a\n", ":2:", "not YAML"},
		{"empty", "", " was empty", "`posthorn export` prints an example"},
		{"nothing in it", "version: 1\n", ":1:", "neither `tenants` nor `platform`"},
		{"two documents", "tenants: []\n---\ntenants: []\n", ":2:", "more than one document"},
		{"a newer file", "version: 2\ntenants: []\n", ":1:", "version 1"},
		{"an unknown field", "tenants:\n  - external_id: a\n    endpoints:\n      - external_id: e\n        timeout_secs: 3\n", ":5: tenants[0].endpoints[0].timeout_secs", "Did you mean timeout_seconds?"},
		{"a field twice", "tenants:\n  - external_id: a\n    name: b\n    name: c\n", ":4:", "twice"},
		{"a wrong type", "tenants:\n  - external_id: a\n    retention_days: many\n", ":3: tenants[0].retention_days:", "a whole number, not this text"},
		{"a version that is a number", "tenants:\n  - external_id: a\n    endpoints:\n      - external_id: e\n        payload_version: 2\n", ":5: tenants[0].endpoints[0].payload_version:", "quote it"},
		{"deep inside", "tenants:\n  - external_id: a\n    endpoints:\n      - external_id: e\n        kafka:\n          topik: x\n", ":6: tenants[0].endpoints[0].kafka.topik:", "Did you mean topic?"},
		{"in a list", "tenants:\n  - external_id: a\n    endpoints:\n      - external_id: e\n        event_types:\n          - a.b\n          - 2\n", ":7: tenants[0].endpoints[0].event_types[1]:", "a text (quote it), not the number 2"},
		{"in a mapping of free names", "tenants:\n  - external_id: a\n    endpoints:\n      - external_id: e\n        metadata:\n          zone: 3\n", ":6: tenants[0].endpoints[0].metadata.zone:", "quote it"},
		{"a time", "tenants:\n  - external_id: a\n    keys:\n      - name: k\n        expires_at: tomorrow\n", ":5: tenants[0].keys[0].expires_at:", "2026-01-31T12:00:00Z"},
		{"no name", "tenants:\n  - endpoints: []\n", ":2:", "needs an external_id"},
		{"an endpoint without one", "tenants:\n  - external_id: a\n    endpoints:\n      - url: https://e.example.com\n", ":4:", "needs an external_id"},
		{"the same twice", "tenants:\n  - external_id: a\n  - external_id: a\n", ":3:", "the first is in line 2"},
		{"a role", "tenants:\n  - external_id: a\n    members:\n      - {email: a@b.example, role: boss}\n", ":4:", "owner, admin, developer, viewer"},
		{"a variable", "tenants:\n  - external_id: a\n    endpoints:\n      - external_id: e\n        secret: ${NOBODY_SET_THIS}\n", ":5:", "Set it"},
		{"a reference", "tenants:\n  - external_id: a\n    endpoints:\n      - external_id: e\n        secret_from: NAME\n", ":5:", "env:NAME or file:PATH"},
		{"a file that is not there", "tenants:\n  - external_id: a\n    event_types:\n      - name: a.b\n        schema_from: file:none.json\n", ":5:", "none.json"},
		{"what the server rejects", "tenants:\n  - external_id: there\n    endpoints:\n      - external_id: e\n        timeout_seconds: 99\n        url: https://e.example.com\n", ":5:", "30"},
		{"an address inside", "tenants:\n  - external_id: there\n    endpoints:\n      - external_id: e\n        url: https://10.0.0.1/\n", ":5:", "tenants[0].endpoints[0].url"},
		{"a schema", "tenants:\n  - external_id: there\n    event_types:\n      - name: a.b\n        schema: {type: nothing}\n", ":5:", "schema"},
		{"a tenant by a name that nobody has", "tenants:\n  - name: Nobody\n", ":2:", "give it an external_id"},
		{"a setting", "platform:\n  settings:\n    limits.events_per_mnth: 3\n", ":3:", "Unknown setting"},
	} {
		r := d.run("apply -f " + file(t, c.text))
		if r.code != cli.ExitUsage || !strings.Contains(r.stderr, "posthorn.yaml"+c.line) || !strings.Contains(r.stderr, c.fix) {
			t.Errorf("%s: exit code %d, %s%s", c.name, r.code, r.stdout, r.stderr)
		}
	}
	if text := d.ok(nil, "export"); strings.Contains(text, "external_id: a\n") {
		t.Errorf("a bad file did something: %s", text)
	}
}

// A tenant's own key applies a file to its own tenant and to no other.
func TestATenantsKeyAppliesToItsOwnTenant(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	text := "tenants:\n  - name: Acme\n    retention_days: 20\n    event_types: [{name: a.b}]\n    keys: []\n"
	if p := d.apply(text, "--prune"); p.String() != "update tenant Acme retention_days\ncreate event_type a.b" {
		t.Errorf("did %v", p)
	}
	if p := d.apply(text, "--prune"); len(p.Changes) != 0 {
		t.Errorf("again: %v", p)
	}
	if r := d.run("apply -f " + file(t, "tenants:\n  - external_id: other\n")); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "platform key") {
		t.Errorf("another tenant: %d %s", r.code, r.stderr)
	}
	if out := d.run("export"); !strings.Contains(out.stdout, fmt.Sprintf("id: %s", d.tenant)) {
		t.Errorf("its export: %s%s", out.stdout, out.stderr)
	}
}
