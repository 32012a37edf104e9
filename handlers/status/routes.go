// Package status serves the page that compares the platform's delivery performance with its objectives, and the source
// addresses of its requests.
package status

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/db/ledger"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/home"
	"posthorn/domain/settings"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// Deps are the dependencies of the handlers.
type Deps struct {
	DB     *db.DB
	Egress []netip.Prefix // the source addresses of requests to endpoints; nil: the operators publish none
	Now    func() time.Time
	Homes  func() []home.Seen // the known state, without asking; nil: the installation has no homes
}

type status struct {
	Deps
	mu     sync.Mutex
	hours  []ledger.StatusHour
	read   time.Time // when hours was read; zero: never
	failed time.Time // when the last read failed
	reason error     // why
}

// The numbers on the page and the cost of reading them. One read serves all requests, because the page can be public.
const (
	hoursShown = 12
	readEvery  = time.Minute
	readWithin = 2 * time.Second  // one read of the database
	retryAfter = 10 * time.Second // after a failed read
	oldest     = 15 * time.Minute // how old numbers can be if newer ones can't be read
)

// Routes is the route table.
func Routes(d Deps) []handlers.Route {
	s := &status{Deps: d}
	open := handlers.Access{Public: true}
	return []handlers.Route{
		{Method: http.MethodGet, Path: "/status", Access: open, Handler: s.show},
		{Method: http.MethodGet, Path: "/.well-known/posthorn/egress.json", Access: open, Handler: s.egress},
	}
}

var errOff = fault.New(fault.NotFound, "status_page_off", "This server has no status page.")

// show responds to those who can see the page: everybody, signed-in people, or nobody, as operators chose.
func (s *status) show(c *handlers.Call) error {
	platform, err := accounts.Platform(c.Ctx(), s.DB)
	if err != nil {
		return err
	}
	switch settings.Word(settings.StatusPage, platform) {
	case settings.Off:
		return errOff
	case settings.SignedIn:
		known := false
		for _, kind := range []account.Kind{account.Person, account.Portal, account.Operator} {
			session, err := c.SignedInAs(kind)
			if err != nil {
				return err
			}
			known = known || session != nil && !session.Pending
		}
		if !known {
			return c.Redirect("/sign-in?next=%2Fstatus")
		}
	}
	hours, err := s.recent(c.Ctx())
	if err != nil {
		return err
	}
	addresses, err := s.addresses(c)
	if err != nil {
		return err
	}
	v := pages.StatusView{Shell: c.Shell("Status", ""), Published: len(addresses) > 0}
	for i := len(hours) - 1; i >= 0; i-- {
		h := hours[i]
		v.Hours = append(v.Hours, pages.StatusHour{
			Hour:     h.Hour,
			P50:      h.P50,
			P99:      h.P99,
			Measured: h.Measured > 0,
			Share:    float64(h.OK) / float64(max(h.Attempts, 1)),
		})
	}
	if s.Homes != nil {
		v.Homes = s.Homes()
	}
	return c.Render(http.StatusOK, pages.Status(v))
}

// recent are the last hours, read once a minute for all requests, by one request at a time. A failed read is repeated
// after some seconds. The earlier numbers are shown for a while.
func (s *status) recent(ctx context.Context) ([]ledger.StatusHour, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	since := func(at time.Time) time.Duration { return now.Sub(at).Abs() }
	if since(s.read) < readEvery {
		return s.hours, nil
	}
	if since(s.failed) >= retryAfter {
		// The result is for all requests: the read continues even if its caller has disconnected.
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), readWithin)
		defer cancel()
		hours, err := ledger.Status(within, s.DB, now.UTC().Truncate(time.Hour).Add(-(hoursShown-1)*time.Hour))
		if err == nil {
			s.hours, s.read = hours, now
			return hours, nil
		}
		s.failed, s.reason = now, err
	}
	if since(s.read) < oldest {
		return s.hours, nil
	}
	return nil, s.reason
}

var errNoEgress = fault.New(fault.NotFound, "egress_unpublished", "The operator of this server doesn't publish source addresses. Ask them before you change a firewall.")

// addresses are the source addresses of requests: those of the network and of the egress proxies.
func (s *status) addresses(c *handlers.Call) ([]string, error) {
	all := []string{}
	for _, p := range s.Egress {
		all = append(all, p.String())
	}
	proxies, err := endpoints.PublishedAddresses(c.Ctx(), s.DB)
	return append(all, proxies...), err
}

// egress lists the addresses for receivers' firewalls.
func (s *status) egress(c *handlers.Call) error {
	addresses, err := s.addresses(c)
	if err != nil {
		return err
	}
	if len(addresses) == 0 {
		return errNoEgress
	}
	c.Writer.Header().Set("Cache-Control", "public, max-age=3600")
	c.Writer.Header().Set("Access-Control-Allow-Origin", "*")
	return c.Answer(http.StatusOK, map[string][]string{"addresses": addresses})
}
