package api_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/domain/access"
	"posthorn/domain/id"
)

// unpacked is the lines of each file of an archive.
func unpacked(t *testing.T, archive []byte) map[string][]map[string]any {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]map[string]any{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name] = []map[string]any{}
		for line := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
			var v map[string]any
			if line != "" && json.Unmarshal([]byte(line), &v) != nil {
				t.Errorf("%s has a line that is no JSON: %s", f.Name, line)
			}
			if line != "" {
				out[f.Name] = append(out[f.Name], v)
			}
		}
	}
	return out
}

func TestAnExportHasEverythingOfATenantAndNothingOfAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme, other := w.tenant("Acme"), w.tenant("Other")
	var secrets []string
	for _, owner := range []tenant{acme, other} {
		mark := "mark-of-" + owner.id
		w.do("POST", "/api/v1/event-types", owner.key, map[string]any{"name": "order.paid", "description": mark}).want(201)
		ep := w.active(owner, map[string]any{"description": mark, "url": "https://hooks.example.com/a", "custom_headers": map[string]string{"Authorization": "Bearer hidden-" + owner.id}, "sensitive_headers": []string{"Authorization"}})
		secrets = append(secrets, w.do("POST", "/api/v1/endpoints/"+ep+"/rotate-secret", owner.key, nil).want(201).text("secret"), "hidden-"+owner.id, owner.key)
		w.member(owner, "ada-"+owner.id+"@example.com", access.Owner)
		w.do("POST", "/api/v1/invitations", owner.key, `{"email":"new-`+owner.id+`@example.com","role":"viewer"}`).want(201)
		for i := range 3 {
			event := w.do("POST", "/api/v1/events", owner.key, fmt.Sprintf("{\"type\":\"order.paid\",\"data\":{\"n\":%d,\n\r\n\"price\":1.50,\"text\":\"a\\nb %s\"}}", i, mark)).want(202).text("id")
			delivery := ids(w.do("GET", "/api/v1/events/"+event+"/deliveries", owner.key, nil).want(200))[0]
			if i == 0 {
				w.attempt(delivery, ep, mark)
				w.settle(delivery, 3, 1)
				w.do("POST", "/api/v1/deliveries/"+delivery+"/archive", owner.key, nil).want(200)
			}
		}
	}
	at := "/api/v1/tenants/" + acme.id + "/export"
	answer := w.do("POST", at, w.platform, `{"reason":"they move out"}`).want(200)
	if answer.Header.Get("Content-Type") != "application/zip" || !strings.Contains(answer.Header.Get("Content-Disposition"), acme.id) {
		t.Errorf("%v", answer.Header)
	}
	files := unpacked(t, answer.Body)
	for name, n := range map[string]int{
		"tenant.json":        1,
		"members.ndjson":     1,
		"invitations.ndjson": 1,
		"keys.ndjson":        1,
		"event_types.ndjson": 1,
		"endpoints.ndjson":   1,
		"events.ndjson":      3,
		"deliveries.ndjson":  3,
	} {
		if len(files[name]) != n {
			t.Errorf("%s has %d lines, want %d", name, len(files[name]), n)
		}
	}
	lines := files["manifest.json"][0]["lines"].(map[string]any)
	for name, list := range files {
		if strings.HasSuffix(name, ".ndjson") && lines[name] != float64(len(list)) {
			t.Errorf("the manifest counts %v lines of %s, there are %d", lines[name], name, len(list))
		}
	}
	if first := files["deliveries.ndjson"][0]; len(first["attempts"].([]any)) != 1 || first["status"] != "failed" || first["archived_at"] == nil {
		t.Errorf("%v", first)
	}
	if data := files["events.ndjson"][2]["data"].(map[string]any); data["n"] != 2.0 || data["text"] != "a\nb mark-of-"+acme.id {
		t.Errorf("%v", data)
	}
	if !slices.ContainsFunc(files["audit_log.ndjson"], func(e map[string]any) bool { return e["action"] == "tenant.exported" && e["reason"] == "they move out" }) {
		t.Error("the export is not in the tenant's audit log")
	}
	var all bytes.Buffer
	_ = json.NewEncoder(&all).Encode(files)
	for _, secret := range append(secrets, other.id) {
		if bytes.Contains(all.Bytes(), []byte(secret)) {
			t.Errorf("the export holds %s", secret)
		}
	}
	w.do("POST", at, acme.key, nil).want(403)
	w.do("POST", "/api/v1/tenants/"+id.Tenant.Format(db.NewID())+"/export", w.platform, nil).problem(404, "not_found")
}

// Pages that end within a day, days without rows, and data that fills a page by itself.
func TestAnExportWalksEveryDayAndPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	conn, err := pgx.Connect(t.Context(), w.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, statement := range []string{"SELECT posthorn.make_partitions(current_date - 5, current_date)", "SET ROLE posthorn_ingest"} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, days := range []int{0, 1, 3} {
		if _, err := conn.Exec(t.Context(), `INSERT INTO posthorn.events (tenant_id, created_at, id, type, data, routing_version)
			SELECT $1, posthorn.created_at(x.u), x.u, 'a', CASE WHEN n % 100 = 0 THEN convert_to('"' || repeat('x', 1000000) || '"', 'UTF8') ELSE '1' END, 1
			FROM generate_series(1, 700) n,
				LATERAL (SELECT overlay(posthorn.first_id(now() - make_interval(days => $2, secs => 1000 - n))::text placing lpad(to_hex(n), 12, '0') from 25)::uuid AS u) x`,
			w.uuid(id.Tenant, acme.id), days); err != nil {
			t.Fatal(err)
		}
	}
	files := unpacked(t, w.do("POST", "/api/v1/tenants/"+acme.id+"/export", w.platform, nil).want(200).Body)
	seen := map[any]bool{}
	last := ""
	for _, e := range files["events.ndjson"] {
		if e["id"].(string) <= last {
			t.Fatalf("%s comes after %s", e["id"], last)
		}
		last, seen[e["id"]] = e["id"].(string), true
	}
	if len(seen) != 2100 {
		t.Errorf("%d of 2,100 events", len(seen))
	}
}
