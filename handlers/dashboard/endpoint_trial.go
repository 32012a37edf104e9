package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"

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

// showTest shows the page for test events. If the query names a delivery of this endpoint, it also shows the result:
// the whole page for a browser, the result's part for htmx.
func (a *dashboard) showTest(c *handlers.Call) error {
	e, err := a.read(c)
	if err != nil {
		return err
	}
	var sent *pages.TrialView
	if text := c.Query("delivery"); text != "" {
		if sent, err = a.sent(c, e, text); err != nil {
			return err
		}
		if c.Fragment() {
			return c.Render(http.StatusOK, pages.Trial(*sent))
		}
	}
	kind, data := cmp.Or(c.Query("type"), endpoint.TestType), ""
	var filled url.Values
	found, err := c.TakeOnce(endpointPath(c, e.ID)+"/test", &filled)
	if found {
		kind, data = filled.Get("type"), filled.Get("data")
	} else if err == nil {
		data, err = a.sampleOf(c, kind)
	}
	if err != nil {
		return err
	}
	v, err := a.testView(c, e, kind, data)
	if err != nil {
		return err
	}
	v.Sent = sent
	return c.Render(http.StatusOK, pages.TestSend(v))
}

// testView is the page for test events with what its form holds.
func (a *dashboard) testView(c *handlers.Call, e show.Endpoint, kind, data string) (pages.TestView, error) {
	v := pages.TestView{EndpointHead: a.head(c, e, "test"), Type: kind, Data: data, Why: whyNoTest(e)}
	err := c.Tx(func(q *db.Tx) (err error) {
		v.Types, err = knownTypes(c, q, choices)
		return err
	})
	return v, err
}

// whyNoTest says why the endpoint's state permits no test.
func whyNoTest(e show.Endpoint) string {
	if f := fault.As(endpoint.Test(e.Status)); f != nil {
		return f.Detail
	}
	return ""
}

// sendTest emits an event to this endpoint alone, and redirects to the page with its result. The buttons that fill the
// form send nothing.
func (a *dashboard) sendTest(c *handlers.Call) error {
	in, err := c.Form()
	if err != nil {
		return err
	}
	e, err := a.read(c)
	if err != nil {
		return err
	}
	if asked, err := a.fill(c, in, endpointPath(c, e.ID)+"/test"); asked {
		if err == nil {
			return nil
		}
		return a.showTestForm(c, e, in, err)
	}
	from := in.Get("from")
	if from != "" { // a button elsewhere, which has no fields
		in.Set("type", endpoint.TestType)
		in.Set("data", testData)
	}
	sent, err := a.emitTest(c, e, in.Get("type"), in.Get("data"))
	switch {
	case err != nil:
		return a.showTestForm(c, e, in, err)
	case from == pages.FromInbox:
		return c.Done(endpointPath(c, e.ID)+"/inbox", "The test event was sent.")
	case from == pages.FromCreated:
		return c.Redirect(endpointPath(c, e.ID) + "/created?delivery=" + id.Delivery.Format(sent))
	}
	return c.Redirect(endpointPath(c, e.ID) + "/test?delivery=" + id.Delivery.Format(sent))
}

// showTestForm shows the form again, with what is wrong with it.
func (a *dashboard) showTestForm(c *handlers.Call, e show.Endpoint, in url.Values, wrong error) error {
	v, err := a.testView(c, e, in.Get("type"), in.Get("data"))
	if err != nil {
		return err
	}
	v.Wrong = handlers.WrongFields(wrong)
	if err := handlers.NotInput(wrong); err != nil {
		return err
	}
	if v.Why == "" {
		v.Why = v.Wrong[""]
	}
	return c.Render(handlers.Status(wrong), pages.TestSend(v))
}

func (a *dashboard) emitTest(c *handlers.Call, e show.Endpoint, kind, data string) (sent id.UUID, err error) {
	if err := endpoint.Test(e.Status); err != nil {
		return sent, err
	}
	if err := checkJSON(data); err != nil {
		return sent, err
	}
	return a.emitTo(c, e.ID, kind, data)
}

// emitTo emits an event to one endpoint alone. It waits if the endpoint is not active yet.
func (a *dashboard) emitTo(c *handlers.Call, endpointID id.UUID, kind, data string) (sent id.UUID, err error) {
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
	r := a.Emitter.Emit(c.Ctx(), c.Actor.Tenant, []emit.Item{{Emission: emission, Only: &endpointID}})[0]
	if r.Err != nil {
		return sent, r.Err
	}
	err = c.Tx(func(q *db.Tx) error {
		if err := a.editor(c).Tested(c.Ctx(), q, c.Actor.Tenant, endpointID, r.ID, kind); err != nil {
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
