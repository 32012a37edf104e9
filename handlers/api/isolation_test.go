package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/mcp"
	"posthorn/handlers"
	"posthorn/handlers/api"
	"posthorn/handlers/readers"
	"posthorn/tools/dbtest"
	"posthorn/tools/schematest"
	"posthorn/tools/webtest"
)

// canary is in every text of the victim's objects. The attacker must never see it.
const canary = "canary-of-b"

// probeBodies holds an accepted body for every route of a tenant that takes a body or changes something.
var probeBodies = map[string]string{
	"POST /events":                                              `{"type":"a","data":1}`,
	"POST /events/batch":                                        `{"events":[{"type":"a","data":1}]}`,
	"GET /events":                                               ``,
	"GET /events/:event_id":                                     ``,
	"GET /events/:event_id/data":                                ``,
	"GET /events/:event_id/deliveries":                          ``,
	"GET /events/:event_id/routing":                             ``,
	"GET /catalogue":                                            ``,
	"GET /catalogue/export":                                     ``,
	"GET /outbox/rejected":                                      ``,
	"POST /outbox/rejected/:rejected_id/retry":                  ``,
	"DELETE /outbox/rejected/:rejected_id":                      ``,
	"POST /event-types/import":                                  `{"event_types":[{"name":"imported.type"}]}`,
	"POST /event-types":                                         `{"name":"new.type"}`,
	"GET /event-types":                                          ``,
	"GET /event-types/:name":                                    ``,
	"PATCH /event-types/:name":                                  `{"description":"taken over"}`,
	"DELETE /event-types/:name":                                 ``,
	"POST /import":                                              `{"event_types":[{"name":"brought.in"}],"endpoints":[{"external_id":"a","url":"https://hooks.example.com/a"}]}`,
	"POST /endpoints":                                           `{"url":"https://hooks.example.com/a"}`,
	"GET /endpoints":                                            ``,
	"GET /endpoints/:endpoint_id":                               ``,
	"PATCH /endpoints/:endpoint_id":                             `{"description":"taken over"}`,
	"DELETE /endpoints/:endpoint_id":                            ``,
	"POST /endpoints/:endpoint_id/verify":                       ``,
	"POST /endpoints/:endpoint_id/test":                         `{"data":{}}`,
	"POST /endpoints/:endpoint_id/filter/dry-run":               `{"filter":"true","event_types":["*"]}`,
	"GET /endpoints/:endpoint_id/secrets":                       ``,
	"POST /endpoints/:endpoint_id/rotate-secret":                `{"overlap_seconds":60}`,
	"POST /endpoints/:endpoint_id/switch-secret":                ``,
	"POST /endpoints/:endpoint_id/secrets/:secret_id/check":     ``,
	"POST /endpoints/:endpoint_id/secrets/:secret_id/end":       `{"unchecked":true}`,
	"POST /endpoints/:endpoint_id/secrets/:secret_id/extend":    `{"overlap_seconds":60}`,
	"GET /signing-keys":                                         ``,
	"POST /signing-keys/rotate":                                 `{"starts_in_seconds":0}`,
	"GET /endpoints/:endpoint_id/failures":                      ``,
	"POST /endpoints/test-connection":                           `{"url":"https://10.0.0.1/"}`,
	"POST /endpoints/:endpoint_id/transformation/try":           `{"transformation":{"kind":"fields","keep":["a"]}}`,
	"POST /endpoints/:endpoint_id/test-connection":              `{"url":"https://127.0.0.1/"}`,
	"POST /endpoints/:endpoint_id/certificate-request":          ``,
	"POST /endpoints/:endpoint_id/rewind":                       `{"start":"oldest"}`,
	"POST /endpoints/:endpoint_id/mute":                         `{"until":"2099-01-01T00:00:00Z"}`,
	"POST /endpoints/:endpoint_id/unmute":                       ``,
	"POST /endpoints/:endpoint_id/pause":                        ``,
	"POST /endpoints/:endpoint_id/resume":                       ``,
	"POST /inboxes":                                             `{}`,
	"GET /endpoints/:endpoint_id/inbox":                         ``,
	"PATCH /endpoints/:endpoint_id/inbox":                       `{"answer":"500"}`,
	"GET /endpoints/:endpoint_id/inbox/requests":                ``,
	"DELETE /endpoints/:endpoint_id/inbox/requests":             ``,
	"GET /inbox-requests/:inbox_request_id":                     ``,
	"GET /feeds/:endpoint_id":                                   ``,
	"GET /feeds/:endpoint_id/stream":                            ``,
	"POST /feeds/:endpoint_id/ack":                              `{"cursor":"a-0","consumer":"reader"}`,
	"POST /feeds/:endpoint_id/rewind":                           `{"start":"oldest","consumer":"reader"}`,
	"GET /feeds/:endpoint_id/consumers":                         ``,
	"POST /feeds/:endpoint_id/consumers":                        `{"name":"taken-over"}`,
	"DELETE /feeds/:endpoint_id/consumers/:consumer":            ``,
	"POST /feeds/:endpoint_id/consumers/:consumer/rotate-token": ``,
	"POST /listeners":                                           `{}`,
	"GET /listeners/:endpoint_id/stream":                        ``,
	"POST /listeners/:endpoint_id/answers":                      `{"delivery_id":"dlv_01jd0000000000000000000000","attempt_id":"att_01jd0000000000000000000000","status":200,"duration_ms":1}`,
	"GET /deliveries":                                           ``,
	"GET /deliveries/:delivery_id":                              ``,
	"GET /deliveries/:delivery_id/attempts/:attempt_id":         ``,
	"POST /deliveries/:delivery_id/retry-now":                   ``,
	"POST /deliveries/:delivery_id/cancel":                      ``,
	"POST /deliveries/:delivery_id/replay":                      `{"reason":"taken over"}`,
	"POST /deliveries/:delivery_id/archive":                     ``,
	"POST /deliveries/:delivery_id/unarchive":                   ``,
	"POST /deliveries/:delivery_id/shares":                      ``,
	"GET /deliveries/:delivery_id/shares":                       ``,
	"DELETE /deliveries/:delivery_id/shares/:share_id":          ``,
	"GET /subscriptions":                                        ``,
	"DELETE /subscriptions/:subscription_id":                    ``,
	"POST /sources":                                             `{"name":"taken-over","kind":"kafka","kafka":{"bootstrap_servers":["b.example.com:9092"],"topic":"a"}}`,
	"GET /sources":                                              ``,
	"GET /sources/:source_id":                                   ``,
	"PATCH /sources/:source_id":                                 `{"mapping":"body"}`,
	"DELETE /sources/:source_id":                                ``,
	"POST /sources/:source_id/pause":                            ``,
	"POST /sources/:source_id/resume":                           ``,
	"POST /sources/:source_id/test":                             `{"message":{"text":"{}"}}`,
	"POST /bulk-jobs/:job_id/continue":                          ``,
	"GET /health":                                               ``,
	"GET /analytics/deliveries":                                 ``,
	"POST /keys":                                                `{"name":"a","scopes":["events:read"]}`,
	"GET /keys":                                                 ``,
	"GET /keys/:key_id":                                         ``,
	"DELETE /keys/:key_id":                                      ``,
	"GET /notices":                                              ``,
	"GET /audit-log":                                            ``,
	"GET /members":                                              ``,
	"GET /members/:member_id":                                   ``,
	"PATCH /members/:member_id":                                 `{"role":"viewer"}`,
	"DELETE /members/:member_id":                                ``,
	"POST /invitations":                                         `{"email":"new@example.com","role":"viewer"}`,
	"GET /invitations":                                          ``,
	"DELETE /invitations/:invitation_id":                        ``,
	"POST /portal-links":                                        `{}`,
	"GET /portal-links":                                         ``,
	"DELETE /portal-links/:portal_link_id":                      ``,
	"GET /tenant":                                               ``,
	"GET /usage":                                                ``,
	"GET /history":                                              ``,
	"POST /history/:day/restore":                                ``,
	"PATCH /tenant":                                             `{"name":"A"}`,
}

// scene is the content of the prepared database: A asks, B owns.
type scene struct {
	A, B, Platform string // keys
	Weak           string // of A, without a scope that any probed route needs
	TenantA        string // ids
	TenantB        string
	Theirs         map[string][]string // B's ids, by path parameter
	Cursors        []string            // next_cursor of lists of B's
}

// prepare fills a database with two tenants that have one object of each kind.
func prepare(t *testing.T, url string) {
	var ends []func()
	w := startWorld(t, func(end func()) { ends = append(ends, end) }, url, url)
	defer func() {
		for i := len(ends) - 1; i >= 0; i-- {
			ends[i]()
		}
	}()
	a, b := w.tenant("A"), w.tenant(canary)
	s := scene{A: a.key, B: b.key, Platform: w.platform, TenantA: a.id, TenantB: b.id, Theirs: map[string][]string{}}
	s.Weak = w.scoped(a, access.MembersWrite)
	for _, owner := range []tenant{a, b} {
		name := "a"
		if owner == b {
			name = canary
		}
		w.do("POST", "/api/v1/event-types", owner.key, map[string]any{"name": name + ".type", "description": name}).want(201)
		ep := w.active(owner, map[string]any{"description": name, "url": "https://hooks.example.com/" + name, "custom_headers": map[string]string{"X-Own": name}})
		w.do("POST", "/api/v1/endpoints/"+ep+"/rotate-secret", owner.key, nil).want(201)
		var deliveries []string
		for range 4 {
			event := w.do("POST", "/api/v1/events", owner.key, `{"type":"`+name+`.type","data":"`+name+`","channels":["`+name+`"]}`).want(202).text("id")
			deliveries = append(deliveries, ids(w.do("GET", "/api/v1/events/"+event+"/deliveries", owner.key, nil).want(200))...)
			if owner == b {
				s.Theirs["event_id"] = []string{event}
			}
		}
		w.settle(deliveries[0], 3, 1)
		w.settle(deliveries[1], 2, 0)
		w.do("POST", "/api/v1/deliveries/"+deliveries[2]+"/cancel", owner.key, nil).want(200)
		w.attempt(deliveries[3], ep, name)
		share := w.do("POST", "/api/v1/deliveries/"+deliveries[0]+"/shares", owner.key, nil).want(201).text("id")
		subscription := mcp.ID(name, "https://hooks.example.com", name+".type", "{}")
		w.SQL(`INSERT INTO subscriptions (tenant_id, id, endpoint_id, principal, event_type, arguments, cursor, expires_at)
			VALUES ($1, $2, $3, $4, $4, '{}', '', now() + interval '1 day')`, owner.uuid.String(), subscription, w.uuid(id.Endpoint, ep), name)
		queue := w.do("POST", "/api/v1/sources", owner.key, `{"name":"`+name+`","kind":"kafka","kafka":{"bootstrap_servers":["b.example.com:9092"],"topic":"a"}}`).want(201).text("id")
		w.SQL(`INSERT INTO source_positions (tenant_id, source_id, partition, next) VALUES ($1, $2, 0, 1)`, owner.uuid.String(), w.uuid(id.Source, queue))
		w.SQL(`INSERT INTO source_messages (tenant_id, source_id, digest) VALUES ($1, $2, '1')`, owner.uuid.String(), w.uuid(id.Source, queue))
		job := w.do("POST", "/api/v1/replays", owner.key, `{"filter":{"status":"failed"},"reason":"`+name+`"}`).want(202).text("id")
		box := w.do("POST", "/api/v1/inboxes", owner.key, nil).want(201).text("id")
		w.SQL(`INSERT INTO inbox_requests (tenant_id, endpoint_id, id, method, head, body, body_bytes, challenge, answer, good)
			SELECT tenant_id, endpoint_id, gen_random_uuid(), 'POST', $2, $3, 1, false, '200', true FROM inboxes WHERE endpoint_id = $1`, w.uuid(id.Endpoint, box), name, []byte(name))
		feed := w.do("POST", "/api/v1/endpoints", owner.key, `{"kind":"feed","description":"`+name+`"}`).want(201).text("id")
		w.do("POST", "/api/v1/feeds/"+feed+"/consumers", owner.key, `{"name":"reader"}`).want(201)
		key := w.do("POST", "/api/v1/keys", owner.key, `{"name":"`+name+`","scopes":["events:read"]}`).want(201).text("id")
		if owner == b {
			s.Theirs["endpoint_id"], s.Theirs["key_id"], s.Theirs["name"] = []string{ep, w.do("POST", "/api/v1/listeners", b.key, `{}`).want(201).text("id")}, []string{key},
				[]string{name + ".type"}
			s.Theirs["delivery_id"], s.Theirs["job_id"] = deliveries, []string{job}
			s.Theirs["share_id"] = []string{share}
			s.Theirs["source_id"] = []string{queue}
			s.Theirs["subscription_id"] = []string{subscription}
			s.Theirs["endpoint_id"] = append(s.Theirs["endpoint_id"], box, feed)
			s.Theirs["secret_id"] = ids(w.do("GET", "/api/v1/endpoints/"+ep+"/secrets", owner.key, nil).want(200))
			s.Theirs["attempt_id"] = []string{w.outer(id.Attempt, one[string](w, "SELECT id::text FROM attempts WHERE delivery_id = $1", w.uuid(id.Delivery, deliveries[3])))}
			s.Theirs["inbox_request_id"] = ids(w.do("GET", "/api/v1/endpoints/"+box+"/inbox/requests", owner.key, nil).want(200))
		}
	}
	for _, owner := range []tenant{a, b} {
		var people [2]string // so that every list has a second page
		for i := range people {
			people[i] = w.member(owner, fmt.Sprintf("%d-%s@example.com", i, owner.id), access.Owner)
			w.do("POST", "/api/v1/invitations", owner.key, map[string]any{"email": fmt.Sprintf("%d-%s@example.org", i, owner.id), "role": "viewer"}).want(201)
			w.do("POST", "/api/v1/portal-links", owner.key, map[string]any{"brand_name": owner.id}).want(201)
		}
		for range 2 {
			eventID := db.NewID()
			w.SQL("INSERT INTO outbox_rejected (id, tenant_id, type, data, code, detail) VALUES ($1, $2, $3, '1', 'a', $3)", eventID.String(), owner.uuid.String(), owner.id)
			if owner == b {
				s.Theirs["rejected_id"] = append(s.Theirs["rejected_id"], id.Event.Format(eventID))
			}
		}
		if owner == b {
			w.SQL("INSERT INTO history_days (tenant_id, day, state) VALUES ($1, '2020-02-02', 'stored')", owner.uuid.String())
			s.Theirs["day"] = []string{"2020-02-02"}
			s.Theirs["member_id"] = people[:]
			s.Theirs["invitation_id"] = ids(w.do("GET", "/api/v1/invitations", b.key, nil).want(200))
			s.Theirs["portal_link_id"] = ids(w.do("GET", "/api/v1/portal-links", b.key, nil).want(200))
		}
	}
	for _, list := range []string{"/events", "/deliveries", "/keys", "/notices", "/audit-log", "/members", "/invitations", "/portal-links", "/outbox/rejected"} {
		s.Cursors = append(s.Cursors, w.do("GET", "/api/v1"+list+"?limit=1", b.key, nil).want(200).text("next_cursor"))
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	w.SQL("UPDATE platform SET settings = $1", string(text))
}

// attempt writes one attempt of a delivery, as the recorder does.
func (w *world) attempt(delivery, endpoint, text string) {
	w.SQL(`INSERT INTO attempts (tenant_id, created_at, id, delivery_id, endpoint_id, number, status, failure, dns_us, connect_us,
		tls_us, wait_us, read_us, total_us, url, format, signature, response_excerpt)
		SELECT tenant_id, now(), gen_random_uuid(), id, endpoint_id, 1, 500, 0, 1, 1, 1, 1, 1, 5, $2, 'standard', 'v1,x', $3
		FROM deliveries WHERE id = $1`, w.uuid(id.Delivery, delivery), "https://hooks.example.com/"+text, []byte(text))
}

// newScene clones the prepared database. It is prepared once per day and content of this file.
func newScene(t *testing.T) (url string, s scene) {
	t.Helper()
	source, err := os.ReadFile("isolation_test.go")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(append(source, db.NewID().Time().Format("2006-01-02")...))
	url = dbtest.Clone(t, schematest.Fingerprint()+hex.EncodeToString(sum[:4]), func(ctx context.Context, url string) error {
		if err := schematest.Migrate(ctx, url); err != nil {
			return err
		}
		prepare(t, url)
		return nil
	})
	w := &world{World: &webtest.World{T: t, URL: url}, t: t, url: url}
	if err := json.Unmarshal([]byte(one[string](w, "SELECT settings::text FROM platform")), &s); err != nil {
		t.Fatal(err)
	}
	return url, s
}

// belongings is everything of a tenant as text that changes when it changes.
func (w *world) belongings(tenant string) map[string]string {
	w.t.Helper()
	u, out := w.uuid(id.Tenant, tenant), map[string]string{}
	w.Connection(func(c *pgx.Conn) error {
		for _, table := range guarded(w.t, c) {
			column := "tenant_id"
			if table == "tenants" {
				column = "id"
			}
			var sum string
			err := c.QueryRow(w.t.Context(), fmt.Sprintf("SELECT coalesce(md5(string_agg(x::text, ' ' ORDER BY x::text)), '') FROM %s x WHERE %s = $1", table, column), u).Scan(&sum)
			if err != nil {
				return fmt.Errorf("%s: %w", table, err)
			}
			out[table] = sum
		}
		return nil
	})
	return out
}

// guarded lists the tables that hold rows of tenants.
func guarded(t *testing.T, c *pgx.Conn) []string {
	t.Helper()
	rows, err := c.Query(t.Context(), `SELECT c.relname FROM pg_class c
		WHERE c.relnamespace = 'posthorn'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
		AND (c.relname = 'tenants' OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped))
		ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) < 15 {
		t.Fatal(names, err)
	}
	return names
}

// prober requests B's objects as A and collects what must not happen.
type prober struct {
	w          *world
	s          scene
	quick      bool // A's own key and paths alone
	violations []string
}

func (p *prober) violate(format string, args ...any) {
	if len(p.violations) < 20 {
		p.violations = append(p.violations, fmt.Sprintf(format, args...))
	}
}

// ask sends one request with a fixed request id, and searches the response for B's objects.
func (p *prober) ask(method, path, key, body string) (int, string) {
	a := p.w.ask(method, path, key, body)
	if bytes.Contains(a.Body, []byte(canary)) {
		p.violate("%s %s shows B's text", method, path)
	}
	for _, list := range p.s.Theirs {
		for _, theirs := range list {
			if bytes.Contains(a.Body, []byte(theirs)) {
				p.violate("%s %s names %s", method, path, theirs)
			}
		}
	}
	return a.Status, string(a.Body)
}

// run probes the whole table.
func (p *prober) run(routes []handlers.Route) {
	before := p.w.belongings(p.s.TenantB)
	for _, r := range routes {
		path, ours := strings.CutPrefix(r.Path, "/api/v1/tenants/:tenant_id")
		switch {
		case !r.Access.Tenant:
			if !p.quick {
				p.platformRoute(r)
			}
		case ours:
			if !p.quick {
				p.tenantRoute(r, "/api/v1/tenants/"+p.s.TenantA+path, p.s.Platform)
			}
		default:
			p.tenantRoute(r, r.Path, p.s.A)
		}
	}
	for table, sum := range p.w.belongings(p.s.TenantB) {
		if before[table] != sum {
			p.violate("B's rows in %s changed", table)
		}
	}
}

// unknown are values of a path parameter that no object has: one well formed, the others not.
func unknown(param string) []string {
	random := map[string]string{
		"event_id":         id.Event.Format(db.NewID()),
		"endpoint_id":      id.Endpoint.Format(db.NewID()),
		"delivery_id":      id.Delivery.Format(db.NewID()),
		"inbox_request_id": id.Received.Format(db.NewID()),
		"key_id":           id.Key.Format(db.NewID()),
		"job_id":           id.Job.Format(db.NewID()),
		"tenant_id":        id.Tenant.Format(db.NewID()),
		"name":             "no.such.type",
		"member_id":        id.Member.Format(db.NewID()),
		"invitation_id":    id.Invitation.Format(db.NewID()),
		"portal_link_id":   id.PortalLink.Format(db.NewID()),
		"rejected_id":      id.Event.Format(db.NewID()),
		"source_id":        id.Source.Format(db.NewID()),
		"day":              "2020-01-01",
		"subscription_id":  mcp.ID("nobody", "", "", ""),
	}[param]
	return []string{random, "nonsense", strings.ToUpper(random), "%00", "..."}
}

// tenantRoute requests each of B's objects and some that do not exist. All responses must be the same, byte for byte.
func (p *prober) tenantRoute(r handlers.Route, path, key string) {
	name := r.Method + " " + strings.TrimPrefix(strings.TrimPrefix(r.Path, "/api/v1/tenants/:tenant_id"), "/api/v1")
	body := probeBodies[name]
	param := pathParam(path)
	if param == "" {
		p.list(r, path, key, body)
		return
	}
	path = strings.Replace(path, ":attempt_id", p.s.Theirs["attempt_id"][0], 1)
	path = strings.Replace(path, ":secret_id", p.s.Theirs["secret_id"][0], 1)
	path = strings.Replace(path, ":share_id", p.s.Theirs["share_id"][0], 1)
	path = strings.Replace(path, ":consumer", "reader", 1)
	if len(p.s.Theirs[param]) == 0 {
		p.violate("%s: B has no %s", name, param)
	}
	p.wrongBody(r.Method, path, param, key)
	first, firstBody := 0, ""
	for _, one := range append(unknown(param), p.s.Theirs[param]...) {
		status, text := p.ask(r.Method, strings.Replace(path, ":"+param, one, 1), key, body)
		if first == 0 {
			first, firstBody = status, text
		}
		if status != first || text != firstBody {
			p.violate("%s with %s answers %d %s, another id %d %s", name, one, status, text, first, firstBody)
		}
		if p.quick {
			continue
		}
		if status, _ := p.ask(r.Method, strings.Replace(path, ":"+param, one, 1), "", body); status != 401 {
			p.violate("%s without a key answers %d", name, status)
		}
		if r.Access.Scope != access.MembersWrite && !r.Access.Platform {
			if status, _ := p.ask(r.Method, strings.Replace(path, ":"+param, one, 1), p.s.Weak, body); status != 403 {
				p.violate("%s without the scope answers %d", name, status)
			}
		}
	}
	if first != http.StatusNotFound {
		p.violate("%s answers %d to an unknown id", name, first)
	}
}

// wrongBody asks for the same objects with a body that no operation has. The response is the same for every id.
func (p *prober) wrongBody(method, path, param, key string) {
	if method == http.MethodGet {
		return
	}
	first, firstBody := 0, ""
	for _, one := range append(unknown(param), p.s.Theirs[param]...) {
		status, text := p.ask(method, strings.Replace(path, ":"+param, one, 1), key, `{"no_such_field":1}`)
		if first == 0 {
			first, firstBody = status, text
		}
		if status != first || text != firstBody {
			p.violate("%s %s with %s and a wrong body: %d %s, another id: %d %s", method, path, one, status, text, first, firstBody)
		}
	}
}

// list reads A's own lists with every parameter through which B's objects could appear.
func (p *prober) list(r handlers.Route, path, key, body string) {
	p.ask(r.Method, path, key, body)
	if r.Method != http.MethodGet || strings.HasSuffix(path, "/tenant") || strings.HasSuffix(path, "/catalogue") || strings.HasSuffix(path, "/signing-keys") {
		return
	}
	for _, query := range []string{"order=asc&limit=250", "order=desc", "endpoint=%s", "endpoint=%s&status=failed", "status=pending", "status=failed", "status=canceled", "status=all_failed", "channel=" + canary, "type=" + canary + ".type"} {
		if strings.Contains(query, "%s") {
			status, text := p.ask(r.Method, path+"?"+fmt.Sprintf(query, p.s.Theirs["endpoint_id"][0]), key, "")
			random, randomText := p.ask(r.Method, path+"?"+fmt.Sprintf(query, unknown("endpoint_id")[0]), key, "")
			if status != random || text != randomText {
				p.violate("GET %s tells B's endpoint from an unknown one: %s and %s", path, text, randomText)
			}
			continue
		}
		p.ask(r.Method, path+"?"+query, key, "")
	}
	for _, cursor := range p.s.Cursors {
		if status, text := p.ask(r.Method, path+"?limit=1&cursor="+cursor, key, ""); status != 400 {
			p.violate("GET %s takes B's cursor: %d %s", path, status, text)
		}
	}
}

// platformRoute must reject A's key, whatever tenant it names.
func (p *prober) platformRoute(r handlers.Route) {
	var first string
	for _, one := range append(unknown("tenant_id"), p.s.TenantB, p.s.TenantA) {
		status, text := p.ask(r.Method, strings.Replace(r.Path, ":tenant_id", one, 1), p.s.A, `{"name":"taken over"}`)
		if first == "" {
			first = text
		}
		if status != http.StatusForbidden || text != first {
			p.violate("%s %s with %s answers %d %s", r.Method, r.Path, one, status, text)
		}
	}
}

func pathParam(path string) string {
	_, rest, _ := strings.Cut(path, ":")
	param, _, _ := strings.Cut(rest, "/")
	return param
}

// ask is do for probes: the same request id each time, and no test failure.
func (w *world) ask(method, path, key, body string) *answer {
	w.t.Helper()
	ctx := w.t.Context()
	if strings.HasSuffix(path, "/stream") { // a wrongly admitted one would not end
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
	}
	r, err := http.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	if err != nil {
		return &answer{t: w.t, Status: 400}
	}
	r.RemoteAddr = "192.0.2.1:1234"
	r.Header.Set("X-Request-Id", "probe")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	a, _ := w.serve(r)
	return a
}

func TestNobodySeesAnotherTenant(t *testing.T) {
	t.Parallel()
	url, s := newScene(t)
	p := &prober{w: startWorld(t, t.Cleanup, url, url), s: s}
	routes := api.Routes(api.Deps{}, readers.Routes)
	for _, r := range routes {
		name := r.Method + " " + strings.TrimPrefix(r.Path, "/api/v1")
		if _, ok := probeBodies[name]; r.Access.Tenant && !r.Access.Platform && !ok {
			t.Errorf("%s has no fixture in probeBodies", name)
		}
	}
	p.run(routes)
	for _, v := range p.violations {
		t.Error(v)
	}
	// The probe proves something only if B's objects exist for B.
	for param, theirs := range s.Theirs {
		if param == "day" || param == "invitation_id" || param == "portal_link_id" || param == "rejected_id" || param == "secret_id" || param == "share_id" || param == "subscription_id" {
			continue // they are in their lists alone
		}
		path := map[string]string{
			"inbox_request_id": "/inbox-requests/",
			"member_id":        "/members/",
			"event_id":         "/events/",
			"endpoint_id":      "/endpoints/",
			"delivery_id":      "/deliveries/",
			"key_id":           "/keys/",
			"job_id":           "/bulk-jobs/",
			"source_id":        "/sources/",
			"attempt_id":       "/deliveries/" + s.Theirs["delivery_id"][3] + "/attempts/",
			"name":             "/event-types/",
		}[param]
		for _, one := range theirs {
			if got := p.w.ask("GET", "/api/v1"+path+one, s.B, ""); got.Status != 200 {
				t.Errorf("B's own %s answers %d to B", one, got.Status)
			}
		}
	}
}
