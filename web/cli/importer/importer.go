// Package importer copies endpoints with their secrets, and event types, from the servers of other senders: Svix,
// Convoy, and Outpost. A copy can be repeated: existing objects are changed where they differ.
package importer

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"posthorn/client"
)

// Options select how to import from another server.
type Options struct {
	Only     []string          // tenants, by the id there or the external id here; empty: all
	Verified bool              // the endpoints are active immediately, without a verification
	CutOver  time.Time         // when these endpoints take over; zero: no cut-over
	Back     bool              // undo the cut-over
	Accept   bool              // what could not be copied is no problem, and stops no cut-over
	Secrets  map[string]string // by the endpoint's id there, of those that the other server does not show
	DryRun   bool
	Now      time.Time
}

// Error says for a person why an import failed.
type Error string

func (e Error) Error() string { return string(e) }

func failf(format string, args ...any) error { return Error(fmt.Sprintf(format, args...)) }

// Sender is the server of another sender, as an import sees it.
type Sender interface {
	// tenants lists the tenants that have endpoints.
	tenants(ctx context.Context) ([]tenant, error)
	// eventTypes lists the event types, which are the same for all tenants.
	eventTypes(ctx context.Context) ([]client.EventTypeInput, error)
	// endpoints reads a tenant's endpoints with their secrets.
	endpoints(ctx context.Context, t tenant) ([]endpoint, error)
	// enable makes the sender send to an endpoint, or stops it.
	enable(ctx context.Context, t tenant, endpoint string, on bool) error
}

// tenant is a tenant of another sender.
type tenant struct {
	id       string // there
	external string // the external id that it gets here
	title    string
	settings client.TenantPatch // further settings that it gets here
}

// endpoint is an endpoint of another sender.
type endpoint struct {
	id       string // there
	external string // the external id that it gets here
	disabled bool
	secret   string         // empty: the server does not show it
	public   string         // of its key pair, where the server shows that alone
	hidden   []string       // headers whose values the server does not show
	fields   map[string]any // as an import takes it, but for secret and state; nil: it can't be copied
	notes    []string       // settings that are not copied, and how to replace them
	rotated  bool           // its secret was another here
}

// workers is how many tenants are copied side by side.
const workers = 8

// Result is what became of one tenant.
type Result struct {
	Tenant     string   `json:"tenant"`
	EventTypes int      `json:"event_types"`
	Endpoints  int      `json:"endpoints"`
	Created    int      `json:"created"`
	Updated    int      `json:"updated"`
	Unchanged  int      `json:"unchanged"`
	CutOver    bool     `json:"cut_over"` // something was cut over, or back
	Entries    []Entry  `json:"entries"`
	Problems   []string `json:"problems"`
}

// Entry is what became of one endpoint or event type.
type Entry struct {
	Kind       string   `json:"kind"`
	Name       string   `json:"name"`
	Action     string   `json:"action"` // created, updated, unchanged, refused or left_out
	URL        string   `json:"url,omitempty"`
	EventTypes []string `json:"receives,omitempty"`
	State      string   `json:"state,omitempty"` // in which it is made: active, paused or unverified
	Notes      []string `json:"notes,omitempty"`

	rotated bool // its secret was another, which alone makes it updated
}

// move is an import under way.
type move struct {
	Options
	from  Sender
	to    *client.Client
	types []client.EventTypeInput
}

// Run copies the tenants, and returns what became of each. One that fails does not stop the others.
func Run(ctx context.Context, from Sender, to *client.Client, o Options) ([]Result, error) {
	tenants, err := from.tenants(ctx)
	if err != nil {
		return nil, err
	}
	if len(o.Only) > 0 {
		tenants = slices.DeleteFunc(tenants, func(t tenant) bool {
			return !slices.Contains(o.Only, t.id) && !slices.Contains(o.Only, t.external)
		})
	}
	m := &move{Options: o, from: from, to: to}
	if m.types, err = from.eventTypes(ctx); err != nil {
		return nil, err
	}
	done := m.all(ctx, tenants)
	return done, ctx.Err()
}

func (m *move) all(ctx context.Context, tenants []tenant) []Result {
	done := make([]Result, len(tenants))
	next := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range next {
				done[i] = m.tenant(ctx, tenants[i])
			}
		})
	}
	for i := range tenants {
		next <- i
	}
	close(next)
	group.Wait()
	return done
}

// tenant copies one tenant.
func (m *move) tenant(ctx context.Context, t tenant) Result {
	out := Result{Tenant: t.external, Entries: []Entry{}, Problems: []string{}}
	if err := m.copyTenant(ctx, t, &out); err != nil {
		out.Problems = append(out.Problems, err.Error())
	}
	return out
}

func (m *move) copyTenant(ctx context.Context, t tenant, out *Result) error {
	found, err := m.from.endpoints(ctx, t)
	if err != nil {
		return err
	}
	out.EventTypes, out.Endpoints = len(m.types), len(found)
	here, err := m.endpointsHere(ctx, t.external)
	if err != nil {
		return err
	}
	if m.Back {
		return m.eachHere(ctx, t, found, here, out, m.takeBack)
	}
	for i := range found {
		found[i].keepHidden(here[found[i].external])
		if err := m.followSecret(ctx, t, &found[i], here[found[i].external]); err != nil {
			found[i].notes = append(found[i].notes, "Its secret could not be brought along: "+err.Error())
		}
	}
	list, made := m.entries(found, here, out)
	if err := m.importAll(ctx, t, list, made, out); err != nil || m.DryRun {
		return err
	}
	return m.eachHere(ctx, t, found, here, out, m.settle)
}

// entries are the objects to import, and the report's line of each endpoint before the import.
func (m *move) entries(found []endpoint, here map[string]client.Endpoint, out *Result) (client.ImportInput, map[string]Entry) {
	list, made := client.ImportInput{EventTypes: m.types}, map[string]Entry{}
	for _, x := range found {
		e := Entry{Kind: "endpoint", Name: x.external, Action: "left_out", Notes: x.notes}
		secret := m.secret(x)
		switch {
		case x.fields == nil:
		case secret == "" && here[x.external].ID == "":
			e.Notes = append(e.Notes, fmt.Sprintf("The server does not show its secret. Add %q: \"<the secret>\" to the file of --secrets.", x.id))
		default:
			fields := maps.Clone(x.fields)
			fields["external_id"] = x.external
			if secret != "" {
				fields["secret"] = secret
			}
			e.rotated = x.rotated
			e.State = m.state(fields, x, here[x.external])
			e.URL, _ = fields["url"].(string)
			e.EventTypes, _ = fields["event_types"].([]string)
			text, err := json.Marshal(fields)
			if err == nil {
				list.Endpoints = append(list.Endpoints, text)
				made[x.external] = e
				continue
			}
			e.Notes = append(e.Notes, err.Error())
		}
		out.add(e, false)
	}
	return list, made
}

// add puts an entry into the report. Its notes are problems, unless they are accepted.
func (a *Result) add(e Entry, accepted bool) {
	a.Entries = append(a.Entries, e)
	if accepted {
		return
	}
	for _, note := range e.Notes {
		a.Problems = append(a.Problems, e.Name+": "+note)
	}
}

// importAll imports a tenant's entries. A dry run tries them in a tenant that it takes back.
func (m *move) importAll(ctx context.Context, t tenant, list client.ImportInput, made map[string]Entry, out *Result) error {
	if !m.DryRun {
		settings := t.settings
		settings.Name = &t.title
		if _, err := m.to.PutTenant(ctx, t.external, settings); err != nil {
			return err
		}
	}
	tenant := m.to.Tenant(t.external)
	for part := range Chunks(list) {
		part.DryRun, part.CreateTenant = &m.DryRun, new(true)
		did, err := tenant.ImportAll(ctx, part)
		if err != nil {
			return err
		}
		for _, r := range did.Results {
			out.count(r, made[r.Name], m.Accept)
		}
	}
	return nil
}

func (a *Result) count(r client.ImportResult, e Entry, accepted bool) {
	if r.Kind != "endpoint" {
		e = Entry{}
	}
	e.Kind, e.Name, e.Action = string(r.Kind), r.Name, string(r.Action)
	if e.rotated && e.Action == "unchanged" {
		e.Action = "updated"
	}
	if r.Problem != nil {
		e.Notes = append(e.Notes, r.Problem.Detail)
	}
	a.add(e, accepted && r.Problem == nil)
	if r.Kind != "endpoint" || r.Problem != nil {
		return
	}
	switch e.Action {
	case "created":
		a.Created++
	case "updated":
		a.Updated++
	default:
		a.Unchanged++
	}
}

// endpointsHere are the tenant's endpoints by their external ids; none if the tenant does not exist.
func (m *move) endpointsHere(ctx context.Context, tenant string) (map[string]client.Endpoint, error) {
	out := map[string]client.Endpoint{}
	for e, err := range m.to.Tenant(tenant).Endpoints(ctx, client.ListEndpointsParams{Limit: new(client.Limit(250))}) {
		switch {
		case client.Code(err) == "not_found":
			return out, nil
		case err != nil:
			return nil, err
		}
		if external, err := e.ExternalID.Get(); err == nil {
			out[external] = e
		}
	}
	return out, nil
}

// chunk is how many entries go in one request.
const chunk = 200

// Chunks cuts an import into requests, the event types first: endpoints can name them.
func Chunks(list client.ImportInput) func(func(client.ImportInput) bool) {
	return func(yield func(client.ImportInput) bool) {
		if n := len(list.EventTypes) + len(list.Endpoints); n > 0 && n <= chunk {
			yield(list)
			return
		}
		for types := range slices.Chunk(list.EventTypes, chunk) {
			if !yield(client.ImportInput{EventTypes: types}) {
				return
			}
		}
		for endpoints := range slices.Chunk(list.Endpoints, chunk) {
			if !yield(client.ImportInput{Endpoints: endpoints}) {
				return
			}
		}
	}
}
