package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"posthorn/client"
)

// moveFlags are the flags of every command that copies what another sender's server holds. It can be run again: what
// is there is changed where it differs.
type moveFlags struct {
	JSON     bool      `help:"Print JSON for a program."`
	Verified bool      `help:"The endpoints are in use: they are active immediately, without a verification."`
	CutOver  time.Time `placeholder:"TIME" help:"Before this time endpoints are created paused and drop what is emitted. After it, each tenant's endpoints are disabled there and resumed here. Needs --verified."`
	Back     bool      `help:"Undo the cut-over: pause here, and enable there, what the cut-over moved."`
	Secrets  string    `placeholder:"FILE" help:"A JSON object of the secrets that the other server does not show, by the endpoint's id there."`
	DryRun   bool      `help:"Say what would be made of each endpoint, and do nothing."`
}

// sender is the server of another sender, as an import sees it.
type sender interface {
	// tenants lists the tenants that have endpoints.
	tenants(ctx context.Context) ([]foreignTenant, error)
	// contents reads a tenant's endpoints with their secrets, and its event types.
	contents(ctx context.Context, t foreignTenant) (contents, error)
	// enable makes the sender send to an endpoint, or stops it.
	enable(ctx context.Context, t foreignTenant, endpoint string, on bool) error
}

// foreignTenant is a tenant of another sender.
type foreignTenant struct {
	id       string // there
	external string // the external id that it gets here
	title    string
}

type contents struct {
	types     []client.EventTypeInput
	endpoints []foreignEndpoint
}

// foreignEndpoint is an endpoint of another sender.
type foreignEndpoint struct {
	id       string // there
	external string // the external id that it gets here
	disabled bool
	secret   string         // empty: the server does not show it
	fields   map[string]any // as an import takes it, but for secret and state; nil: it can't be copied
	notes    []string       // what is not copied, and what to do about it
}

// importWorkers is how many tenants are copied side by side.
const importWorkers = 8

// movedTenant is what became of one tenant.
type movedTenant struct {
	Tenant     string       `json:"tenant"`
	EventTypes int          `json:"event_types"`
	Endpoints  int          `json:"endpoints"`
	Created    int          `json:"created"`
	Updated    int          `json:"updated"`
	Unchanged  int          `json:"unchanged"`
	CutOver    bool         `json:"cut_over"` // something was cut over, or back
	Entries    []movedEntry `json:"entries"`
	Problems   []string     `json:"problems"`
}

// movedEntry is what became of one endpoint or event type.
type movedEntry struct {
	Kind       string   `json:"kind"`
	Name       string   `json:"name"`
	Action     string   `json:"action"` // created, updated, unchanged, refused or left_out
	URL        string   `json:"url,omitempty"`
	EventTypes []string `json:"receives,omitempty"`
	State      string   `json:"state,omitempty"` // in which it is made: active, paused or unverified
	Notes      []string `json:"notes,omitempty"`
}

// move is an import under way.
type move struct {
	moveFlags
	from    sender
	to      *client.Client
	secrets map[string]string
	now     time.Time
}

// run copies every tenant that is among only, or all where that is empty. One that fails does not stop the others, and
// makes the exit code 1.
func (f moveFlags) run(ctx context.Context, e *Env, from sender, only []string) error {
	if !f.CutOver.IsZero() && !f.Verified {
		return fail(ExitUsage, "--cut-over needs --verified: an endpoint that has yet to be verified can't take over at a given time.")
	}
	secrets, err := readSecrets(ctx, f.Secrets)
	if err != nil {
		return err
	}
	sdk, err := shared{JSON: f.JSON}.connect(e)
	if err != nil {
		return err
	}
	m := &move{moveFlags: f, from: from, to: sdk, secrets: secrets, now: e.Now()}
	tenants, err := from.tenants(ctx)
	if err != nil {
		return err
	}
	if len(only) > 0 {
		tenants = slices.DeleteFunc(tenants, func(t foreignTenant) bool {
			return !slices.Contains(only, t.id) &&
				!slices.Contains(only, t.external)
		})
	}
	done := m.all(ctx, tenants)
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.report(e, done)
}

func (m *move) all(ctx context.Context, tenants []foreignTenant) []movedTenant {
	done := make([]movedTenant, len(tenants))
	next := make(chan int)
	var workers sync.WaitGroup
	for range importWorkers {
		workers.Go(func() {
			for i := range next {
				done[i] = m.tenant(ctx, tenants[i])
			}
		})
	}
	for i := range tenants {
		next <- i
	}
	close(next)
	workers.Wait()
	return done
}

// readSecrets reads the file of --secrets.
func readSecrets(ctx context.Context, file string) (map[string]string, error) {
	if file == "" {
		return nil, nil
	}
	text, err := readFile(ctx, file)
	if err != nil {
		return nil, fail(ExitUsage, "The file of --secrets can't be read: %v", err)
	}
	var out map[string]string
	if json.Unmarshal(text, &out) != nil {
		return nil, fail(ExitUsage, `The file of --secrets is not a JSON object of texts, such as {"ep_1": "whsec_..."}.`)
	}
	return out, nil
}

// tenant copies one tenant.
func (m *move) tenant(ctx context.Context, t foreignTenant) movedTenant {
	out := movedTenant{Tenant: t.external, Entries: []movedEntry{}, Problems: []string{}}
	if err := m.copyTenant(ctx, t, &out); err != nil {
		out.Problems = append(out.Problems, err.Error())
	}
	return out
}

func (m *move) copyTenant(ctx context.Context, t foreignTenant, out *movedTenant) error {
	found, err := m.from.contents(ctx, t)
	if err != nil {
		return err
	}
	out.EventTypes, out.Endpoints = len(found.types), len(found.endpoints)
	here := map[string]client.Endpoint{}
	if !m.CutOver.IsZero() || m.Back || slices.ContainsFunc(found.endpoints,
		func(x foreignEndpoint) bool { return x.disabled }) {
		if here, err = m.endpointsHere(ctx, t.external); err != nil {
			return err
		}
	}
	if m.Back {
		return m.eachHere(ctx, t, found.endpoints, here, out, m.takeBack)
	}
	list, made := m.entries(found, here, out)
	if err := m.importAll(ctx, t, list, made, out); err != nil || m.DryRun {
		return err
	}
	return m.eachHere(ctx, t, found.endpoints, here, out, m.settle)
}

// entries are what is imported, and what the report says of each endpoint before anything was done.
func (m *move) entries(found contents, here map[string]client.Endpoint, out *movedTenant) (list client.ImportInput,
	made map[string]movedEntry,
) {
	list.EventTypes = found.types
	made = map[string]movedEntry{}
	for _, x := range found.endpoints {
		e := movedEntry{Kind: "endpoint", Name: x.external, Action: "left_out", Notes: x.notes}
		secret := x.secret
		if given := m.secrets[x.id]; given != "" {
			secret = given
		}
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
		out.Entries = append(out.Entries, e)
		if len(e.Notes) > 0 {
			out.Problems = append(out.Problems, x.external+": "+e.Notes[len(e.Notes)-1])
		}
	}
	return list, made
}

// importAll imports a tenant's entries. A dry run tries them in a tenant that it takes back.
func (m *move) importAll(ctx context.Context, t foreignTenant, list client.ImportInput, made map[string]movedEntry,
	out *movedTenant,
) error {
	if !m.DryRun {
		if _, err := m.to.PutTenant(ctx, t.external, client.TenantPatch{Name: &t.title}); err != nil {
			return err
		}
	}
	tenant := m.to.Tenant(t.external)
	for part := range chunks(list) {
		part.DryRun, part.CreateTenant = &m.DryRun, new(true)
		did, err := tenant.ImportAll(ctx, part)
		if err != nil {
			return err
		}
		for _, r := range did.Results {
			out.count(r, made[r.Name])
		}
	}
	return nil
}

func (a *movedTenant) count(r client.ImportResult, e movedEntry) {
	if r.Kind != "endpoint" {
		e = movedEntry{}
	}
	e.Kind, e.Name, e.Action = string(r.Kind), r.Name, string(r.Action)
	if r.Problem != nil {
		detail := r.Problem.Detail
		e.Notes = append(e.Notes, detail)
		a.Problems = append(a.Problems, r.Name+": "+detail)
	}
	a.Entries = append(a.Entries, e)
	if r.Kind != "endpoint" || r.Problem != nil {
		return
	}
	switch r.Action {
	case "created":
		a.Created++
	case "updated":
		a.Updated++
	default:
		a.Unchanged++
	}
}

// endpointsHere are the tenant's endpoints here by their external ids; none where there is no such tenant.
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

// put makes a request that has no body.
func (s *source) put(ctx context.Context, path string) error {
	return s.do(ctx, http.MethodPut, path, nil, nil)
}
