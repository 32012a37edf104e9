//go:build (e2e || soak) && unix

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posthorn/tools/schematest"

	"github.com/jackc/pgx/v5"
)

// TestSecretsStayWhereTheyBelong gives an installation secrets of every kind, lets deliveries succeed, fail, be
// refused and be retried with everything logged, and then looks for the secrets where they must not be: logs,
// metrics, answers of the API, and a plain dump of the database.
func TestSecretsStayWhereTheyBelong(t *testing.T) {
	t.Parallel()
	url := schematest.Clone(t)
	w := newWorldAt(t, []string{
		"POSTHORN_DATABASE_URL=" + url, "POSTHORN_MASTER_KEY=" + masterKey, "POSTHORN_LOG_LEVEL=debug",
		"RESEND_API_KEY=re_canaryresend1", "POSTHORN_CRON_SECRET=canarycronsecret00000000000000000000",
		"POSTHORN_EGRESS_PROXY_ALLOW=127.0.0.0/8",
	}, func(a *arrival) int {
		switch a.path {
		case "/refuse":
			return http.StatusUnauthorized
		case "/fail":
			return http.StatusInternalServerError
		}
		return http.StatusOK
	})
	w.open(url)
	w.makeTenant()
	serve := w.launch("serve", "serve").ready()
	w.serveAt(serve)

	// What must be found nowhere. The receivers answer with what they were sent, so that excerpts are tried too.
	const (
		authorization = "Bearer canary-authorization-7f3e"
		header        = "canary-header-value-91ab"
		query         = "canaryquery5512"
		apiKey        = "canary-key-of-the-receiver-4d1c"
		proxy         = "canary-password-of-the-proxy-77e0"
		userSecret    = "whsec_Y2FuYXJ5LXNlY3JldC1vZi1hLW1lbWJlci0wMDAwMDAwMQ=="
	)
	canaries := map[string]string{
		"the API key":              w.key,
		"the master key":           masterKey,
		"an Authorization header":  authorization,
		"a custom header":          header,
		"a query value":            query,
		"an endpoint's own secret": userSecret,
		"a receiver's API key":     apiKey,
		"the proxy's password":     proxy,
		"the mail provider's key":  "re_canaryresend1",
		"the sweep's secret":       "canarycronsecret00000000000000000000",
	}
	var answers bytes.Buffer
	for i, path := range []string{"/ok", "/fail", "/refuse"} {
		var made struct{ ID, Secret string }
		change := settings{
			"url":               w.receiver.url + path + "?token=" + query,
			"verification":      "simple",
			"event_types":       []string{"*"},
			"custom_headers":    settings{"Authorization": authorization, "X-Custom": header},
			"sensitive_headers": []string{"X-Custom"},
			"auth":              settings{"type": "api_key", "header": "X-Receiver-Key", "key": apiKey},
		}
		if i == 0 {
			change["secret"] = userSecret
		}
		w.manage(http.MethodPost, "/endpoints", change, &made)
		if i != 0 {
			canaries["the secret of "+path] = made.Secret
		}
		w.receiver.trust(path, made.Secret)
		eventually(t, patience, path+" is active", func() bool {
			var now struct{ Status string }
			w.manage(http.MethodGet, "/endpoints/"+made.ID, nil, &now)
			return now.Status == "active"
		})
		var rotated struct{ Secret string }
		w.manage(http.MethodPost, "/endpoints/"+made.ID+"/rotate-secret", nil, &rotated)
		canaries["the new secret of "+path] = rotated.Secret
	}
	for n := range 12 {
		w.emit(event("order.completed", n))
	}
	eventually(t, patience, "every endpoint has been tried", func() bool {
		return w.ask("SELECT count(DISTINCT endpoint_id) FROM attempts") == 3 && w.ask("SELECT count(*) FROM deliveries WHERE status = 2") == 12
	})

	// A proxy that is down keeps its password for itself, too.
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(proxy), 0o600); err != nil {
		t.Fatal(err)
	}
	var set settings
	command(t, w.environ, w.at, &set, "egress-proxy", "set", "127.0.0.1:65535", "--username", "ada", "--password-file", password, "--json")
	fmt.Fprintln(&answers, set)
	eventually(t, patience, "the proxy has failed", func() bool {
		w.emit(event("order.completed", 99))
		return w.ask("SELECT count(*) FROM attempts WHERE failure = 10") > 0 && w.ask("SELECT count(*) FROM egress_proxies WHERE failed_at IS NOT NULL") == 1
	})

	// Answers, good and bad ones, of everything that a reader may see.
	read := func(method, path, key, body string) {
		t.Helper()
		kept := w.key
		w.key = key
		_, answer, err := w.call(method, serve.url+path, body, "")
		w.key = kept
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&answers, "%s %s: %s\n", method, path, answer)
	}
	for _, path := range []string{
		"/endpoints", "/deliveries", "/events", "/keys", "/audit-log", "/tenant", "/event-types", "/nothing", "/deliveries?cursor=" + query[:3],
	} {
		read(http.MethodGet, "/api/v1"+path, w.key, "")
	}
	read(http.MethodPost, "/api/v1/events", w.key, `{"type":`)
	read(http.MethodGet, "/api/v1/events", w.key+"x", "")
	read(http.MethodPost, "/api/v1/endpoints", w.key, `{"url":"http://10.0.0.1/","event_types":["*"]}`)
	w.everyDelivery(func(answer []byte) { answers.Write(answer) })

	places := map[string]string{
		"the log":      strings.Join(serve.log.everything(), "\n"),
		"the metrics":  body(t, serve.metrics+"/metrics"),
		"an answer":    answers.String(),
		"the database": dump(t, url),
	}
	known := map[string]string{"the log": "dlv_", "the metrics": "attempts_total", "an answer": "/refuse", "the database": "/refuse"}
	for place, text := range places {
		if !strings.Contains(text, known[place]) {
			t.Errorf("%s does not hold %q: it can't have been read whole", place, known[place])
		}
		for what, secret := range canaries {
			if what == "a query value" && place == "the database" {
				continue // the URL is needed as it is; lists and logs mask it
			}
			for form, needle := range forms(secret) {
				if strings.Contains(text, needle) {
					at := strings.Index(text, needle)
					t.Errorf("%s (%s) is in %s: …%s…", what, form, place, text[max(at-80, 0):min(at+len(needle)+20, len(text))])
				}
			}
		}
	}
}

// forms are the shapes in which a secret may be hidden in text.
func forms(secret string) map[string]string {
	all := map[string]string{
		"as it is":  secret,
		"in hex":    hex.EncodeToString([]byte(secret)),
		"in base64": strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(secret)), "="),
	}
	if key, found := strings.CutPrefix(secret, "whsec_"); found {
		all["without its prefix"] = key
		if raw, err := base64.StdEncoding.DecodeString(key); err == nil {
			all["decoded, in hex"] = hex.EncodeToString(raw)
		}
	}
	return all
}

// everyDelivery reads each delivery with its attempts.
func (w *world) everyDelivery(use func([]byte)) {
	w.t.Helper()
	var list struct{ Data []struct{ ID string } }
	w.manage(http.MethodGet, "/deliveries?limit=250", nil, &list)
	for _, d := range list.Data {
		_, answer, err := w.call(http.MethodGet, w.web()+"/api/v1/deliveries/"+d.ID, "", "")
		if err != nil {
			w.t.Fatal(err)
		}
		use(answer)
	}
}

// dump is every row of every table, as text; bytea is in hex.
func dump(t *testing.T, url string) string {
	t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	if _, err := c.Exec(ctx, "SET search_path = posthorn; SET ROLE posthorn_console"); err != nil {
		t.Fatal(err)
	}
	rows, err := c.Query(ctx, `SELECT relname FROM pg_class WHERE relnamespace = 'posthorn'::regnamespace AND relkind IN ('r', 'p')
		AND NOT relispartition AND relname <> 'goose_db_version'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, table := range tables {
		if _, err := c.PgConn().CopyTo(ctx, &text, "COPY (SELECT * FROM "+pgx.Identifier{table}.Sanitize()+") TO STDOUT"); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
	}
	return text.String()
}

// body is what an address answers.
func body(t *testing.T, url string) string {
	t.Helper()
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
