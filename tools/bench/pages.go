package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Every page is requested this often. The first requests warm the caches of a busy server.
const (
	pageWarm  = 5
	pageTimes = 40
	// mostForPages is how many milliseconds the 95th percentile of each can be.
	mostForPages = 50
)

// pageAnswers measures pages and lists over a long history.
func pageAnswers(ctx context.Context, o *options, rep *report) error {
	return with(ctx, o, "pages", func(s *system) error {
		g, err := s.healthy(ctx)
		if err != nil {
			return err
		}
		shop, err := s.writeHistory(ctx, g)
		if err != nil {
			return err
		}
		return s.readPages(ctx, rep, shop)
	})
}

// bigTenant has half of a long history.
type bigTenant struct {
	*group
	member *reader
}

// writeHistory makes one tenant with half of the history, and as many others as were asked for, a group's among them,
// which share the rest.
func (s *system) writeHistory(ctx context.Context, g *group) (shop bigTenant, err error) {
	o := s.opts
	shop.group, err = s.setUp(ctx, shape{
		name:      "shop",
		tenants:   1,
		endpoints: 20,
		ownTypes:  true,
		address:   s.receiverAddr,
		fields:    unthrottled,
	})
	if err != nil {
		return shop, err
	}
	// Now, since the person whom the link signs in becomes a member of all tenants that have none yet.
	if shop.member, err = s.openDashboard(ctx); err != nil {
		return shop, err
	}
	others := g.tenants
	if more := o.historyTenants - len(others); more > 0 {
		o.say("%s: making %d more tenants", s.stem, more)
		small, err := s.setUp(ctx, shape{
			name:      "small",
			tenants:   more,
			endpoints: 1,
			address:   s.receiverAddr,
			fields:    unthrottled,
		})
		if err != nil {
			return shop, err
		}
		others = slices.Concat(others, small.tenants)
	}
	for _, part := range []struct {
		tenants []string
		whose   string
	}{{shop.tenants, "one tenant"}, {others, fmt.Sprintf("%d tenants", len(others))}} {
		o.say("%s: writing %d deliveries of %s over %d days", s.stem, o.historyDeliveries/2, part.whose, o.historyDays)
		if err := s.db.writeHistory(ctx, part.tenants, o.historyDays, o.historyDeliveries/2, func(done string) { o.say("%s: %s", s.stem, done) }); err != nil {
			return shop, err
		}
	}
	return shop, s.db.settle(ctx)
}

// readPages measures what a member, a program, and an operator read, after some events of today.
func (s *system) readPages(ctx context.Context, rep *report, shop bigTenant) error {
	o := s.opts
	if _, err := s.measure(ctx, shop.group, load{
		events:      o.lightEvents,
		rate:        50,
		connections: o.connections,
	}); err != nil {
		return err
	}
	operator, err := s.openConsole(ctx)
	if err != nil {
		return err
	}
	program := &reader{base: "http://" + s.api, key: shop.targets[0].Key}
	platform := &reader{base: "http://" + s.api, key: s.platformKey}
	tenant, err := publicID(shop.tenants[0])
	if err != nil {
		return err
	}
	ids, err := program.firstIDs()
	if err != nil {
		return err
	}
	for _, part := range []struct {
		who   *reader
		words string
		pages []namedPath
	}{
		{shop.member, "page", dashboardPages("/t/"+tenant, ids)},
		{program, "API", apiLists(ids)},
		{platform, "API", []namedPath{{"tenants", "/api/v1/tenants"}, {"tenants, 250", "/api/v1/tenants?limit=250"}}},
		{operator, "console", consolePages(tenant, ids)},
	} {
		for _, p := range part.pages {
			r, err := part.who.measure(p.path)
			if err != nil {
				return err
			}
			rep.add(s.stem, part.words+": "+p.name, r)
			o.say("%s: %s: %s: p50 %.1f ms, p95 %.1f ms", s.stem, part.words, p.name, r.P50, r.P99)
		}
	}
	return nil
}

// reader is somebody who reads pages: a browser's session, or a program with a key.
type reader struct {
	client    http.Client
	base, key string
}

func (s *system) newBrowser() (*reader, error) {
	jar, err := cookiejar.New(nil)
	return &reader{client: http.Client{Jar: jar}, base: "http://" + s.api}, err
}

// openDashboard signs in by the link that `posthorn open` prints on the server's own machine.
func (s *system) openDashboard(ctx context.Context) (*reader, error) {
	cmd := exec.CommandContext(ctx, s.opts.binary, "open")
	cmd.Env = s.env
	link, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("posthorn open: %w", err)
	}
	r, err := s.newBrowser()
	if err != nil {
		return nil, err
	}
	_, err = r.get(strings.TrimPrefix(strings.TrimSpace(string(link)), r.base))
	return r, err
}

// openConsole makes an operator and sets their password, as the link of `posthorn operator create` asks.
func (s *system) openConsole(ctx context.Context) (*reader, error) {
	var made struct{ Link string }
	if err := s.command(ctx, &made, "operator", "create", "--email", "operator@example.com", "--json"); err != nil {
		return nil, err
	}
	link, err := url.Parse(made.Link)
	if err != nil {
		return nil, err
	}
	r, err := s.newBrowser()
	if err != nil {
		return nil, err
	}
	res, err := r.client.PostForm(r.base+link.Path, url.Values{
		"token":    {link.Query().Get("token")},
		"password": {"seven green bottles stand"},
	})
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Request.URL.Path != "/console" {
		return nil, fmt.Errorf("setting the operator's password led to %s with %d", res.Request.URL.Path, res.StatusCode)
	}
	return r, nil
}

func (r *reader) get(path string) (string, error) {
	req, err := http.NewRequest(http.MethodGet, r.base+path, nil)
	if err != nil {
		return "", err
	}
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	res, err := r.client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %d: %.300s", path, res.StatusCode, body)
	}
	return string(body), err
}

// firstIDs are the ids in the first row of each list, by their prefix.
func (r *reader) firstIDs() (map[string]string, error) {
	ids := map[string]string{}
	for prefix, list := range map[string]string{"ep": "endpoints", "dlv": "deliveries", "evt": "events"} {
		body, err := r.get("/api/v1/" + list)
		if err != nil {
			return nil, err
		}
		if ids[prefix] = regexp.MustCompile(prefix + `_[a-z0-9]{26}`).FindString(body); ids[prefix] == "" {
			return nil, fmt.Errorf("the list of %s is empty: %.300s", list, body)
		}
	}
	return ids, nil
}

type namedPath struct{ name, path string }

// monthAgo is in the middle of the history.
func monthAgo() string { return time.Now().UTC().AddDate(0, 0, -30).Format(time.RFC3339) }

// dashboardPages are the pages of a tenant that grow with the history, and those behind the first row of each list.
func dashboardPages(root string, ids map[string]string) []namedPath {
	return []namedPath{
		{"overview", root + "/"},
		{"endpoints", root + "/endpoints"},
		{"endpoint", root + "/endpoints/" + ids["ep"]},
		{"deliveries", root + "/deliveries"},
		{"deliveries, failed", root + "/deliveries?status=failed"},
		{"deliveries, delivered to an endpoint", root + "/deliveries?status=delivered&endpoint=" + ids["ep"]},
		{"deliveries, a month ago", root + "/deliveries?until=" + monthAgo()},
		{"deliveries, a rare type", root + "/deliveries?type=bench.order7"},
		{"delivery", root + "/deliveries/" + ids["dlv"]},
		{"events", root + "/events"},
		{"events, a rare type", root + "/events?type=bench.order7"},
		{"event", root + "/events/" + ids["evt"]},
		{"event types", root + "/event-types"},
		{"keys", root + "/keys"},
		{"members", root + "/members"},
		{"audit log", root + "/audit-log"},
		{"notices", root + "/notices"},
		{"bulk jobs", root + "/bulk-jobs"},
	}
}

// apiLists are the lists of the API, each with the filters that find little in a long history.
func apiLists(ids map[string]string) []namedPath {
	const root = "/api/v1"
	quarter := time.Now().UTC().AddDate(0, 0, -90).Format(time.RFC3339)
	return []namedPath{
		{"deliveries", root + "/deliveries"},
		{"deliveries, 250", root + "/deliveries?limit=250"},
		{"deliveries, oldest first", root + "/deliveries?order=asc"},
		{"deliveries, dead letters", root + "/deliveries?status=dead_letter"},
		{"deliveries, all failed", root + "/deliveries?status=all_failed"},
		{"deliveries, waiting behind a breaker", root + "/deliveries?wait=breaker"},
		{"deliveries to an endpoint", root + "/deliveries?endpoint=" + ids["ep"]},
		{"deliveries, a month ago", root + "/deliveries?until=" + monthAgo()},
		{"deliveries, a rare type", root + "/deliveries?type=bench.order7"},
		{"deliveries, an absent type", root + "/deliveries?type=bench.absent"},
		{"delivery", root + "/deliveries/" + ids["dlv"]},
		{"events", root + "/events"},
		{"events, a rare type", root + "/events?type=bench.order7"},
		{"events, an absent id", root + "/events?event_id=absent"},
		{"event", root + "/events/" + ids["evt"]},
		{"event, its deliveries", root + "/events/" + ids["evt"] + "/deliveries"},
		{"event, its routing", root + "/events/" + ids["evt"] + "/routing"},
		{"endpoints", root + "/endpoints"},
		{"endpoint", root + "/endpoints/" + ids["ep"]},
		{"health", root + "/health"},
		{"analytics by hour", root + "/analytics/deliveries?by=hour"},
		{"analytics, 90 days", root + "/analytics/deliveries?by=day&since=" + quarter},
		{"analytics, 90 days, by endpoint", root + "/analytics/deliveries?by=day&group=endpoint&since=" + quarter},
		{"usage", root + "/usage"},
		{"event types", root + "/event-types"},
		{"keys", root + "/keys"},
		{"notices", root + "/notices"},
		{"audit log", root + "/audit-log"},
		{"bulk jobs", root + "/bulk-jobs"},
	}
}

// consolePages are the operators' pages over all tenants, and those of one.
func consolePages(tenant string, ids map[string]string) []namedPath {
	const root = "/console"
	return []namedPath{
		{"overview", root},
		{"tenants", root + "/tenants"},
		{"tenants by name", root + "/tenants?sort=name"},
		{"tenants with the most waiting", root + "/tenants?sort=waiting"},
		{"tenants, found by name", root + "/tenants?q=small+17"},
		{"tenant", root + "/tenants/" + tenant},
		{"delivery", root + "/tenants/" + tenant + "/deliveries/" + ids["dlv"]},
		{"event", root + "/tenants/" + tenant + "/events/" + ids["evt"]},
		{"deliveries", root + "/deliveries"},
		{"deliveries of a tenant", root + "/deliveries?tenant=" + tenant},
		{"deliveries, failed", root + "/deliveries?status=failed"},
		{"deliveries, dead letters", root + "/deliveries?status=dead_letter"},
		{"deliveries, a rare type", root + "/deliveries?type=bench.order7"},
		{"deliveries to an endpoint", root + "/deliveries?endpoint=" + ids["ep"]},
		{"deliveries, a month ago", root + "/deliveries?until=" + monthAgo()},
		{"events", root + "/events"},
		{"events, a rare type", root + "/events?type=bench.order7"},
		{"hosts", root + "/health"},
		{"endpoints that fail", root + "/health/endpoints"},
		{"queue", root + "/queue"},
		{"pauses", root + "/pauses"},
		{"outbox", root + "/outbox"},
		{"jobs", root + "/jobs"},
		{"mail", root + "/mail"},
		{"books", root + "/books"},
		{"audit log", root + "/audit"},
		{"settings", root + "/settings"},
		{"platform keys", root + "/keys"},
	}
}

// measure requests a page many times. Its row holds the median, and the 95th percentile in place of the 99th: so few
// responses have no meaningful 99th.
func (r *reader) measure(path string) (result, error) {
	return times(func(int) error {
		_, err := r.get(path)
		return err
	})
}

// times measures something that is done many times.
func times(do func(i int) error) (row result, err error) {
	var took []float64
	for i := range pageWarm + pageTimes {
		started := time.Now()
		if err := do(i); err != nil {
			return row, err
		}
		if i >= pageWarm {
			took = append(took, float64(time.Since(started).Microseconds())/1000)
		}
	}
	slices.Sort(took)
	row.P50, row.P99, row.Max, row.Repeats = middle(took), took[len(took)*95/100], took[len(took)-1], pageTimes
	row.Page = true
	return row, nil
}
