package dashboard

import (
	"context"
	"encoding/json"
	"net/http"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/emit"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// Emitter stores events and their deliveries.
type Emitter interface {
	Emit(ctx context.Context, tenant id.UUID, items []emit.Item) []emit.Result
}

const testData = "{\n  \"test\": true\n}"

// showTest shows the page for test events. If the query names a delivery of this endpoint, it also shows the result:
// the whole page for a browser, the result's part for htmx.
func (a *dashboard) showTest(c *handlers.Call) error {
	e, err := a.read(c)
	if err != nil {
		return err
	}
	v := pages.TestView{EndpointHead: a.head(c, e, "test"), Type: endpoint.TestType, Data: testData, Why: whyNoTest(e)}
	if text := c.Query("delivery"); text != "" {
		if v.Sent, err = a.sent(c, e, text); err != nil {
			return err
		}
		if c.Fragment() {
			return c.Render(http.StatusOK, pages.Trial(*v.Sent))
		}
	}
	return c.Render(http.StatusOK, pages.TestSend(v))
}

// whyNoTest says why the endpoint's state permits no test.
func whyNoTest(e show.Endpoint) string {
	if f := fault.As(endpoint.Test(e.Status)); f != nil {
		return f.Detail
	}
	return ""
}

// sendTest emits an event to this endpoint alone, and redirects to the page with its result.
func (a *dashboard) sendTest(c *handlers.Call) error {
	in, err := c.Form()
	if err != nil {
		return err
	}
	e, err := a.read(c)
	if err != nil {
		return err
	}
	back := "/test"
	if in.Get("first") == "true" { // the last step of adding an endpoint, which has no fields
		back = "/created"
		in.Set("type", endpoint.TestType)
		in.Set("data", testData)
	}
	sent, err := a.emitTest(c, e, in.Get("type"), in.Get("data"))
	if err == nil {
		return c.Redirect(endpointPath(c, e.ID) + back + "?delivery=" + id.Delivery.Format(sent))
	}
	v := pages.TestView{EndpointHead: a.head(c, e, "test"), Type: in.Get("type"), Data: in.Get("data"), Why: whyNoTest(e)}
	status := handlers.Status(err)
	v.Wrong = handlers.WrongFields(err)
	if err := handlers.NotInput(err); err != nil {
		return err
	}
	if v.Why == "" {
		v.Why = v.Wrong[""]
	}
	return c.Render(status, pages.TestSend(v))
}

func (a *dashboard) emitTest(c *handlers.Call, e show.Endpoint, kind, data string) (sent id.UUID, err error) {
	if err := endpoint.Test(e.Status); err != nil {
		return sent, err
	}
	if !json.Valid([]byte(data)) {
		return sent, fault.InvalidField("data", "body_malformed", "Invalid JSON. Use an object such as "+`{"test": true}.`)
	}
	name, err := json.Marshal(kind)
	if err != nil {
		return sent, err
	}
	body := `{"type":` + string(name) + `,"data":` + data + `}`
	emission, err := event.Parse([]byte(body), event.Limits{
		MaxPayload: a.MaxPayload,
		Reserved:   kind == endpoint.TestType,
	}, a.Now())
	if err != nil {
		return sent, err
	}
	r := a.Emitter.Emit(c.Ctx(), c.Actor.Tenant, []emit.Item{{Emission: emission, Only: &e.ID}})[0]
	if r.Err != nil {
		return sent, r.Err
	}
	err = c.Tx(func(q *db.Tx) error {
		if err := a.editor(c).Tested(c.Ctx(), q, c.Actor.Tenant, e.ID, r.ID, kind); err != nil {
			return err
		}
		return deliveries.HastenTest(c.Ctx(), q, c.Actor.Tenant, r.DeliveryID)
	})
	return r.DeliveryID, err
}

// sent is the result of a delivery of an endpoint.
func (a *dashboard) sent(c *handlers.Call, e show.Endpoint, text string) (*pages.TrialView, error) {
	deliveryID, err := id.Delivery.Parse(text)
	if err != nil {
		return nil, fault.ErrNotFound
	}
	var d show.Delivery
	var attempts []show.Attempt
	err = c.Tx(func(q *db.Tx) error {
		if d, err = deliveries.Read(c.Ctx(), q, c.Actor.Tenant, deliveryID); err != nil {
			return err
		}
		attempts, err = deliveries.Attempts(c.Ctx(), q, d, 1)
		return err
	})
	if err != nil {
		return nil, err
	}
	if d.Endpoint.ID != e.ID {
		return nil, fault.ErrNotFound
	}
	v := &pages.TrialView{
		Poll:     endpointPath(c, e.ID) + "/test?delivery=" + text,
		Href:     root(c) + "/deliveries/" + text,
		Delivery: d,
		Hidden:   !c.Actor.May(access.ReadPayloads),
	}
	if len(attempts) > 0 {
		v.Attempt = attempts[0]
	}
	return v, nil
}
