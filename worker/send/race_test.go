package send

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/egress"
)

// blackHole makes 127.0.0.last accept no connection and refuse none: its queue of connections is full.
func blackHole(t *testing.T, last byte, port int) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, last}, Port: port}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, last}), uint16(port)).String()
	for range 8 {
		c, err := net.DialTimeout("tcp", address, 200*time.Millisecond)
		if err != nil {
			return
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatal("the queue of connections is not full")
}

// racing is a receiver at 127.0.0.1, whose port is a black hole at 127.0.0.2 and refused at 127.0.0.3.
func racing(t *testing.T) (s *Sender, names *nameServer, port string) {
	t.Helper()
	server := newRaw(t, func(c net.Conn, _ int) { answerOK(c) })
	_, port, _ = net.SplitHostPort(server.Addr().String())
	number, _ := strconv.Atoi(port)
	blackHole(t, 2, number)
	policy, err := egress.ParseAllow("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	names = newNameServer(t)
	s = New(policy)
	s.guard.resolver = names.resolver()
	t.Cleanup(s.Close)
	return s, names, port
}

func TestASecondAddressIsReachedWhenTheFirstIsDead(t *testing.T) {
	t.Parallel()
	s, names, port := racing(t)
	for name, addrs := range map[string][]string{
		"dead-first.test.example": {"127.0.0.2", "127.0.0.1"},
		"two-dead.test.example":   {"127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.1"},
	} {
		names.set(name, addrs...)
		for i, body := range []string{`{}`, `{"a":"` + strings.Repeat("x", maxSmall) + `"}`} {
			began := time.Now()
			r, a := s.Deliver(t.Context(), someDestination(t, "http://"+net.JoinHostPort(name, port)), someMessage(body))
			if r.Status != 200 {
				t.Fatalf("%s: %+v %q", name, r, a.Error)
			}
			if took := time.Since(began); i == 0 && took >= connectTimeout {
				t.Errorf("%s: connected after %v, as if the dead address had used up the time", name, took)
			}
		}
		address := net.JoinHostPort(name, port)
		if worked, ok := s.guard.worked.get(address, time.Now()); !ok || worked.String() != "127.0.0.1" {
			t.Errorf("%s: the address that worked is not remembered: %v", name, worked)
		}
		if worked, ok := s.guard.worked.get(address, time.Now().Add(rememberedFor)); ok {
			t.Errorf("%s: %v is remembered for longer than it counts", name, worked)
		}
	}
	// Verification, and the clients that share the guard, dial by the same function.
	names.set("other.test.example", "127.0.0.2", "127.0.0.1")
	conn, err := s.guard.dial(t.Context(), "tcp", net.JoinHostPort("other.test.example", port))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

func TestTheAddressThatWorkedIsDialedFirst(t *testing.T) {
	t.Parallel()
	s, names, port := racing(t)
	names.set("dead-first.test.example", "127.0.0.2", "127.0.0.1")
	address := net.JoinHostPort("dead-first.test.example", port)
	for i := range 3 {
		conn, err := s.guard.dial(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		s.guard.fallback = time.Hour // from now on the first address that is dialed is the only one
		if i > 0 && conn.RemoteAddr().String() != "127.0.0.1:"+port {
			t.Errorf("connected to %s", conn.RemoteAddr())
		}
	}
}

func TestARefusedAddressIsFollowedByTheNextAtOnce(t *testing.T) {
	t.Parallel()
	s, names, port := racing(t)
	s.guard.fallback = time.Hour
	names.set("refused-first.test.example", "127.0.0.3", "127.0.0.1")
	r, a := s.Deliver(t.Context(), someDestination(t, "http://refused-first.test.example:"+port), someMessage(`{}`))
	if r.Status != 200 {
		t.Errorf("%+v %q", r, a.Error)
	}
	names.set("refused.test.example", "127.0.0.3", "127.0.0.4")
	r, a = s.Deliver(t.Context(), someDestination(t, "http://refused.test.example:"+port), someMessage(`{}`))
	if r.Failure != delivery.FailConnect || a.Error != "connection refused" {
		t.Errorf("%+v %q", r, a.Error)
	}
}

func TestEachAddressOfARaceIsCheckedWhenItIsDialed(t *testing.T) {
	t.Parallel()
	s, _, port := racing(t)
	number, _ := strconv.ParseUint(port, 10, 16)
	d := attempts{guard: s.guard, network: "tcp", port: uint16(number), check: s.guard.policy.CheckResolved}
	d.dialer = net.Dialer{ControlContext: d.control(nil)}
	listening := netip.MustParseAddr("127.0.0.1")
	for _, order := range [][]netip.Addr{
		{netip.MustParseAddr("169.254.169.254"), listening}, {netip.MustParseAddr("127.0.0.3"), netip.MustParseAddr("10.0.0.1"), listening},
	} {
		if _, conn, err := d.race(t.Context(), order); !errors.Is(err, egress.ErrBlocked) || conn != nil {
			t.Errorf("%v: %v, want a blocked address", order, err)
		}
	}
}

func TestTheLosersOfARaceAreClosed(t *testing.T) {
	t.Parallel()
	one, other := newRaw(t, func(net.Conn, int) {}), make(chan dialed, 2)
	for range 2 {
		conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", one.Addr().String())
		other <- dialed{conn: conn, err: err}
	}
	first := <-other
	other <- first
	closeLosers(other, 2)
	if _, err := first.conn.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a connection that lost is open: %v", err)
	}
}

func TestFamiliesAlternate(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"2000::1 2000::2 2000::3 1.1.1.1 1.1.1.2": "2000::1 1.1.1.1 2000::2 1.1.1.2 2000::3",
		"1.1.1.1 1.1.1.2 2000::1":                 "1.1.1.1 2000::1 1.1.1.2",
		"1.1.1.1 1.1.1.2":                         "1.1.1.1 1.1.1.2",
	} {
		var addrs []netip.Addr
		for _, a := range strings.Fields(given) {
			addrs = append(addrs, netip.MustParseAddr(a))
		}
		var got []string
		for _, a := range alternate(addrs) {
			got = append(got, a.String())
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %v", given, got)
		}
	}
}

func TestWhatWorkedIsRememberedWithinBounds(t *testing.T) {
	t.Parallel()
	var r rememberedAddresses
	now := time.Now()
	for i := range maxRemembered + 10 {
		r.set(strconv.Itoa(i), netip.MustParseAddr("1.1.1.1"), now)
	}
	if len(r.by) > maxRemembered {
		t.Errorf("%d addresses are remembered, want at most %d", len(r.by), maxRemembered)
	}
}

// A resolver with DNS64 adds the translator's address to names that have IPv4 alone.
func TestNamesBehindATranslatorAreDialedByItsAddress(t *testing.T) {
	t.Parallel()
	names := newNameServer(t)
	g := newGuard(egress.Policy{})
	g.resolver = names.resolver()
	blocked := func(address string) {
		t.Helper()
		var failed *dialError
		_, err := g.dial(t.Context(), "tcp", address)
		if !errors.As(err, &failed) || failed.failure != delivery.FailBlocked {
			t.Errorf("%s: %v, want a blocked address", address, err)
		}
	}
	for _, inside := range []string{"169.254.169.254", "10.0.0.1", "127.0.0.1"} {
		names.set("translated.test.example", "64:ff9b::"+inside)
		blocked("translated.test.example:443")
	}
	blocked("[64:ff9b::5db8:d822]:443")
	// What would be dialed for a public server is checked without opening a connection to it.
	names.set("translated.test.example", "93.184.216.34", "64:ff9b::93.184.216.34")
	addrs, err := g.resolve(t.Context(), nil, "translated.test.example")
	if err != nil || len(addrs) != 2 {
		t.Fatalf("%v %v", addrs, err)
	}
	hook := (&attempts{guard: g, check: g.policy.CheckResolved}).control(nil)
	for _, a := range addrs {
		if err := hook(t.Context(), "tcp", netip.AddrPortFrom(a, 443).String(), nil); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
}
