package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// caller is a tenant's program at a server.
type caller struct {
	t        *testing.T
	url, key string
}

func (c caller) do(method, path, body string, want int, into any) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		c.t.Fatal(err)
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	if res.StatusCode != want {
		c.t.Fatalf("%s %s answered %d, want %d: %s", method, path, res.StatusCode, want, text)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			c.t.Fatalf("%s: %v", text, err)
		}
	}
}

type received struct {
	ID           string
	Verification bool
	Answer       string
	Signature    struct {
		Good bool
		Code *string
	}
	Headers, Body string
}

func (c caller) received(endpoint string) []received {
	c.t.Helper()
	var page struct{ Data []received }
	c.do("GET", "/api/v1/endpoints/"+endpoint+"/inbox/requests", "", 200, &page)
	return page.Data
}

// TestATestInboxReceivesFromAWorkerElsewhere runs web and worker apart, with no address open to deliveries: a request
// to an inbox is verified, arrives with a good signature, and gets the selected response.
func TestATestInboxReceivesFromAWorkerElsewhere(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	web := program(t, environ, Parts{Web: true})
	program(t, environ, Parts{Worker: true})
	var m made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
	c := caller{t, web.URL(), m.APIKey}
	var e struct{ ID, URL, Status string }
	c.do("POST", "/api/v1/inboxes", `{}`, 201, &e)
	if !strings.HasPrefix(e.URL, web.URL()+"/inbox/") || len(e.URL) != len(web.URL())+len("/inbox/")+43 {
		t.Errorf("the inbox is at %s", e.URL)
	}
	eventually(t, "the inbox has proven itself", func() bool {
		c.do("GET", "/api/v1/endpoints/"+e.ID, "", 200, &e)
		return e.Status == "active"
	})
	c.do("POST", "/api/v1/events", `{"type":"order.paid","data":{"total":42}}`, 202, nil)
	eventually(t, "the event has arrived", func() bool { return len(c.received(e.ID)) == 2 })
	got := c.received(e.ID)
	if !got[1].Verification || !got[1].Signature.Good || got[0].Verification || !got[0].Signature.Good ||
		got[0].Answer != "200" {
		t.Errorf("%+v", got)
	}
	var whole received
	c.do("GET", "/api/v1/inbox-requests/"+got[0].ID, "", 200, &whole)
	if !strings.Contains(whole.Body, `"data":{"total":42}`) || !strings.Contains(whole.Headers, "Webhook-Signature: v1,") {
		t.Errorf("%+v", whole)
	}
	// Others can send to it, and their requests are marked; without the token nobody finds it.
	anonymous := caller{t: t}
	anonymous.do("POST", e.URL, `{"type":"order.paid"}`, 200, nil)
	if got = c.received(e.ID); len(got) != 3 || got[0].Signature.Good || got[0].Signature.Code == nil ||
		*got[0].Signature.Code != "header_missing" {
		t.Errorf("a stranger's: %+v", got[0])
	}
	anonymous.do("POST", web.URL()+"/inbox/"+strings.Repeat("A", 43), `{}`, 404, nil)
	anonymous.do("POST", e.URL, strings.Repeat("x", 3<<20), 413, nil)
	// The URL can't be changed.
	c.do("PATCH", "/api/v1/endpoints/"+e.ID, `{"url":"https://hooks.example.com/in"}`, 400, nil)
	c.do("PATCH", "/api/v1/endpoints/"+e.ID, `{"description":"mine"}`, 200, nil)
	// A 410 disables it; it is verified again and continues.
	c.do("PATCH", "/api/v1/endpoints/"+e.ID+"/inbox", `{"answer":"410"}`, 200, nil)
	c.do("POST", "/api/v1/events", `{"type":"order.paid","data":2}`, 202, nil)
	eventually(t, "the endpoint is disabled", func() bool {
		c.do("GET", "/api/v1/endpoints/"+e.ID, "", 200, &e)
		return e.Status == "disabled"
	})
	c.do("PATCH", "/api/v1/endpoints/"+e.ID+"/inbox", `{"answer":"200"}`, 200, nil)
	c.do("POST", "/api/v1/endpoints/"+e.ID+"/resume", "", 202, nil)
	eventually(t, "the endpoint is active again", func() bool {
		c.do("GET", "/api/v1/endpoints/"+e.ID, "", 200, &e)
		return e.Status == "active"
	})
	c.do("DELETE", "/api/v1/endpoints/"+e.ID, "", 204, nil)
	anonymous.do("POST", e.URL, `{}`, 404, nil)
}
