package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"posthorn/domain/id"
)

// live lists an endpoint's secrets, newest first, as "signing", "waiting" or "signing until" and so on.
func (w *world) live(tn tenant, ep string) []map[string]any {
	w.t.Helper()
	var out []map[string]any
	for _, s := range w.do("GET", "/api/v1/endpoints/"+ep+"/secrets", tn.key, nil).want(http.StatusOK).get("data").([]any) {
		out = append(out, s.(map[string]any))
	}
	return out
}

func shape(secrets []map[string]any) string {
	var out []string
	for _, s := range secrets {
		word := "waits"
		if s["signing"].(bool) {
			word = "signs"
		}
		if s["expires_at"] != nil {
			word += " until its end"
		}
		out = append(out, word)
	}
	return strings.Join(out, ", ")
}

func TestRotationKeepsTheOldSecretSigningForItsOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	created := w.endpoint(tn, nil)
	ep := created.text("id")
	path := "/api/v1/endpoints/" + ep + "/rotate-secret"
	if got := shape(w.live(tn, ep)); got != "signs" {
		t.Errorf("at first: %s", got)
	}
	rotated := w.do("POST", path, tn.key, nil).want(http.StatusCreated)
	if rotated.text("secret") == created.text("secret") || !strings.HasSuffix(strings.TrimRight(rotated.text("secret"), "="), rotated.text("hint")) {
		t.Errorf("got %s", rotated.Body)
	}
	if got := shape(w.live(tn, ep)); got != "signs, signs until its end" {
		t.Errorf("after a rotation: %s", got)
	}
	left := one[float64](w, "SELECT extract(epoch FROM max(expires_at) - now())::float8 FROM endpoint_secrets")
	if left < 86400-60 || left > 86400 {
		t.Errorf("the overlap is %.0f s, want a day", left)
	}
	w.do("POST", path, tn.key, `{"overlap_seconds":604800}`).want(http.StatusCreated)
	w.do("POST", path, tn.key, `{"overlap_seconds":604801}`).problem(http.StatusBadRequest, "out_of_range", "overlap_seconds")
	w.do("POST", path, tn.key, `{"overlap_seconds":-1}`).problem(http.StatusBadRequest, "out_of_range", "overlap_seconds")
	if got := shape(w.live(tn, ep)); got != "signs, signs until its end, signs until its end" {
		t.Errorf("after another: %s", got)
	}
	w.SQL("UPDATE endpoint_secrets SET expires_at = now() - interval '1 second' WHERE id = (SELECT id FROM endpoint_secrets ORDER BY id LIMIT 1)")
	if got := shape(w.live(tn, ep)); got != "signs, signs until its end" {
		t.Errorf("when an overlap has ended: %s", got)
	}
	w.do("POST", path, tn.key, `{"overlap_seconds":0}`).want(http.StatusCreated)
	if got := shape(w.live(tn, ep)); got != "signs" || one[int](w, "SELECT count(*)::int FROM endpoint_secrets") != 1 {
		t.Errorf("without an overlap: %s", got)
	}
	if w.audited(tn, "endpoint.rotate_secret") != 3 {
		t.Error("rotations are audited")
	}
}

func TestTenSecretsLiveAtMost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.endpoint(tn, nil).text("id")
	path := "/api/v1/endpoints/" + ep + "/rotate-secret"
	parallel(t, 12, func(int) {
		if a := w.do("POST", path, tn.key, nil); a.Status != http.StatusCreated {
			a.problem(http.StatusConflict, "secrets_limit")
		}
	})
	if n := len(w.live(tn, ep)); n != 10 {
		t.Errorf("%d live secrets", n)
	}
	// What the error suggests works.
	w.do("POST", path, tn.key, `{"overlap_seconds":0}`).want(http.StatusCreated)
	if n := len(w.live(tn, ep)); n != 1 {
		t.Errorf("%d live secrets", n)
	}
}

func TestAFormatWithOneSlotSwitchesOnRequest(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"body-hex", "raw"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tn := w.tenant("a")
			ep := w.endpoint(tn, map[string]any{"format": format}).text("id")
			path := "/api/v1/endpoints/" + ep
			w.do("POST", path+"/switch-secret", tn.key, nil).want(http.StatusOK) // nothing to switch
			first := w.do("POST", path+"/rotate-secret", tn.key, nil).want(http.StatusCreated)
			if first.get("signing") != false || shape(w.live(tn, ep)) != "waits, signs until its end" {
				t.Errorf("after a rotation: %s", shape(w.live(tn, ep)))
			}
			second := w.do("POST", path+"/rotate-secret", tn.key, nil).want(http.StatusCreated)
			if got := shape(w.live(tn, ep)); got != "waits, waits until its end, signs until its end" {
				t.Errorf("after another: %s", got)
			}
			a := w.do("POST", path+"/switch-secret", tn.key, nil).want(http.StatusOK)
			if a.text("id") != second.text("id") || a.get("signing") != true || shape(w.live(tn, ep)) != "signs, waits until its end, waits until its end" {
				t.Errorf("after the switch: %s", shape(w.live(tn, ep)))
			}
			if w.audited(tn, "endpoint.switch_secret") != 1 {
				t.Error("the switch is audited, and only what it changed")
			}
			third := w.do("POST", path+"/rotate-secret", tn.key, `{"overlap_seconds":60}`).want(http.StatusCreated)
			w.SQL("UPDATE endpoint_secrets SET expires_at = now() WHERE expires_at IS NOT NULL")
			live := w.live(tn, ep)
			if shape(live) != "signs" || live[0]["id"] != third.text("id") {
				t.Errorf("when the overlap has ended the new one signs: %v", live)
			}
		})
	}
}

func TestProvidersBringTheSecretsOfTheirCustomers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	a := w.endpoint(tn, map[string]any{"format": "raw", "secret": "customers-own"})
	if a.text("secret") != "customers-own" || w.live(tn, a.text("id"))[0]["hint"] != "" {
		t.Errorf("got %s", a.Body)
	}
	path := "/api/v1/endpoints/" + a.text("id")
	w.do("PATCH", path, tn.key, `{"format":"standard"}`).problem(http.StatusConflict, "format_secret_mismatch", "format")
	w.do("PATCH", path, tn.key, `{"format":"t-v1"}`).want(http.StatusOK)
	w.do("POST", path+"/rotate-secret", tn.key, `{"overlap_seconds":0}`).want(http.StatusCreated)
	w.do("PATCH", path, tn.key, `{"format":"standard"}`).want(http.StatusOK)
	w.do("POST", path+"/rotate-secret", tn.key, `{"secret":"customers-own"}`).problem(http.StatusBadRequest, "secret_refused", "secret")
	w.do("POST", path+"/rotate-secret", tn.key, `{"secret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}`).want(http.StatusCreated)
}

func TestKeyPairsShowTheirPublicHalf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	a := w.endpoint(tn, map[string]any{"secret_type": "ed25519"})
	path := "/api/v1/endpoints/" + a.text("id")
	if !strings.HasPrefix(a.text("secret"), "whsk_") || !strings.HasPrefix(a.text("public_key"), "whpk_") {
		t.Errorf("got %s", a.Body)
	}
	if s := w.live(tn, a.text("id"))[0]; s["type"] != "ed25519" || s["public_key"] != a.text("public_key") {
		t.Errorf("got %v", s)
	}
	w.do("PATCH", path, tn.key, `{"format":"raw"}`).problem(http.StatusConflict, "format_secret_mismatch", "format")
	if r := w.do("POST", path+"/rotate-secret", tn.key, nil).want(http.StatusCreated); r.text("type") != "ed25519" {
		t.Errorf("a rotation keeps the type: %s", r.Body)
	}
	if r := w.do("POST", path+"/rotate-secret", tn.key, `{"secret_type":"hmac"}`).want(http.StatusCreated); r.text("type") != "hmac" || r.get("public_key") != nil {
		t.Errorf("got %s", r.Body)
	}
	w.do("POST", path+"/rotate-secret", tn.key, `{"secret_type":"rsa"}`).problem(http.StatusBadRequest, "secret_type_unknown", "secret_type")
	w.do("POST", "/api/v1/endpoints", tn.key, `{"url":"`+hook+`","format":"raw","secret_type":"ed25519"}`).
		problem(http.StatusBadRequest, "secret_type_refused", "secret_type")
}

// dump is the content of a plain dump of the database, as text and as hexadecimal.
func (w *world) dump() string {
	w.t.Helper()
	var out strings.Builder
	w.Connection(func(c *pgx.Conn) error {
		rows, err := c.Query(w.t.Context(), `SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = 'posthorn' AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> 'goose_db_version'`)
		if err != nil {
			return err
		}
		tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, table := range tables {
			rows, err := c.Query(w.t.Context(), "SELECT t::text FROM "+table+" t")
			if err != nil {
				return err
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				return err
			}
			fmt.Fprintln(&out, table, lines)
		}
		return nil
	})
	return out.String()
}

func TestSecretsAreFoundNowhereButInTheAnswerThatShowsThemOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	canaries := map[string]string{
		"header":   "canary-authorization-5f1c",
		"marked":   "canary-marked-header-77aa",
		"created":  "",
		"rotated":  "",
		"imported": "canary-imported-secret-90be",
	}
	headers := map[string]string{"Authorization": canaries["header"], "X-Odd": canaries["marked"], "X-Team": "blue"}
	a := w.endpoint(tn, map[string]any{"format": "t-v1", "custom_headers": headers, "sensitive_headers": []string{"X-Odd"}})
	ep := a.text("id")
	path := "/api/v1/endpoints/" + ep
	canaries["created"] = a.text("secret")
	if headers := a.get("custom_headers").(map[string]any); headers["Authorization"] != nil || headers["X-Odd"] != nil || headers["X-Team"] != "blue" {
		t.Errorf("the creation's answer shows %v", headers)
	}
	canaries["rotated"] = w.do("POST", path+"/rotate-secret", tn.key, nil).want(http.StatusCreated).text("secret")
	w.do("POST", path+"/rotate-secret", tn.key, map[string]string{"secret": canaries["imported"]}).want(http.StatusCreated)
	w.setStatus(ep, "active")
	w.do("POST", path+"/test", tn.key, nil).want(http.StatusAccepted)

	places := map[string]string{"the log": w.log.String(), "a dump": w.dump()}
	for _, get := range []string{path, path + "/secrets", "/api/v1/endpoints", "/api/v1/audit-log", "/api/v1/deliveries"} {
		places["GET "+get] = string(w.do("GET", get, tn.key, nil).want(http.StatusOK).Body)
	}
	// A kept header, in either notation, is still hidden.
	places["PATCH"] = string(w.do("PATCH", path, tn.key, `{"custom_headers":{"Authorization":"***","X-Odd":null,"X-Team":"red"}}`).want(http.StatusOK).Body)
	places["a refusal"] = string(w.do("PATCH", path, tn.key, map[string]any{
		"custom_headers": map[string]string{"Authorization": canaries["header"] + "\r\n"},
	}).want(http.StatusBadRequest).Body)
	places["a refused secret"] = string(w.do("POST", path+"/rotate-secret", tn.key, map[string]string{"secret": canaries["imported"] + "\n"}).
		want(http.StatusBadRequest).Body)
	for canary, value := range canaries {
		for place, text := range places {
			if strings.Contains(text, value) || strings.Contains(text, fmt.Sprintf("%x", value)) {
				t.Errorf("%s shows the %s secret", place, canary)
			}
		}
	}
	if !strings.Contains(places["a dump"], hook) {
		t.Error("the dump is empty: nothing was looked at")
	}
	// The kept values are sent.
	endpointID, err := id.Endpoint.Parse(ep)
	if err != nil {
		t.Fatal(err)
	}
	sealed := one[[]byte](w, "SELECT custom_headers FROM endpoints")
	if text, err := w.ring.Open(sealed, tn.uuid, endpointID); err != nil || !strings.Contains(string(text),
		canaries["header"]) || !strings.Contains(string(text), canaries["marked"]) || !strings.Contains(string(text), "red") {
		t.Errorf("stored headers: %s, %v", text, err)
	}
}

func TestASealedSecretMovedToAnotherEndpointDoesNotOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	mine, other := w.endpoint(tn, nil).text("id"), w.endpoint(tn, nil).text("id")
	sealed := one[[]byte](w, "SELECT sealed FROM endpoint_secrets WHERE endpoint_id = $1", w.uuid(id.Endpoint, mine))
	endpointID, _ := id.Endpoint.Parse(mine)
	v, _ := id.Endpoint.Parse(other)
	if _, err := w.ring.Open(sealed, tn.uuid, endpointID); err != nil {
		t.Error(err)
	}
	if _, err := w.ring.Open(sealed, tn.uuid, v); err == nil {
		t.Error("it opens for another endpoint")
	}
}

// A receiver of t-v1 that brings its secret along reads a single v1; where each secret signs, there is nothing to
// switch.
func TestAMigratedReceiverGetsOneSignatureDuringARotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	moved := w.endpoint(tn, map[string]any{"format": "t-v1", "secret": "a secret that receivers know already"})
	if got := moved.text("rotation_signatures"); got != "one" {
		t.Errorf("a migrated endpoint signs with %s", got)
	}
	fresh := w.endpoint(tn, map[string]any{"format": "t-v1"})
	if got := fresh.text("rotation_signatures"); got != "all" {
		t.Errorf("a new endpoint signs with %s", got)
	}
	w.do("POST", "/api/v1/endpoints/"+fresh.text("id")+"/switch-secret", tn.key, nil).problem(http.StatusConflict, "secret_not_switched", "")
}

// accept records what a worker does when the receiver accepts what a secret alone signs.
func (w *world) accept(secret string) {
	w.t.Helper()
	w.SQL("UPDATE endpoint_secrets SET check_state = 'accepted', checked_at = now(), check_status = 204 WHERE id = $1", w.uuid(id.Secret, secret))
}

func TestASecretEndsByItselfOnceItsSuccessorWasAccepted(t *testing.T) {
	t.Parallel()
	for format, one := range map[string]bool{"standard": false, "body-hex": true} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tn := w.tenant("a")
			ep := w.endpoint(tn, map[string]any{"format": format}).text("id")
			path := "/api/v1/endpoints/" + ep
			old := w.live(tn, ep)[0]["id"].(string)
			w.do("POST", path+"/secrets/"+old+"/end", tn.key, nil).problem(http.StatusConflict, "secret_last")
			fresh := w.do("POST", path+"/rotate-secret", tn.key, nil).want(http.StatusCreated).text("id")
			w.do("POST", path+"/secrets/"+old+"/end", tn.key, nil).problem(http.StatusConflict, "secret_unchecked")
			w.accept(old) // says nothing about the one that remains
			w.do("POST", path+"/secrets/"+old+"/end", tn.key, `{}`).problem(http.StatusConflict, "secret_unchecked")
			check := w.do("POST", path+"/secrets/"+fresh+"/check", tn.key, nil).want(http.StatusAccepted)
			if check.text("check.state") != "pending" || check.text("id") != fresh || check.get("signing") != !one {
				t.Errorf("got %s", check.Body)
			}
			w.do("POST", path+"/secrets/"+old+"/end", tn.key, nil).problem(http.StatusConflict, "secret_unchecked")
			w.accept(fresh)
			w.do("POST", path+"/secrets/"+old+"/end", tn.key, nil).want(http.StatusOK)
			if got := w.live(tn, ep); shape(got) != "signs" || got[0]["id"] != fresh {
				t.Errorf("after the end: %v", got)
			}
			w.do("POST", path+"/secrets/"+old+"/end", tn.key, nil).problem(http.StatusNotFound, "not_found")
			w.do("POST", path+"/secrets/"+old+"/check", tn.key, nil).problem(http.StatusNotFound, "not_found")
			w.do("POST", path+"/secrets/"+old+"/extend", tn.key, `{"overlap_seconds":60}`).problem(http.StatusNotFound, "not_found")
			if w.audited(tn, "endpoint.end_secret") != 1 || w.audited(tn, "endpoint.check_secret") != 1 {
				t.Error("what is done to a secret is audited")
			}
		})
	}
}

func TestTheNewestSecretCanEndAndTheOldOneStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.endpoint(tn, nil).text("id")
	path := "/api/v1/endpoints/" + ep
	fresh := w.do("POST", path+"/rotate-secret", tn.key, nil).want(http.StatusCreated).text("id")
	left := w.do("POST", path+"/secrets/"+fresh+"/end", tn.key, `{"unchecked":true}`).want(http.StatusOK)
	if got := w.live(tn, ep); shape(got) != "signs" || len(left.get("data").([]any)) != 1 {
		t.Errorf("the secret that remains has no end: %v", got)
	}
	if one[bool](w, "SELECT (details ->> 'checked')::bool FROM audit_log WHERE action = 'endpoint.end_secret'") {
		t.Error("the audit log says that there was no check")
	}
}

func TestAnOverlapIsExtendedAndACheckIsForgottenWithTheURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.endpoint(tn, nil).text("id")
	path := "/api/v1/endpoints/" + ep
	old := w.live(tn, ep)[0]["id"].(string)
	w.do("POST", path+"/secrets/"+old+"/extend", tn.key, `{"overlap_seconds":60}`).problem(http.StatusConflict, "secret_without_end")
	fresh := w.do("POST", path+"/rotate-secret", tn.key, `{"overlap_seconds":60}`).want(http.StatusCreated).text("id")
	for _, wrong := range []string{`{"overlap_seconds":0}`, `{"overlap_seconds":604801}`} {
		w.do("POST", path+"/secrets/"+old+"/extend", tn.key, wrong).problem(http.StatusBadRequest, "out_of_range", "overlap_seconds")
	}
	w.do("POST", path+"/secrets/"+old+"/extend", tn.key, `{"overlap_seconds":604800}`).want(http.StatusOK)
	if left := one[float64](w, "SELECT extract(epoch FROM max(expires_at) - now())::float8 FROM endpoint_secrets"); left < 604800-60 {
		t.Errorf("the overlap is %.0f s, want a week", left)
	}
	w.accept(fresh)
	w.do("PATCH", path, tn.key, `{"url":"https://hooks.example.com/moved"}`).want(http.StatusOK)
	if got := w.live(tn, ep)[0]["check"]; got != nil {
		t.Errorf("another receiver has accepted nothing: %v", got)
	}
}

func TestKindsWhoseResponseSaysNothingAboutASecretAreNotChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	topic := w.do("POST", "/api/v1/endpoints", tn.key, map[string]any{"kind": "kafka", "kafka": someTopic(nil)}).want(http.StatusCreated).text("id")
	listener := w.do("POST", "/api/v1/listeners", tn.key, `{}`).want(http.StatusCreated).text("id")
	for ep, code := range map[string]string{topic: "secret_uncheckable", listener: "endpoint_is_listener"} {
		secret := w.live(tn, ep)[0]["id"].(string)
		w.do("POST", "/api/v1/endpoints/"+ep+"/secrets/"+secret+"/check", tn.key, nil).problem(http.StatusConflict, code)
	}
}
