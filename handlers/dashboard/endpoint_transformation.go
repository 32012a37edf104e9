package dashboard

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/events"
	"posthorn/db/queue"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/transform"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// shownTried bounds what is shown of an event, in bytes.
const shownTried = 16 << 10

func (a *dashboard) showTransformation(c *handlers.Call) error {
	e, err := a.read(c)
	if err != nil {
		return err
	}
	v, err := a.transformationView(c, e, transformationForm(e.Settings.Transformation), c.Query("event"))
	if err != nil {
		return err
	}
	if len(v.Events) > 0 {
		if err := a.tryOn(c, &v, e.Settings.Transformation.Hidden(), false); err != nil {
			return err
		}
	}
	return c.Render(http.StatusOK, pages.TransformationEditor(v))
}

// transformationView is the editor with the events that it can be tried on. What they become reveals their content, so
// it needs the permission to read events.
func (a *dashboard) transformationView(c *handlers.Call, e show.Endpoint, f pages.TransformationForm, event string) (v pages.TransformationView, err error) {
	if e.Settings.Kind.Pulls() {
		return v, fault.ErrNotFound // nothing is sent to it
	}
	v = pages.TransformationView{EndpointHead: a.head(c, e, "transformation"), Form: f, Event: event}
	err = c.Tx(func(q *db.Tx) error {
		if v.Tries, err = a.readsPayloads(c, q); err != nil || !v.Tries {
			return err
		}
		v.Events, _, err = events.Sample(c.Ctx(), q, c.Actor.Tenant, e.Settings.EventTypes, tryEvents, a.Now())
		return err
	})
	if v.Event == "" && len(v.Events) > 0 {
		v.Event = id.Event.Format(v.Events[0].ID)
	}
	return v, err
}

// tryOn shows what the chosen event becomes, or what all of them do.
func (a *dashboard) tryOn(c *handlers.Call, v *pages.TransformationView, t *transform.Transformation, all bool) error {
	end := a.Now().Add(tryTime)
	trial := deliveries.Trial{
		Endpoint: v.Endpoint.ID,
		Limit:    tryEvents,
		Links:    queue.Links{BaseURL: a.BaseURL},
		Now:      a.Now(),
		Enough:   func() bool { return a.Now().After(end) },
		Settings: func(s endpoint.Settings) (endpoint.Settings, error) {
			s.Transformation = t
			return s, s.CheckTransformation()
		},
	}
	if !all {
		event, err := id.Event.Parse(v.Event)
		if err != nil {
			return nil // no event is chosen
		}
		trial.Event = event
	}
	var tried []show.Tried
	err := c.Tx(func(q *db.Tx) error {
		payloads, err := a.readsPayloads(c, q)
		if err == nil && !payloads {
			err = errPayloads
		}
		if err != nil {
			return err
		}
		tried, err = trial.Try(c.Ctx(), q, c.Actor.Tenant)
		return err
	})
	switch {
	case errors.Is(err, fault.ErrNotFound) && !all:
		v.Missing = true
		return nil
	case err != nil:
		return err
	case all:
		v.Ran = ranOver(c, t, tried)
	case len(tried) == 1:
		v.Tried = triedOn(c, t, tried[0])
	default:
		v.Missing = true
	}
	return nil
}

func triedOn(c *handlers.Call, t *transform.Transformation, one show.Tried) *pages.TriedView {
	v := &pages.TriedView{
		Href:        root(c) + "/events/" + id.Event.Format(one.Event.ID),
		Type:        one.Event.Type,
		Before:      triedText(one.Before),
		ContentType: one.Output.ContentType,
		Method:      one.Output.Method,
	}
	if one.Problem != nil {
		v.Problem, v.Mark = one.Problem.Error(), one.Problem.Mark(t.Source(one.Problem))
		return v
	}
	v.After = triedText(one.Output.Body)
	for _, h := range one.Output.Headers {
		v.Headers = append(v.Headers, pages.TriedHeader{Name: h.Name, Value: h.Value})
	}
	return v
}

func triedText(body []byte) pages.Excerpt {
	shown := pretty(slices.Clip(append([]byte{}, body...)))
	if len(shown.Text) > shownTried {
		shown = excerpt([]byte(shown.Text), shownTried)
	}
	shown.Size = len(body)
	return shown
}

func ranOver(c *handlers.Call, t *transform.Transformation, tried []show.Tried) *pages.RunView {
	v := &pages.RunView{}
	for _, one := range tried {
		row := pages.RunRow{Type: one.Event.Type, At: one.Event.ID.Time(), Event: id.Event.Format(one.Event.ID), Href: root(c) + "/events/" + id.Event.Format(one.Event.ID)}
		if one.Problem == nil {
			v.OK++
		} else {
			v.Failed++
			row.Problem, row.Mark = one.Problem.Error(), one.Problem.Mark(t.Source(one.Problem))
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}

func (a *dashboard) saveTransformation(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	in, err := c.Form()
	if err != nil {
		return err
	}
	err = a.changeEndpoint(c, endpointID, func(s endpoint.Settings) (endpoint.Settings, error) {
		if err := patchTransformation(&s, in); err != nil {
			return s, err
		}
		return s.Check(a.Egress)
	})
	if err != nil {
		return a.refuseTransformation(c, in, err)
	}
	return c.Done(endpointPath(c, endpointID)+"/transformation", "Transformation saved. It applies to events emitted from now on, and releases the deliveries that waited for it.")
}

func (a *dashboard) refuseTransformation(c *handlers.Call, in url.Values, cause error) error {
	e, err := a.read(c)
	if err != nil {
		return err
	}
	if err := handlers.NotInput(cause); err != nil {
		return err
	}
	f := typedTransformation(in)
	f.Wrong = handlers.WrongFields(cause)
	v, err := a.transformationView(c, e, f, in.Get("event"))
	if err != nil {
		return err
	}
	if t := f.Transformation(); t != nil {
		p := t.Misplaced()
		v.Mark = p.Mark(t.Source(p))
	}
	return c.Render(handlers.Status(cause), pages.TransformationEditor(v))
}

// tryTransformation shows what past events become, or fills the form in from a preset. It changes nothing.
func (a *dashboard) tryTransformation(c *handlers.Call) error {
	in, err := c.Form()
	if err != nil {
		return err
	}
	e, err := a.read(c)
	if err != nil {
		return err
	}
	f := typedTransformation(in)
	if in.Get("do") == pages.FillPreset {
		f.Fill(in.Get("preset"))
		v, err := a.transformationView(c, e, f, in.Get("event"))
		if err != nil {
			return err
		}
		return c.Render(http.StatusOK, pages.TransformationEditor(v))
	}
	s := e.Settings.Clone()
	s.Transformation = s.Transformation.Hidden()
	if err = patchTransformation(&s, in); err == nil {
		err = s.CheckTransformation()
	}
	if err != nil {
		return a.refuseTransformation(c, in, err)
	}
	v, err := a.transformationView(c, e, f, in.Get("event"))
	if err != nil {
		return err
	}
	if err := a.tryOn(c, &v, s.Transformation, in.Get("do") == pages.RunAll); err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.TransformationEditor(v))
}

// patchTransformation lays the form over settings.
func patchTransformation(s *endpoint.Settings, in url.Values) error {
	f := typedTransformation(in)
	if field := f.Malformed(); field != "" {
		return fault.InvalidField("transformation."+field, "transformation_invalid", "Write one per line, as name: value.")
	}
	raw, err := json.Marshal(f.Transformation())
	if err != nil {
		return err
	}
	return s.Patch(map[string]json.RawMessage{"transformation": raw})
}

// transformationForm shows a transformation in the form.
func transformationForm(t *transform.Transformation) pages.TransformationForm {
	if t == nil {
		return pages.TransformationForm{Kind: string(transform.Full)}
	}
	return pages.TransformationForm{
		Kind:        string(t.Kind),
		Preset:      t.Preset,
		Keep:        strings.Join(t.Keep, "\n"),
		Drop:        strings.Join(t.Drop, "\n"),
		Redact:      strings.Join(t.Redact, "\n"),
		Expression:  t.Expression,
		ContentType: t.ContentType,
		Method:      t.Method,
		Headers:     pairs(t.Headers),
		Variables:   pairs(t.Shown().Variables),
	}
}

// pairs are entries as the form has them, one a line.
func pairs(all map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.WriteString(name + ": " + all[name] + "\n")
	}
	return b.String()
}

// typedTransformation is the form as it was sent.
func typedTransformation(in url.Values) pages.TransformationForm {
	return pages.TransformationForm{
		Kind:        in.Get("kind"),
		Preset:      in.Get("preset"),
		Keep:        in.Get("keep"),
		Drop:        in.Get("drop"),
		Redact:      in.Get("redact"),
		Expression:  strings.ReplaceAll(in.Get("expression"), "\r\n", "\n"),
		ContentType: in.Get("content_type"),
		Method:      in.Get("method"),
		Headers:     in.Get("headers"),
		Variables:   in.Get("variables"),
	}
}
