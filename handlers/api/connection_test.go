package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAConnectionIsTestedStepByStepAndNothingIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer canary-token" || r.Header.Get("webhook-signature") == "" {
			out.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	auth := map[string]any{"type": "bearer", "token": "canary-token"}
	states := func(a *answer) (all string) {
		for _, s := range a.get("steps").([]any) {
			step := s.(map[string]any)
			all += step["name"].(string) + " " + step["state"].(string) + ","
		}
		return all
	}
	const works = "dns skipped,connect ok,tls skipped,token skipped,request ok,"
	a := w.do("POST", "/api/v1/endpoints/test-connection", tn.key, map[string]any{"url": server.URL, "auth": auth}).want(http.StatusOK)
	if a.get("ok") != true || states(a) != works {
		t.Errorf("not saved: %s", a.Body)
	}
	a = w.do("POST", "/api/v1/endpoints/test-connection", tn.key, map[string]any{"url": server.URL}).want(http.StatusOK)
	if a.get("ok") != false || !strings.HasSuffix(states(a), "request failed,") || !strings.Contains(string(a.Body), "returned 401") {
		t.Errorf("without credentials: %s", a.Body)
	}
	ep := w.do("POST", "/api/v1/endpoints", tn.key, map[string]any{"url": server.URL, "auth": auth, "send_verification": false}).want(http.StatusCreated).text("id")
	path := "/api/v1/endpoints/" + ep + "/test-connection"
	if a := w.do("POST", path, tn.key, nil).want(http.StatusOK); a.get("ok") != true || states(a) != works || strings.Contains(string(a.Body), "canary") {
		t.Errorf("saved: %s", a.Body)
	}
	other := map[string]any{"auth": map[string]any{"type": "bearer", "token": "another"}}
	if a := w.do("POST", path, tn.key, other).want(http.StatusOK); a.get("ok") != false {
		t.Errorf("another token: %s", a.Body)
	}
	if a := w.do("POST", path, tn.key, nil).want(http.StatusOK); a.get("ok") != true {
		t.Errorf("what was tried is saved: %s", a.Body)
	}
	w.do("POST", path, tn.key, map[string]any{"url": "https://evil.example.com/"}).problem(http.StatusBadRequest, "auth_secret_needed", "auth.token")
	w.do("POST", path, tn.key, map[string]any{"url": "https://10.0.0.1/", "auth": nil}).problem(http.StatusBadRequest, "endpoint_url_refused", "url")
	topic := w.do("POST", "/api/v1/endpoints", tn.key, map[string]any{"kind": "kafka", "kafka": someTopic(nil)}).want(http.StatusCreated).text("id")
	if a := w.do("POST", "/api/v1/endpoints/"+topic+"/test-connection", tn.key, nil).want(http.StatusConflict); a.text("code") != "connection_test_unwanted" {
		t.Errorf("a topic: %s", a.Body)
	}
	if n := one[int](w, "SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM attempts) + (SELECT count(*) FROM deliveries)"); n != 0 {
		t.Errorf("%d rows record a test", n)
	}
}
