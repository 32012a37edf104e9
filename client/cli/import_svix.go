package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"posthorn/client"
)

// importSvixCommand copies what a Svix server holds. It can be run again: what is there is changed where it differs.
type importSvixCommand struct {
	JSON     bool      `help:"Print JSON for a program."`
	URL      string    `required:"" placeholder:"URL" help:"The Svix server, such as https://api.eu.svix.com."`
	Token    string    `required:"" env:"SVIX_TOKEN" placeholder:"TOKEN" help:"Its token (or SVIX_TOKEN)."`
	App      []string  `placeholder:"UID" help:"Only these applications."`
	Verified bool      `help:"The endpoints are in use: they are active at once, without a verification."`
	CutOver  time.Time `placeholder:"TIME" help:"Before this time endpoints are created paused and drop what is emitted. After it, each application's endpoints are disabled in Svix and resumed here."`
	DryRun   bool      `help:"Say what would be done, and do nothing."`
}

// svixApp is what became of one application.
type svixApp struct {
	App        string   `json:"app"`
	EventTypes int      `json:"event_types"`
	Endpoints  int      `json:"endpoints"`
	Created    int      `json:"created"`
	Updated    int      `json:"updated"`
	Unchanged  int      `json:"unchanged"`
	CutOver    bool     `json:"cut_over"`
	Problems   []string `json:"problems"`
}

// svixWorkers is how many applications are copied side by side.
const svixWorkers = 4

// Run copies every application. One that fails does not stop the others, and makes the exit code 1.
func (c importSvixCommand) Run(ctx context.Context, e *Env) error {
	sdk, err := shared{JSON: c.JSON}.connect(e)
	if err != nil {
		return err
	}
	from := &svixSource{base: strings.TrimRight(c.URL, "/"), token: c.Token, http: &http.Client{Timeout: 30 * time.Second}}
	im := &svixImport{importSvixCommand: c, from: from, to: sdk, now: e.Now()}
	if im.types, err = all[svixEventType](ctx, from, "/api/v1/event-type?with_content=true"); err != nil {
		return err
	}
	apps, err := all[svixApplication](ctx, from, "/api/v1/app")
	if err != nil {
		return err
	}
	apps = c.chosen(apps)
	done := make([]svixApp, len(apps))
	next := make(chan int)
	var workers sync.WaitGroup
	for range svixWorkers {
		workers.Go(func() {
			for i := range next {
				done[i] = im.app(ctx, apps[i])
			}
		})
	}
	for i := range apps {
		next <- i
	}
	close(next)
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.report(e, done)
}

// chosen are the applications that were asked for.
func (c importSvixCommand) chosen(apps []svixApplication) []svixApplication {
	if len(c.App) == 0 {
		return apps
	}
	var out []svixApplication
	for _, a := range apps {
		for _, want := range c.App {
			if want == a.ID || want == a.name() {
				out = append(out, a)
			}
		}
	}
	return out
}

func (c importSvixCommand) report(e *Env, done []svixApp) error {
	rows := make([][]string, len(done))
	failed := 0
	for i, a := range done {
		if len(a.Problems) > 0 {
			failed++
		}
		rows[i] = []string{
			a.App, strconv.Itoa(a.Endpoints), strconv.Itoa(a.Created), strconv.Itoa(a.Updated), strconv.Itoa(a.Unchanged),
			oneLine(strings.Join(a.Problems, "; "), 200),
		}
	}
	err := shared{JSON: c.JSON}.show(e, done, func() {
		e.table([]string{"APPLICATION", "ENDPOINTS", "CREATED", "UPDATED", "UNCHANGED", ""}, rows)
		if c.DryRun {
			e.notef("Nothing was done.\n")
		}
	})
	if err == nil && failed > 0 {
		return fail(ExitFailed, "%d of %d applications have problems.", failed, len(done))
	}
	return err
}

// svixImport is one import under way.
type svixImport struct {
	importSvixCommand
	from  *svixSource
	to    *client.Client
	types []svixEventType
	now   time.Time
}

// The objects of Svix's API, as far as they are copied. Fields that were renamed have both names.
type (
	svixApplication struct {
		ID   string  `json:"id"`
		UID  *string `json:"uid"`
		Name string  `json:"name"`
	}
	svixEndpoint struct {
		ID           string            `json:"id"`
		UID          *string           `json:"uid"`
		URL          string            `json:"url"`
		Description  string            `json:"description"`
		Disabled     bool              `json:"disabled"`
		FilterTypes  []string          `json:"filterTypes"`
		EventTypes   []string          `json:"eventTypes"`
		Channels     []string          `json:"channels"`
		RateLimit    *int              `json:"rateLimit"`
		ThrottleRate *int              `json:"throttleRate"`
		Metadata     map[string]string `json:"metadata"`
	}
	svixEventType struct {
		Name        string                     `json:"name"`
		Description string                     `json:"description"`
		Deprecated  bool                       `json:"deprecated"`
		Archived    bool                       `json:"archived"`
		Schemas     map[string]json.RawMessage `json:"schemas"`
	}
)

func (a svixApplication) name() string {
	if a.UID != nil && *a.UID != "" {
		return *a.UID
	}
	return a.ID
}

func (x svixEndpoint) name() string {
	if x.UID != nil && *x.UID != "" {
		return *x.UID
	}
	return x.ID
}

// app copies one application.
func (im *svixImport) app(ctx context.Context, a svixApplication) svixApp {
	out := svixApp{App: a.name(), EventTypes: len(im.types), Problems: []string{}}
	if err := im.copyApp(ctx, a, &out); err != nil {
		out.Problems = append(out.Problems, err.Error())
	}
	return out
}

func (im *svixImport) copyApp(ctx context.Context, a svixApplication, out *svixApp) error {
	there, err := all[svixEndpoint](ctx, im.from, "/api/v1/app/"+a.ID+"/endpoint")
	if err != nil {
		return err
	}
	out.Endpoints = len(there)
	list := client.ImportInput{DryRun: &im.DryRun}
	for _, t := range im.types {
		list.EventTypes = append(list.EventTypes, t.entry())
	}
	for _, x := range there {
		entry, err := im.endpoint(ctx, a, x)
		if err != nil {
			return err
		}
		list.Endpoints = append(list.Endpoints, entry)
	}
	if im.DryRun {
		return nil // the tenant may not exist, and what would be done in it can't be asked
	}
	if _, err := im.to.PutTenant(ctx, a.name(), client.TenantPatch{Name: &a.Name}); err != nil {
		return err
	}
	tenant := im.to.Tenant(a.name())
	for part := range chunks(list) {
		did, err := tenant.ImportAll(ctx, part)
		if err != nil {
			return err
		}
		out.count(did.Results)
	}
	for _, x := range there {
		if err := im.settle(ctx, tenant, a, x, out); err != nil {
			return err
		}
	}
	return nil
}

func (a *svixApp) count(results []client.ImportResult) {
	for _, r := range results {
		switch {
		case r.Problem != nil:
			a.Problems = append(a.Problems, r.Name+": "+r.Problem.Detail)
		case r.Kind != "endpoint":
		case r.Action == "created":
			a.Created++
		case r.Action == "updated":
			a.Updated++
		default:
			a.Unchanged++
		}
	}
}

// entry is an event type as Posthorn imports it. Its schema describes, as in Svix, and checks nothing.
func (t svixEventType) entry() client.EventTypeInput {
	deprecated := t.Deprecated || t.Archived
	in := client.EventTypeInput{Name: t.Name, Description: &t.Description, Deprecated: &deprecated}
	newest := ""
	for version := range t.Schemas {
		if len(version) > len(newest) || len(version) == len(newest) && version > newest {
			newest = version
		}
	}
	if newest != "" {
		off := client.SchemaCheck("off")
		in.Schema, in.SchemaCheck = client.Value(t.Schemas[newest]), &off
	}
	return in
}

// endpoint is an endpoint as Posthorn imports it, with its secret and its headers.
func (im *svixImport) endpoint(ctx context.Context, a svixApplication, x svixEndpoint) (json.RawMessage, error) {
	path := "/api/v1/app/" + a.ID + "/endpoint/" + x.ID
	var secret struct {
		Key string `json:"key"`
	}
	if err := im.from.get(ctx, path+"/secret", &secret); err != nil {
		return nil, err
	}
	var headers struct {
		Headers   map[string]string `json:"headers"`
		Sensitive []string          `json:"sensitive"`
	}
	if err := im.from.get(ctx, path+"/headers", &headers); err != nil {
		return nil, err
	}
	in := map[string]any{
		"external_id": x.name(), "url": x.URL, "description": x.Description, "preset": "svix", "secret": secret.Key,
		"verification": "simple", "retry_client_errors": true, "event_types": []string{"*"}, "rate_limit": x.RateLimit,
		"retry_policy": map[string]any{"name": "custom", "delays": []int{5, 300, 1800, 7200, 18000, 36000, 36000}},
	}
	if x.ThrottleRate != nil {
		in["rate_limit"] = *x.ThrottleRate
	}
	for _, types := range [][]string{x.FilterTypes, x.EventTypes} {
		if len(types) > 0 {
			in["event_types"] = types
		}
	}
	if len(x.Channels) > 0 {
		in["channels"] = x.Channels
	}
	if len(headers.Headers) > 0 {
		in["custom_headers"] = headers.Headers
	}
	if len(x.Metadata) > 0 {
		in["metadata"] = x.Metadata
	}
	if im.Verified {
		in["assume_verified"] = true
	}
	return json.Marshal(in)
}

// settle pauses an endpoint that is disabled in Svix or whose cut-over is still to come, and makes the cut-over when it
// is time: what is emitted is held from before Svix stops until Posthorn starts, so that nothing is lost.
func (im *svixImport) settle(ctx context.Context, tenant *client.Client, a svixApplication, x svixEndpoint, out *svixApp) error {
	e, err := tenant.GetEndpoint(ctx, x.name())
	if err != nil {
		if client.Code(err) == "not_found" {
			return nil // it was refused, and the report says why
		}
		return err
	}
	waits := !im.CutOver.IsZero() && im.now.Before(im.CutOver)
	held := client.WhenHeld("hold")
	switch {
	case waits && e.Status == "active":
		drop := client.WhenHeld("drop")
		if _, err := tenant.UpdateEndpoint(ctx, e.ID, client.EndpointPatch{WhenHeld: &drop}); err != nil {
			return err
		}
		_, err = tenant.PauseEndpoint(ctx, e.ID)
	case waits:
	case !im.CutOver.IsZero() && e.Status == "paused" && e.WhenHeld == "drop":
		if _, err := tenant.UpdateEndpoint(ctx, e.ID, client.EndpointPatch{WhenHeld: &held}); err != nil {
			return err
		}
		if x.Disabled {
			return nil
		}
		if err := im.from.patch(ctx, "/api/v1/app/"+a.ID+"/endpoint/"+x.ID, map[string]bool{"disabled": true}); err != nil {
			return err
		}
		out.CutOver = true
		_, err = tenant.ResumeEndpoint(ctx, e.ID, client.ResumeInput{})
	case x.Disabled && e.Status == "active" && im.CutOver.IsZero():
		_, err = tenant.PauseEndpoint(ctx, e.ID)
	}
	return err
}

// svixSource reads a Svix server: in pages, again after a pause where it is busy.
type svixSource struct {
	base, token string
	http        *http.Client
}

// all reads every page of a list.
func all[T any](ctx context.Context, s *svixSource, path string) ([]T, error) {
	var out []T
	iterator := ""
	for {
		query := url.Values{"limit": {"250"}}
		if iterator != "" {
			query.Set("iterator", iterator)
		}
		join := "?"
		if strings.Contains(path, "?") {
			join = "&"
		}
		var page struct {
			Data     []T     `json:"data"`
			Iterator *string `json:"iterator"`
			Done     bool    `json:"done"`
		}
		if err := s.get(ctx, path+join+query.Encode(), &page); err != nil {
			return nil, err
		}
		out = append(out, page.Data...)
		if page.Done || page.Iterator == nil || *page.Iterator == iterator {
			return out, nil
		}
		iterator = *page.Iterator
	}
}

func (s *svixSource) get(ctx context.Context, path string, into any) error {
	return s.do(ctx, http.MethodGet, path, nil, into)
}

func (s *svixSource) patch(ctx context.Context, path string, body any) error {
	return s.do(ctx, http.MethodPatch, path, body, nil)
}

// svixTries is how often a request is made before it is given up.
const svixTries = 8

func (s *svixSource) do(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		pause, err := s.once(ctx, method, path, text, into)
		if err == nil || pause < 0 || try == svixTries {
			return err
		}
		timer := time.NewTimer(max(pause, time.Duration(1<<try)*50*time.Millisecond))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// once makes a request. pause says how long to wait before the next try; less than 0 is never.
func (s *svixSource) once(ctx context.Context, method, path string, body []byte, into any) (pause time.Duration, err error) {
	var send io.Reader
	if method != http.MethodGet {
		send = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.base+path, send)
	if err != nil {
		return -1, err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Accept", "application/json")
	if send != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := s.http.Do(r)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return -1, err
		}
		return 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return 0, err
	}
	where, _, _ := strings.Cut(path, "?")
	switch {
	case res.StatusCode/100 == 2 && into == nil:
		return 0, nil
	case res.StatusCode/100 == 2:
		return -1, json.Unmarshal(text, into)
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		return time.Duration(seconds) * time.Second, fmt.Errorf("Svix answered %s %s with %d", method, where, res.StatusCode)
	}
	return -1, fmt.Errorf("Svix answered %s %s with %d: %s", method, where, res.StatusCode, oneLine(string(text), 200))
}
