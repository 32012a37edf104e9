//go:build e2e || soak

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"posthorn/tools/need"
)

// lan is a network of this test alone: a switch, and nodes on it that have an address each. All of it is in network
// namespaces that go with the test, so that nothing of it is seen outside, nor can it reach anything.
type lan struct {
	t     *testing.T
	hub   namespace
	net   string // the first three numbers of its addresses
	nodes int
}

// node is a machine on a lan, as far as the network is concerned.
type node struct {
	l    *lan
	name string
	addr string
	ns   namespace
}

// namespace is a network namespace that a process of its own keeps.
type namespace struct {
	pid    int
	handle *os.File
}

var lans atomic.Int64

// newLAN makes a switch. The test is skipped, with the reason, where that is not possible.
func newLAN(t *testing.T) *lan {
	t.Helper()
	need.Root(t)
	need.Programs(t, "ip", "nft", "nsenter")
	l := &lan{t: t, net: fmt.Sprintf("10.99.%d", lans.Add(1))}
	var err error
	if l.hub, err = newNamespace(t); err != nil {
		need.Missing(t, "a network namespace", "%v", err)
	}
	if text, err := l.hub.shell(`
		ip link add lan type bridge
		ip link set lan up
		nft add table bridge cuts
		nft 'add set bridge cuts pairs { type ipv4_addr . ipv4_addr; }'
		nft 'add chain bridge cuts forward { type filter hook forward priority 0; }'
		nft add rule bridge cuts forward ip saddr . ip daddr @pairs drop`); err != nil {
		need.Missing(t, "a bridge with nftables", "%v %s", err, text)
	}
	return l
}

func newNamespace(t *testing.T) (namespace, error) {
	keeper := exec.Command("cat") // until its input ends, with the test or with this process
	keeper.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setpgid: true}
	open, err := keeper.StdinPipe()
	if err != nil {
		return namespace{}, err
	}
	if err := keeper.Start(); err != nil {
		return namespace{}, err
	}
	t.Cleanup(func() {
		_ = open.Close()
		_ = keeper.Wait()
	})
	handle, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", keeper.Process.Pid))
	if err != nil {
		return namespace{}, err
	}
	t.Cleanup(func() { _ = handle.Close() })
	return namespace{pid: keeper.Process.Pid, handle: handle}, nil
}

func (n namespace) shell(script string) (string, error) {
	text, err := place{network: n.pid}.command("sh", "-ec", script).CombinedOutput()
	return string(bytes.TrimSpace(text)), err
}

// within does something in the namespace: a socket belongs to the one that it was made in, whoever uses it afterwards.
func (n namespace) within(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		if err := unix.Setns(int(n.handle.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- do()
	}()
	return <-done
}

// node plugs a machine in.
func (l *lan) node(name string) *node {
	l.t.Helper()
	l.nodes++
	n := &node{l: l, name: name, addr: fmt.Sprintf("%s.%d", l.net, l.nodes)}
	var err error
	if n.ns, err = newNamespace(l.t); err != nil {
		l.t.Fatal(err)
	}
	if text, err := l.hub.shell(fmt.Sprintf("ip link add port%d type veth peer name eth0 netns %d\nip link set port%d master lan up", l.nodes, n.ns.pid, l.nodes)); err != nil {
		l.t.Fatalf("%s: %v %s", name, err, text)
	}
	if text, err := n.ns.shell("ip link set lo up\nip addr add " + n.addr + "/24 dev eth0\nip link set eth0 up"); err != nil {
		l.t.Fatalf("%s: %v %s", name, err, text)
	}
	return n
}

// reachedFrom lets this process's own clients reach the nodes of the lan as if they ran on that one.
func (l *lan) reachedFrom(from *node) {
	for i := range l.nodes {
		host := fmt.Sprintf("%s.%d", l.net, i+1)
		ways.Store(host, func(ctx context.Context, network, address string) (conn net.Conn, err error) {
			err = from.ns.within(func() error {
				conn, err = plainDialer.DialContext(ctx, network, address)
				return err
			})
			return conn, err
		})
		l.t.Cleanup(func() { ways.Delete(host) })
	}
}

// listen takes connections to a node.
func (n *node) listen() (listener net.Listener) {
	n.l.t.Helper()
	if err := n.ns.within(func() (err error) {
		listener, err = net.Listen("tcp", n.addr+":0")
		return err
	}); err != nil {
		n.l.t.Fatalf("%s: %v", n.name, err)
	}
	return listener
}

// place is where programs of the node run.
func (n *node) place() place { return place{network: n.ns.pid} }

// environ says where a process of the node listens.
func (n *node) environ() []string {
	return []string{"POSTHORN_ADDR=" + n.addr + ":8080", "POSTHORN_METRICS_ADDR=" + n.addr + ":9090"}
}

// cut drops every packet between two nodes, without a word to either. heal ends it.
func (l *lan) cut(a, b *node)  { l.pairs("add", a, b) }
func (l *lan) heal(a, b *node) { l.pairs("delete", a, b) }

func (l *lan) pairs(what string, a, b *node) {
	l.t.Helper()
	if text, err := l.hub.shell(fmt.Sprintf("nft '%s element bridge cuts pairs { %s . %s, %s . %s }'", what, a.addr, b.addr, b.addr, a.addr)); err != nil {
		l.t.Fatalf("%s %s, %s: %v %s", what, a.name, b.name, err, text)
	}
}
