// Package inbox is the receiver of test inboxes: it stores requests, echoes verifications, and responds as its tenant
// selected. The same routes serve the public address and, within the worker's process, Posthorn's own deliveries.
package inbox

import (
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/listen"
	"posthorn/db/seal"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/inbox"
	"posthorn/handlers"
)

// Deps are the dependencies of the handlers.
type Deps struct {
	DB   *db.DB
	Keys *seal.Ring
	Now  func() time.Time
	Slow time.Duration // how long a slow inbox waits; 0: longer than any endpoint's timeout
}

type receiver struct {
	Deps
	buckets *handlers.Buckets[id.UUID]
}

// Routes is the route table.
func Routes(d Deps) []handlers.Route {
	if d.Slow == 0 {
		d.Slow = inbox.SlowFor
	}
	a := &receiver{d, handlers.NewBuckets[id.UUID](handlers.Rate{PerSecond: inbox.PerSecond, Burst: inbox.Burst}, d.Now)}
	var routes []handlers.Route
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		routes = append(routes, handlers.Route{
			Method:  method,
			Path:    inbox.Path + ":token",
			Access:  handlers.Access{Public: true},
			MaxBody: inbox.MaxRequest,
			Timeout: d.Slow + handlers.DefaultTimeout,
			Handler: a.receive,
			Changes: true,
		})
	}
	return routes
}

var errBusy = &fault.Error{Kind: fault.Limited, Code: "inbox_busy", Detail: "A test inbox accepts 20 requests per second. Wait a second.", RetryAfter: 1}

func (a *receiver) receive(c *handlers.Call) error {
	box, err := listen.FindInbox(c.Ctx(), a.DB, c.Param("token"))
	if err != nil {
		return err
	}
	if !a.buckets.Take(box.EndpointID) {
		return errBusy
	}
	r := listen.InboxRequest{Method: c.Request.Method, Header: c.Request.Header, Challenge: c.Query("challenge"), At: a.Now()}
	if r.Method == http.MethodGet && inbox.Plain(r.Challenge) == "" {
		return text(c, http.StatusOK, "This is a test inbox. Send POST requests to it; the dashboard shows them.\n")
	}
	if r.Body, err = c.Body(); err != nil {
		return err
	}
	var answer inbox.Answer
	var challenge string
	err = a.DB.Tenant(c.Ctx(), box.TenantID, func(q *db.Tx) error {
		answer, challenge, err = listen.ReceiveInInbox(c.Ctx(), q, a.Keys, box.TenantID, box.EndpointID, r)
		return err
	})
	switch {
	case err != nil:
		return err
	case challenge != "": // whatever its chosen response is: a stopped endpoint is verified before it is resumed
		return text(c, http.StatusOK, challenge)
	case answer == inbox.Slow:
		a.wait(c)
	}
	return text(c, answer.Status(), "The test inbox received it.\n")
}

// wait waits longer than the caller does.
func (a *receiver) wait(c *handlers.Call) {
	timer := time.NewTimer(a.Slow)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.Ctx().Done():
	}
}

func text(c *handlers.Call, status int, body string) error {
	c.Data(status, "text/plain; charset=utf-8", []byte(body))
	return nil
}
