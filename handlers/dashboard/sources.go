package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/sources"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/source"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// sourceRoutes are the pages of sources. A source emits events as an API key does, so it needs the same permission.
func (a *dashboard) sourceRoutes() []handlers.Route {
	return []handlers.Route{
		page("GET", "/sources", access.ManageKeys, a.listSources),
		page("GET", "/sources/new", access.ManageKeys, a.newSource),
		page("POST", "/sources", access.ManageKeys, a.createSource),
		page("GET", "/sources/:source_id", access.ManageKeys, a.showSource),
		page("POST", "/sources/:source_id/settings", access.ManageKeys, a.changeSource),
		large(page("POST", "/sources/:source_id/mapping/try", access.ManageKeys, a.tryMapping)),
		page("POST", "/sources/:source_id/pause", access.ManageKeys, a.pauseSource),
		page("POST", "/sources/:source_id/resume", access.ManageKeys, a.resumeSource),
		page("POST", "/sources/:source_id/delete", access.ManageKeys, a.deleteSource),
		page("POST", "/sources/:source_id/rejected/:rejected_id/retry", access.ManageKeys, a.retryMessage),
		page("POST", "/sources/:source_id/rejected/:rejected_id/discard", access.ManageKeys, a.discardMessage),
	}
}

// shownRejected is how many rejected messages the page of a source shows.
const shownRejected = 20

func (a *dashboard) sources(c *handlers.Call) sources.Store {
	return sources.Store{Tenant: c.Actor.Tenant, Keys: a.Keys, By: c.Author()}
}

func sourcesPath(c *handlers.Call) string { return path(c, "/sources") }

func sourcePath(c *handlers.Call, sourceID id.UUID) string {
	return path(c, "/sources/"+id.Source.Format(sourceID))
}

func (a *dashboard) listSources(c *handlers.Call) error {
	l := handlers.List{Name: "sources", Of: id.Source, Rows: rows}
	found, err := handlers.ReadList(c, l, c.Tx, func(q *db.Tx, p handlers.Page) (show.Page[show.Source], error) {
		return a.sources(c).List(c.Ctx(), q, p.Range)
	})
	if err != nil {
		return err
	}
	return c.Render(found.Status(), pages.Sources(pages.SourcesView{
		Shell: c.Shell("Sources", "sources"),
		Root:  sourcesPath(c),
		Rows:  found.Rows,
		Newer: found.Newer,
		Older: found.Older,
	}))
}

func (a *dashboard) newSource(c *handlers.Call) error {
	s := source.Settings{Kind: endpoint.Kafka, Start: source.Oldest, Mapping: source.DefaultMapping}
	return a.showNewSource(c, http.StatusOK, sourceForm(s))
}

func (a *dashboard) showNewSource(c *handlers.Call, status int, f pages.SourceForm) error {
	return c.Render(status, pages.NewSource(pages.NewSourceView{Shell: c.Shell("Create source", "sources"), Root: sourcesPath(c), Form: f}))
}

// sourceForm shows settings in the form.
func sourceForm(s source.Settings) pages.SourceForm {
	f := pages.SourceForm{Name: s.Name, Kind: string(s.Kind), Start: s.Start, Mapping: s.Mapping}
	f.Use, f.Values = endpoint.FromSource, map[string]string{}
	for _, kind := range source.Kinds() {
		var shown any
		if kind == s.Kind && s.Connection != nil {
			shown = s.Shown()
		}
		maps.Copy(f.Values, endpoint.ConnectionText(kind, f.Use, shown))
	}
	return f
}

// filledSource is the form as it was sent, with what is wrong with it.
func filledSource(in url.Values, before source.Settings, wrong map[string]string) pages.SourceForm {
	f := sourceForm(before)
	for name, into := range map[string]*string{"name": &f.Name, "kind": &f.Kind, "start": &f.Start, "mapping": &f.Mapping} {
		if in.Has(name) {
			*into = in.Get(name)
		}
	}
	if hasConnection(in, endpoint.Kind(f.Kind)) {
		maps.Copy(f.Values, typedConnection(in, f.Use))
	}
	f.Wrong = wrong
	return f
}

// hasConnection reports whether a form has the fields of a kind's connection.
func hasConnection(in url.Values, kind endpoint.Kind) bool {
	return in.Has(endpoint.ConnectionForm(string(kind)))
}

// sourceOf lays the form over settings and validates the result.
func (a *dashboard) sourceOf(in url.Values, s source.Settings) (source.Settings, error) {
	for name, into := range map[string]*string{"name": &s.Name, "mapping": &s.Mapping} {
		if in.Has(name) {
			*into = in.Get(name)
		}
	}
	if in.Has("start") && s.Kind == endpoint.Kafka {
		s.Start = in.Get("start")
	}
	given := map[string]json.RawMessage{}
	if hasConnection(in, s.Kind) {
		given[string(s.Kind)] = connectionJSON(in, s.Kind, endpoint.FromSource)
	}
	if err := s.Patch(given); err != nil {
		return s, err
	}
	return s.Check(a.Egress)
}

// createSource creates a source.
func (a *dashboard) createSource(c *handlers.Call) error {
	in, err := c.Form()
	if err != nil {
		return err
	}
	before := source.Settings{Kind: endpoint.Kind(in.Get("kind")), Mapping: source.DefaultMapping}
	var made show.Source
	s, err := a.sourceOf(in, before)
	if err == nil {
		err = c.Tx(func(q *db.Tx) error {
			made, err = a.sources(c).Create(c.Ctx(), q, s)
			return err
		})
	}
	if handlers.NotInput(err) != nil {
		return err
	}
	if err != nil {
		return a.showNewSource(c, handlers.Status(fault.As(err)), filledSource(in, before, sourceFaults(err)))
	}
	return c.Done(sourcePath(c, made.ID), "Created the source.")
}

// sourceFaults are the errors of the form by field.
func sourceFaults(err error) map[string]string {
	if fault.Is(err, source.ErrNameTaken.Code) {
		return map[string]string{"name": fault.As(err).Detail}
	}
	return handlers.WrongFields(err)
}

// readSource reads a source and what was rejected of it.
func (a *dashboard) readSource(c *handlers.Call) (v pages.SourceView, err error) {
	sourceID := c.PathID("source_id")
	v.Root = sourcesPath(c)
	err = c.Tx(func(q *db.Tx) (err error) {
		if v.Source, err = a.sources(c).Read(c.Ctx(), q, sourceID); err != nil {
			return err
		}
		page, err := deliveries.ListRejected(c.Ctx(), q, deliveries.RejectedFilter{Tenant: c.Actor.Tenant, Source: sourceID}, show.Range{Limit: shownRejected})
		v.Rejected, v.More = page.Rows, page.Next != nil
		return err
	})
	v.Shell = c.Shell(v.Source.Settings.Name, "sources")
	v.Form = sourceForm(v.Source.Settings)
	return v, err
}

func (a *dashboard) showSource(c *handlers.Call) error {
	v, err := a.readSource(c)
	if err != nil {
		return err
	}
	if rejected, failed := id.Event.Parse(c.Query("rejected")); failed == nil {
		err := c.Tx(func(q *db.Tx) error {
			m, err := a.sources(c).RejectedMessage(c.Ctx(), q, v.Source.ID, rejected)
			v.Sample = prettyJSON(m)
			return err
		})
		if err != nil {
			return err
		}
	}
	return c.Render(http.StatusOK, pages.Source(v))
}

// prettyJSON is a value as people read it.
func prettyJSON(of any) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if enc.Encode(of) != nil {
		return ""
	}
	return string(bytes.TrimSpace(out.Bytes()))
}

// changeSource saves the mapping, or the connection.
func (a *dashboard) changeSource(c *handlers.Call) error {
	in, err := c.Form()
	if err != nil {
		return err
	}
	sourceID := c.PathID("source_id")
	err = c.Tx(func(q *db.Tx) error {
		_, err := a.sources(c).Change(c.Ctx(), q, sourceID, func(s source.Settings) (source.Settings, error) { return a.sourceOf(in, s) })
		return err
	})
	if handlers.NotInput(err) != nil {
		return err
	}
	if err != nil {
		v, failed := a.readSource(c)
		if failed != nil {
			return failed
		}
		v.Form, v.Sample = filledSource(in, v.Source.Settings, sourceFaults(err)), in.Get("sample")
		return c.Render(handlers.Status(fault.As(err)), pages.Source(v))
	}
	return c.Done(sourcePath(c, sourceID), "Saved.")
}

// tryMapping shows what the mapping of the form makes of a message. Nothing is changed.
func (a *dashboard) tryMapping(c *handlers.Call) error {
	in, err := c.Form()
	if err != nil {
		return err
	}
	v, err := a.readSource(c)
	if err != nil {
		return err
	}
	v.Form, v.Sample = filledSource(in, v.Source.Settings, nil), in.Get("sample")
	var m *source.Message
	if v.Sample != "" {
		m = &source.Message{}
		if json.Unmarshal([]byte(v.Sample), m) != nil {
			v.Form.Wrong = map[string]string{"sample": `A sample is JSON with the parts of a message, such as {"text": "..."}.`}
			return c.Render(http.StatusBadRequest, pages.Source(v))
		}
	}
	s := v.Source.Settings
	s.Mapping = v.Form.Mapping
	try, err := handlers.TrySource(c.Ctx(), a.Tester, s, m, a.Now())
	if handlers.NotInput(err) != nil {
		return err
	}
	if err != nil {
		v.Form.Wrong = handlers.WrongFields(err)
		return c.Render(http.StatusBadRequest, pages.Source(v))
	}
	v.Tried = &pages.SourceTriedView{Empty: try.Message == nil && try.Problem == nil}
	if try.Message != nil {
		v.Tried.Message = prettyJSON(try.Message)
	}
	if f := fault.As(try.Problem); f != nil {
		v.Tried.Problem = f.Detail
	} else if try.Event != nil {
		v.Tried.Event = prettyJSON(json.RawMessage(try.Body))
	}
	return c.Render(http.StatusOK, pages.Source(v))
}

func (a *dashboard) pauseSource(c *handlers.Call) error { return a.setSource(c, true, "Paused.") }

func (a *dashboard) resumeSource(c *handlers.Call) error { return a.setSource(c, false, "Resumed.") }

func (a *dashboard) setSource(c *handlers.Call, paused bool, done string) error {
	sourceID := c.PathID("source_id")
	err := c.Tx(func(q *db.Tx) error {
		_, err := a.sources(c).Pause(c.Ctx(), q, sourceID, paused)
		return err
	})
	if err != nil {
		return err
	}
	return c.Done(sourcePath(c, sourceID), done)
}

func (a *dashboard) deleteSource(c *handlers.Call) error {
	sourceID := c.PathID("source_id")
	if err := c.Tx(func(q *db.Tx) error { return a.sources(c).Delete(c.Ctx(), q, sourceID) }); err != nil {
		return err
	}
	return c.Done(sourcesPath(c), "Deleted the source.")
}

func (a *dashboard) retryMessage(c *handlers.Call) error {
	return a.settleMessage(c, deliveries.RetryRejected, "It is mapped again.")
}

func (a *dashboard) discardMessage(c *handlers.Call) error {
	return a.settleMessage(c, deliveries.DiscardRejected, "Discarded the message.")
}

func (a *dashboard) settleMessage(
	c *handlers.Call,
	settle func(ctx context.Context, q *db.Tx, tenant, rejected id.UUID, by db.Author) error,
	done string,
) error {
	sourceID, rejected := c.PathID("source_id"), c.PathID("rejected_id")
	if err := c.Tx(func(q *db.Tx) error { return settle(c.Ctx(), q, c.Actor.Tenant, rejected, c.Author()) }); err != nil {
		return err
	}
	return c.Done(sourcePath(c, sourceID), done)
}
