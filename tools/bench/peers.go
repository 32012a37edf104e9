package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// A peer is a product that runs already: its address and key, and its processes, whose CPU and memory are read.
type peer struct {
	product   product
	url, key  string
	project   string   // Convoy's
	processes []usedBy // that are measured
}

// usedBy names processes whose use is one figure.
type usedBy struct {
	name   string
	pid    int
	family bool // with its children, as PostgreSQL has
}

// product is how a load is set up and emitted by one product's documented API.
type product struct {
	name string
	docs string // where the calls are documented
	// open creates a tenant, or what the product calls one, with an endpoint, and says how its events are emitted.
	open func(ctx context.Context, p peer, number int, receiver string) (target, error)
}

var products = []product{
	{"posthorn", "docs/api", openPosthorn},
	{"svix", "https://api.svix.com/docs", openSvix},
	{"outpost", "https://outpost.hookdeck.com/docs/references/api", openOutpost},
	{"convoy", "https://getconvoy.io/docs/api-reference", openConvoy},
}

// peerType is the type of all events.
const peerType = "bench.order"

// openPosthorn needs a platform key.
func openPosthorn(ctx context.Context, p peer, number int, receiver string) (to target, err error) {
	var made struct {
		Key string `json:"api_key"`
	}
	if err := p.call(ctx, http.MethodPost, "/api/v1/tenants", p.key, map[string]any{"name": fmt.Sprint("bench ", number)}, &made); err != nil {
		return to, err
	}
	endpoint := map[string]any{"url": receiver, "event_types": []string{peerType}, "verification": "simple"}
	for field, value := range unthrottled {
		endpoint[field] = value
	}
	var created struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	}
	if err := p.call(ctx, http.MethodPost, "/api/v1/endpoints", made.Key, endpoint, &created); err != nil {
		return to, err
	}
	for until := time.Now().Add(time.Minute); created.Status != "active"; {
		if time.Now().After(until) {
			return to, fmt.Errorf("the endpoint is %s: can Posthorn reach %s? POSTHORN_EGRESS_ALLOW permits private addresses", created.Status, receiver)
		}
		select {
		case <-ctx.Done():
			return to, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		if err := p.call(ctx, http.MethodGet, "/api/v1/endpoints/"+created.ID, made.Key, nil, &created); err != nil {
			return to, err
		}
	}
	return target{Key: made.Key, Path: "/api/v1/events", Lead: `{"type":"` + peerType + `","data":`}, nil
}

func openSvix(ctx context.Context, p peer, number int, receiver string) (to target, err error) {
	var app struct {
		ID string `json:"id"`
	}
	if err := p.call(ctx, http.MethodPost, "/api/v1/app/", p.key, map[string]any{"name": fmt.Sprint("bench ", number)}, &app); err != nil {
		return to, err
	}
	path := "/api/v1/app/" + url.PathEscape(app.ID)
	err = p.call(ctx, http.MethodPost, path+"/endpoint/", p.key, map[string]any{"url": receiver, "version": 1}, nil)
	return target{Key: p.key, Path: path + "/msg/", Lead: `{"eventType":"` + peerType + `","payload":`}, err
}

// openOutpost takes the address with the path of the API's version, such as http://localhost:3333/api/v1.
func openOutpost(ctx context.Context, p peer, number int, receiver string) (to target, err error) {
	tenant := fmt.Sprintf("bench_%d_%d", time.Now().UnixNano(), number)
	if err := p.call(ctx, http.MethodPut, "/tenants/"+tenant, p.key, map[string]any{}, nil); err != nil {
		return to, err
	}
	destination := map[string]any{"type": "webhook", "topics": []string{"*"}, "config": map[string]any{"url": receiver}}
	err = p.call(ctx, http.MethodPost, "/tenants/"+tenant+"/destinations", p.key, destination, nil)
	return target{Key: p.key, Path: "/publish", Lead: `{"tenant_id":"` + tenant + `","topic":"` + peerType + `","data":`}, err
}

// openConvoy takes the address with /api, and an outgoing project with its key.
func openConvoy(ctx context.Context, p peer, number int, receiver string) (to target, err error) {
	if p.project == "" {
		return to, errors.New("convoy needs project=ID")
	}
	path := "/v1/projects/" + url.PathEscape(p.project)
	var made struct {
		Data struct {
			ID string `json:"uid"`
		} `json:"data"`
	}
	name := fmt.Sprintf("bench %d %d", time.Now().UnixNano(), number)
	if err := p.call(ctx, http.MethodPost, path+"/endpoints", p.key, map[string]any{"name": name, "url": receiver}, &made); err != nil {
		return to, err
	}
	if made.Data.ID == "" {
		return to, errors.New("convoy's response names no endpoint")
	}
	subscription := map[string]any{
		"name":          name,
		"endpoint_id":   made.Data.ID,
		"filter_config": map[string]any{"event_types": []string{"*"}},
	}
	err = p.call(ctx, http.MethodPost, path+"/subscriptions", p.key, subscription, nil)
	return target{Key: p.key, Path: path + "/events", Lead: `{"endpoint_id":"` + made.Data.ID + `","event_type":"` + peerType + `","data":`}, err
}

// call sends JSON, and decodes a response where there is somewhere to put it. An error names no key.
func (p peer) call(ctx context.Context, method, path, key string, what, into any) error {
	var body io.Reader
	if what != nil {
		text, err := json.Marshal(what)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, p.url+path, body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %d: %.300s", method, path, response.StatusCode, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// parsePeer reads "svix url=http://... key=$SVIX_TOKEN pid=server:123 pid=postgresql:77+". A + counts the children,
// too. $NAME is read from the environment, so that no key is in a list of processes.
func parsePeer(text string, environ func(string) string) (p peer, err error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return p, errors.New("-peer is empty")
	}
	at := slices.IndexFunc(products, func(x product) bool { return x.name == fields[0] })
	if at < 0 {
		var names []string
		for _, x := range products {
			names = append(names, x.name)
		}
		return p, fmt.Errorf("-peer %q: the first word is the product, one of %s", fields[0], strings.Join(names, ", "))
	}
	p.product = products[at]
	for _, field := range fields[1:] {
		name, value, _ := strings.Cut(field, "=")
		value = os.Expand(value, environ)
		switch name {
		case "url":
			p.url = strings.TrimRight(value, "/")
		case "key":
			p.key = value
		case "project":
			p.project = value
		case "pid":
			used, err := parseUsed(value)
			if err != nil {
				return p, fmt.Errorf("-peer %s: %w", p.product.name, err)
			}
			p.processes = append(p.processes, used)
		default:
			return p, fmt.Errorf("-peer %s: there is no %q; use url, key, project, and pid", p.product.name, name)
		}
	}
	if u, err := url.Parse(p.url); err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") {
		return p, fmt.Errorf("-peer %s: url= must be an http or https address", p.product.name)
	}
	if p.key == "" {
		return p, fmt.Errorf("-peer %s: key= is missing, or its variable is empty", p.product.name)
	}
	return p, nil
}

func parseUsed(text string) (u usedBy, err error) {
	name, number, ok := strings.Cut(text, ":")
	number, u.family = strings.CutSuffix(number, "+")
	u.name = name
	if u.pid, err = strconv.Atoi(number); err != nil || !ok || name == "" || u.pid <= 0 {
		return u, fmt.Errorf("pid=%s: write NAME:PID, and NAME:PID+ to count its children", text)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/stat", u.pid)); err != nil {
		return u, fmt.Errorf("pid=%s: there is no such process", text)
	}
	return u, nil
}

// peerOptions are the flags of `bench peers`.
type peerOptions struct {
	self             string
	peers            []peer
	listen, receiver string
	tenants, c       int
	events           int64
	light            int           // events a second
	span             time.Duration // of the light and the half load
	out              io.Writer
}

// peerRow is what was measured of one product.
type peerRow struct {
	peer        peer
	perSecond   float64 // deliveries, as fast as events are accepted
	light, half result
	cpu         []float64 // µs for a delivery, of each process
	rss         []float64 // MiB, at most
	lost        int64
	doubled     int64
	refused     int64
	problem     string
}

// runPeers is `bench peers`: the same load against each product that is reachable.
func runPeers(args []string) error {
	o := &peerOptions{out: os.Stdout}
	flags := flag.NewFlagSet("peers", flag.ExitOnError)
	var texts []string
	flags.Func("peer", "a running product: 'posthorn url=http://127.0.0.1:8080 key=$KEY pid=posthorn:123 pid=postgresql:77+'; repeat it for several", func(text string) error {
		texts = append(texts, text)
		return nil
	})
	file := flags.String("file", "", "a file with such a line for each product; # begins a comment")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "where the receiver listens")
	flags.StringVar(&o.receiver, "receiver", "", "the receiver's URL as the products reach it; default: its address")
	flags.IntVar(&o.tenants, "tenants", 50, "tenants with an endpoint each")
	flags.IntVar(&o.c, "c", 32, "connections of the load generator")
	flags.Int64Var(&o.events, "events", 30000, "events of the measurement of throughput")
	flags.IntVar(&o.light, "light", 50, "events a second at light load")
	flags.DurationVar(&o.span, "span", 20*time.Second, "how long the light and the half load last")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *file != "" {
		lines, err := os.ReadFile(*file)
		if err != nil {
			return fmt.Errorf("-file: %w", err)
		}
		for line := range strings.Lines(string(lines)) {
			if line, _, _ = strings.Cut(line, "#"); strings.TrimSpace(line) != "" {
				texts = append(texts, line)
			}
		}
	}
	for _, text := range texts {
		p, err := parsePeer(text, os.Getenv)
		if err != nil {
			return err
		}
		o.peers = append(o.peers, p)
	}
	switch {
	case len(o.peers) == 0:
		return errors.New("name at least one product with -peer or -file; docs/performance.md shows how")
	case o.tenants < 1 || o.c < 1 || o.events < 1 || o.light < 1 || o.span <= 0:
		return errors.New("-tenants, -c, -events, -light and -span must be above 0")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o.self = self
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	return o.run(ctx)
}

func (o *peerOptions) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if strings.HasSuffix(o.listen, ":0") {
		free, err := freeAddress()
		if err != nil {
			return err
		}
		o.listen = free
	}
	s := &system{opts: &options{self: o.self}, dir: dir, stem: "peers", receiverAddr: o.listen}
	if s.receiver, err = s.startReceiver(ctx, o.listen, "-orders"); err != nil {
		return err
	}
	defer s.receiver.stop(time.Second)
	o.receiver = strings.TrimRight(cmp.Or(o.receiver, "http://"+o.listen), "/")
	raw, err := o.raw(ctx, s)
	if err != nil {
		return err
	}
	var rows []peerRow
	var failed []error
	for _, p := range o.peers {
		row, err := o.measure(ctx, s, p)
		if err != nil {
			// The other products are worth their time all the same.
			failed = append(failed, fmt.Errorf("%s: %w", p.product.name, err))
			continue
		}
		rows = append(rows, row)
	}
	if err := o.write(raw, rows); err != nil {
		return err
	}
	for _, r := range rows {
		if r.lost > 0 || r.doubled > 0 {
			failed = append(failed, fmt.Errorf("%s: %d lost, %d doubled", r.peer.product.name, r.lost, r.doubled))
		}
	}
	return errors.Join(failed...)
}

// raw is how many requests a second the generator posts straight to the receiver.
func (o *peerOptions) raw(ctx context.Context, s *system) (float64, error) {
	g, err := o.plan(s.dir, "raw", []target{{Lead: `{"data":`}})
	if err != nil {
		return 0, err
	}
	e, err := o.emit(ctx, s, g, "http://"+o.listen+"/", load{events: o.events, connections: o.c})
	return emittedResult(e).Ingest, err
}

func (o *peerOptions) plan(dir, name string, targets []target) (*group, error) {
	text, err := json.Marshal(targets)
	if err != nil {
		return nil, err
	}
	g := &group{targets: targets, fan: 1, plan: filepath.Join(dir, name+".json")}
	return g, os.WriteFile(g.plan, text, 0o600)
}

// emit runs the generator, whose events are known by their orders: not every product names an id.
func (o *peerOptions) emit(ctx context.Context, s *system, g *group, address string, l load) (e loadResult, err error) {
	cmd := exec.CommandContext(ctx, o.self, "load", "-orders", "-url", address, "-plan", g.plan, "-n", strconv.FormatInt(l.events, 10),
		"-from", strconv.FormatInt(l.from, 10), "-rate", strconv.Itoa(l.rate), "-c", strconv.Itoa(l.connections))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return e, fmt.Errorf("the load generator: %w", err)
	}
	return e, json.Unmarshal(out, &e)
}

// measure sets up a product and measures it at full, half and light load.
func (o *peerOptions) measure(ctx context.Context, s *system, p peer) (row peerRow, err error) {
	row = peerRow{peer: p, cpu: make([]float64, len(p.processes)), rss: make([]float64, len(p.processes))}
	var targets []target
	for i := range o.tenants {
		to, err := p.product.open(ctx, p, i, fmt.Sprintf("%s/%s/%d", o.receiver, p.product.name, i))
		if err != nil {
			return row, err
		}
		targets = append(targets, to)
	}
	g, err := o.plan(s.dir, p.product.name, targets)
	if err != nil {
		return row, err
	}
	for _, u := range p.processes {
		_ = resetPeak(u.pid) // without the right to it, the highest of the whole life is read
	}
	before := p.cpu()
	full, err := o.step(ctx, s, &row, g, load{events: o.events, connections: o.c})
	if err != nil {
		return row, err
	}
	row.perSecond = full.EndToEnd
	if full.Deliveries == 0 {
		return row, fmt.Errorf("no event was accepted: %s", full.Problem)
	}
	for i, used := range p.cpu() {
		row.cpu[i] = micros(used-before[i]) / float64(full.Deliveries)
	}
	half := max(int(full.EndToEnd/2), 1)
	span := o.span.Seconds()
	at := o.events
	halfEvents := max(int64(float64(half)*span), 1)
	if row.half, err = o.step(ctx, s, &row, g, load{events: halfEvents, from: at, rate: half, connections: o.c}); err != nil {
		return row, err
	}
	at += halfEvents
	row.light, err = o.step(ctx, s, &row, g, load{events: max(int64(float64(o.light)*span), 1), from: at, rate: o.light, connections: o.c})
	for i, u := range p.processes {
		row.rss[i] = u.rss()
	}
	return row, err
}

// step emits, waits until nothing more arrives, and adds what was lost and doubled to the row.
func (o *peerOptions) step(ctx context.Context, s *system, row *peerRow, g *group, l load) (r result, err error) {
	if err := s.resetReceiver(); err != nil {
		return r, err
	}
	e, err := o.emit(ctx, s, g, row.peer.url, l)
	if err != nil {
		return r, err
	}
	r = emittedResult(e)
	r.Deliveries = e.Accepted
	if err := o.await(ctx, s, r.Deliveries); err != nil {
		return r, err
	}
	var arrived arrivalStats
	if err := get("http://"+s.receiverAddr+"/stats", &arrived); err != nil {
		return r, err
	}
	if arrived.N > 0 {
		r.addArrivals(arrived, time.Duration(arrived.LastNs-e.BeganNs))
	}
	// A rejected emission was possibly stored (its response was lost), so more than acknowledged is no loss.
	received := arrived.N - arrived.Duplicates
	switch {
	case received < r.Deliveries:
		r.Lost = r.Deliveries - received
	case received == r.Deliveries && arrived.IDSum != e.IDSum:
		r.Lost = 1
	}
	row.lost += r.Lost
	row.doubled += arrived.Duplicates + max(received-r.Deliveries-e.Bad, 0) // beyond these it is of an earlier step
	row.refused += e.Bad
	row.problem = cmp.Or(row.problem, e.FirstBad)
	return r, nil
}

// settle is how long a product has to repeat what arrived already, before the next measurement.
const settle = 2 * time.Second

func (o *peerOptions) await(ctx context.Context, s *system, want int64) error {
	var last int64
	for since := time.Now(); time.Since(since) < stall; {
		var n int64
		if err := get("http://"+s.receiverAddr+"/count", &n); err != nil {
			return err
		}
		if n >= want {
			break
		}
		if n != last {
			last, since = n, time.Now()
		}
		if err := o.wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return o.wait(ctx, settle)
}

func (o *peerOptions) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// cpu is what each process has used so far.
func (p peer) cpu() []time.Duration {
	used := make([]time.Duration, len(p.processes))
	for i, u := range p.processes {
		used[i] = cpuTime(u.pid, u.family)
	}
	return used
}

// rss is the highest resident size, in MiB; with the family the sum of what each has at most.
func (u usedBy) rss() float64 {
	bytes, _ := peakRSS(u.pid) // 0: it has ended
	if u.family {
		for _, child := range childrenOf(u.pid) {
			own, _ := peakRSS(child)
			bytes += own
		}
	}
	return float64(bytes) / (1 << 20)
}

func childrenOf(pid int) (children []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		child, _ := strconv.Atoi(strings.Split(stat, "/")[2])
		if _, parent := cpuOf(child, false); parent == pid {
			children = append(children, child)
		}
	}
	return children
}

// write prints the one table.
func (o *peerOptions) write(raw float64, rows []peerRow) error {
	if _, err := fmt.Fprintf(o.out, "\n%s, %d tenants, %d events, %s\n\n", machine(), o.tenants, o.events, runtime.GOOS); err != nil {
		return err
	}
	table := tabwriter.NewWriter(o.out, 0, 0, 1, ' ', 0)
	fmt.Fprintf(table, "| product\t| raw hop/s\t| deliveries/s\t| CPU µs a delivery\t| p50/p99 ms at %d/s\t| half load\t| p50/p99 ms at half\t| RSS MiB\t| refused\t| lost\t| doubled\t|\n", o.light)
	fmt.Fprintln(table, "| ---\t| --:\t| --:\t| ---\t| --:\t| --:\t| --:\t| ---\t| --:\t| --:\t| --:\t|")
	for _, r := range rows {
		fmt.Fprintf(table, "| %s\t| %.0f\t| %.0f\t| %s\t| %.1f / %.1f\t| %d/s\t| %.1f / %.1f\t| %s\t| %d\t| %d\t| %d\t|\n",
			r.peer.product.name, raw, r.perSecond, r.each(r.cpu), r.light.P50, r.light.P99, int(r.perSecond/2), r.half.P50, r.half.P99, r.each(r.rss),
			r.refused, r.lost, r.doubled)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.problem != "" {
			fmt.Fprintf(o.out, "\n%s, first refusal: %.300s\n", r.peer.product.name, r.problem)
		}
	}
	return nil
}

// each names a figure of each process.
func (r peerRow) each(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = fmt.Sprintf("%s %.0f", r.peer.processes[i].name, v)
	}
	return strings.Join(parts, ", ")
}
