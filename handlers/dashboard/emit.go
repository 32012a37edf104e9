package dashboard

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"posthorn/db"
	"posthorn/db/emit"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

func (a *dashboard) newEvent(c *handlers.Call) error {
	var filled url.Values
	if found, err := c.TakeOnce(path(c, "/events/new"), &filled); err != nil {
		return err
	} else if found {
		return a.showEmit(c, http.StatusOK, filled, nil)
	}
	data, err := a.sampleOf(c, c.Query("type"))
	if err != nil {
		return err
	}
	return a.showEmit(c, http.StatusOK, url.Values{"type": {c.Query("type")}, "data": {data}, "token": {id.Event.Format(db.NewID())}}, nil)
}

func (a *dashboard) showEmit(c *handlers.Call, status int, form url.Values, wrong map[string]string) error {
	v := pages.EmitView{Root: path(c, ""), Wrong: wrong, Token: form.Get("token")}
	err := c.Tx(func(q *db.Tx) (err error) {
		_, v.Types, err = a.filterChoices(c, q)
		return err
	})
	if err != nil {
		return err
	}
	v.Fields = []components.FieldProps{
		{
			Name:        "type",
			Label:       "Event type",
			Value:       form.Get("type"),
			Error:       wrong["type"],
			Required:    true,
			Mono:        true,
			Placeholder: "order.completed",
			MaxLength:   event.MaxName,
			Attrs:       map[string]any{"list": "known-types", "data-example": v.Root + "/events/new"},
		},
		{Name: "key", Label: "Ordering key", Value: form.Get("key"), Error: wrong["key"], Optional: true, Mono: true, Hint: "Endpoints that use ordering receive events with the same key in order."},
		{Name: "channels", Label: "Channels", Value: form.Get("channels"), Error: wrong["channels"], Optional: true, Mono: true, Hint: "Separate with commas, 10 at most."},
	}
	v.Data = components.FieldProps{
		Name:     "data",
		Label:    "Data",
		Value:    form.Get("data"),
		Error:    wrong["data"],
		Required: true,
		Mono:     true,
		Rows:     12,
		Hint:     "Any JSON value. It's stored and sent byte for byte.",
		Attrs:    map[string]any{"data-json": true},
	}
	v.Shell = c.Shell("Emit test event", "events")
	return c.Render(status, pages.Emit(v))
}

// emit stores an event as the API does, and redirects to its page.
func (a *dashboard) emit(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	if asked, err := a.fill(c, form, path(c, "/events/new")); asked {
		return a.notFilled(c, form, err)
	}
	e, body, err := a.readEmission(form)
	var made emit.Result
	if err == nil {
		made = a.Emitter.Emit(c.Ctx(), c.Actor.Tenant, []emit.Item{emit.Keyed(e, body)})[0]
		err = made.Err
	}
	if err != nil {
		if handlers.NotInput(err) != nil && !isTooLarge(err) {
			return err
		}
		return a.showEmit(c, handlers.Status(err), form, handlers.WrongFields(err))
	}
	text := id.Event.Format(made.ID)
	if !made.Duplicate {
		err = c.Tx(func(q *db.Tx) error {
			return c.Audit(q, "event.emitted", "event", text, "", map[string]string{"type": e.Type})
		})
		if err != nil {
			return err
		}
		c.Flash("Emitted: " + components.Many(int64(made.Deliveries), "endpoint matched.", "endpoints matched."))
	}
	return c.Redirect(path(c, "/events/"+text))
}

// notFilled shows the form with why a button could not fill it, if it could not.
func (a *dashboard) notFilled(c *handlers.Call, form url.Values, err error) error {
	if err == nil {
		return nil
	}
	if err := handlers.NotInput(err); err != nil {
		return err
	}
	return a.showEmit(c, handlers.Status(err), form, handlers.WrongFields(err))
}

func isTooLarge(err error) bool {
	e := fault.As(err)
	return e != nil && e.Kind == fault.TooLarge
}

// readEmission writes the form as the API's request body and reads it as the API does: the rules and the messages are
// the same.
func (a *dashboard) readEmission(form url.Values) (e event.Emission, body []byte, err error) {
	data := strings.ReplaceAll(form.Get("data"), "\r\n", "\n") // forms send CR LF
	if err := checkJSON(data); err != nil {
		return e, nil, err
	}
	body, err = json.Marshal(strings.TrimSpace(form.Get("type")))
	if err != nil {
		return e, nil, err
	}
	body = slices.Concat([]byte(`{"type":`), body, []byte(`,"data":`), []byte(strings.TrimSpace(data)))
	more := map[string]any{}
	if key := strings.TrimSpace(form.Get("key")); key != "" {
		more["key"] = key
	}
	if channels := strings.FieldsFunc(form.Get("channels"), func(r rune) bool {
		return r == ',' ||
			unicode.IsSpace(r)
	}); len(channels) > 0 {
		more["channels"] = channels
	}
	for name, value := range more {
		text, err := json.Marshal(value)
		if err != nil {
			return e, nil, err
		}
		body = slices.Concat(body, []byte(`,"`+name+`":`), text)
	}
	body = append(body, '}')
	if e, err = event.Parse(body, event.Limits{MaxPayload: a.MaxPayload}, a.Now()); err != nil {
		return e, nil, err
	}
	if eventID, err := id.Event.Parse(form.Get("token")); err == nil {
		e.IdempotencyKey = "page-" + id.Event.Format(eventID)
	}
	return e, body, nil
}

// checkJSON rejects invalid JSON, beside its field.
func checkJSON(text string) error {
	if strings.TrimSpace(text) == "" {
		return fault.InvalidField("data", event.CodeDataMissing, `Enter the event's data, such as {"id": 42}.`)
	}
	if err := event.CheckJSON([]byte(text)); err != nil {
		return fault.InvalidField("data", fault.As(err).Code, fault.As(err).Detail)
	}
	return nil
}
