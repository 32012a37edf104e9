package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Every page of the dashboard is requested this often. The first requests warm the caches of a busy server.
const (
	pageWarm  = 5
	pageTimes = 40
)

// pageAnswers measures the dashboard's pages for one tenant that owns the whole history.
func pageAnswers(ctx context.Context, o *options, rep *report) error {
	return with(ctx, o, "pages", func(s *system) error {
		g, err := s.setUp(ctx, shape{
			name: "shop", tenants: 1, endpoints: 20, ownTypes: true, address: s.receiverAddr,
			fields: unthrottled,
		})
		if err != nil {
			return err
		}
		o.say("pages: writing %d deliveries over %d days", o.historyDeliveries, o.historyDays)
		if err := s.db.writeHistory(ctx, g.tenants, o.historyDays, o.historyDeliveries,
			func(done string) { o.say("pages: %s", done) }); err != nil {
			return err
		}
		if _, err := s.measure(ctx, g, load{events: o.lightEvents, rate: 50, connections: o.connections}); err != nil {
			return err
		}
		d, err := s.openDashboard(ctx)
		if err != nil {
			return err
		}
		paths, err := d.paths()
		if err != nil {
			return err
		}
		for _, p := range paths {
			r, err := d.measure(p.path)
			if err != nil {
				return err
			}
			rep.add(s.stem, p.name, r)
			o.say("pages: %s: p50 %.1f ms, p95 %.1f ms", p.name, r.P50, r.P99)
		}
		return nil
	})
}

// dashboard is a browser's session.
type dashboard struct {
	client http.Client
	base   string
	root   string // of the tenant: /t/ten_...
}

// openDashboard signs in by the link that `posthorn open` prints on the server's own machine.
func (s *system) openDashboard(ctx context.Context) (*dashboard, error) {
	cmd := exec.CommandContext(ctx, s.opts.binary, "open")
	cmd.Env = s.env
	link, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("posthorn open: %w", err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	d := &dashboard{client: http.Client{Jar: jar}, base: "http://" + s.api}
	body, err := d.get(strings.TrimPrefix(strings.TrimSpace(string(link)), d.base))
	if err != nil {
		return nil, err
	}
	if d.root = regexp.MustCompile(`/t/ten_[a-z0-9]+`).FindString(body); d.root == "" {
		return nil, fmt.Errorf("the dashboard shows no tenant: %.300s", body)
	}
	return d, nil
}

func (d *dashboard) get(path string) (string, error) {
	res, err := d.client.Get(d.base + path)
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

type namedPath struct{ name, path string }

// paths are the pages that grow with the history, and those behind the first row of each list.
func (d *dashboard) paths() ([]namedPath, error) {
	first := func(list, pattern string) (string, error) {
		body, err := d.get(d.root + list)
		found := regexp.MustCompile(pattern).FindString(body)
		if err == nil && found == "" {
			err = fmt.Errorf("%s shows no %s", list, pattern)
		}
		return found, err
	}
	ep, err := first("/endpoints", `ep_[a-z0-9]{26}`)
	if err != nil {
		return nil, err
	}
	dlv, err := first("/deliveries", `dlv_[a-z0-9]{26}`)
	if err != nil {
		return nil, err
	}
	evt, err := first("/events", `evt_[a-z0-9]{26}`)
	if err != nil {
		return nil, err
	}
	old := time.Now().UTC().AddDate(0, 0, -30).Format(time.RFC3339)
	return []namedPath{
		{"overview", d.root + "/"},
		{"endpoints", d.root + "/endpoints"},
		{"endpoint", d.root + "/endpoints/" + ep},
		{"deliveries", d.root + "/deliveries"},
		{"deliveries, failed", d.root + "/deliveries?status=failed"},
		{"deliveries, delivered to an endpoint", d.root + "/deliveries?status=delivered&endpoint=" + ep},
		{"deliveries, a month ago", d.root + "/deliveries?until=" + old},
		{"deliveries, a rare type", d.root + "/deliveries?type=bench.order7"},
		{"delivery", d.root + "/deliveries/" + dlv},
		{"events", d.root + "/events"},
		{"events, a rare type", d.root + "/events?type=bench.order7"},
		{"event", d.root + "/events/" + evt},
		{"event types", d.root + "/event-types"},
		{"audit log", d.root + "/audit-log"},
		{"notices", d.root + "/notices"},
	}, nil
}

// measure requests a page many times. Its row holds the median, and the 95th percentile in place of the 99th: so few
// responses have no meaningful 99th.
func (d *dashboard) measure(path string) (r result, err error) {
	var took []float64
	for i := range pageWarm + pageTimes {
		started := time.Now()
		if _, err := d.get(path); err != nil {
			return r, err
		}
		if i >= pageWarm {
			took = append(took, float64(time.Since(started).Microseconds())/1000)
		}
	}
	slices.Sort(took)
	r.P50, r.P99, r.Max, r.Repeats = middle(took), took[len(took)*95/100], took[len(took)-1], pageTimes
	return r, nil
}
