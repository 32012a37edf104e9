// Package proxytest runs real egress proxies for tests: Squid for HTTP CONNECT, and Dante for SOCKS5. Both ask for the
// user name and the password of this package, and refuse connections to Refused.
package proxytest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"posthorn/tools/need"
)

// The credentials of the proxies, and an address to which their rules refuse connections.
const (
	User     = "ada"
	Password = "canary-proxy-password"
	Refused  = "127.0.0.2"
)

// passwordHash is Password as /etc/shadow has it.
const passwordHash = "$6$posthorn$WBx0doNUNPIiOweROdqXwsC/PhYLyjwIuVQdtfeIZ9K2yjnSM7LgJY73WVzcJQ9ODi89Kks4I4715CbHY1vIb0" //nolint:gosec // of a test

// Proxy is a running proxy.
type Proxy struct {
	Address string
	command *exec.Cmd
}

// Stop ends the proxy with its processes.
func (p *Proxy) Stop() {
	_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
	_ = p.command.Wait()
}

// Freeze stops the proxy's processes without closing a connection.
func (p *Proxy) Freeze() { _ = syscall.Kill(-p.command.Process.Pid, syscall.SIGSTOP) }

// started counts the Squids of this process: each has a name of its own for its shared memory.
var started atomic.Int32

// Squid runs Squid.
func Squid(t testing.TB) *Proxy {
	t.Helper()
	path := program(t, "squid")
	dir, address := folder(t), freeAddress(t)
	write(t, dir, "auth.sh", `while read -r user password; do
  if [ "$user" = `+User+` ] && [ "$password" = `+Password+` ]; then echo OK; else echo ERR; fi
done
`)
	conf := write(t, dir, "squid.conf", fmt.Sprintf(`http_port %s
pid_filename none
cache deny all
cache_log /dev/null
access_log none
netdb_filename none
coredump_dir %s
shutdown_lifetime 0 seconds
auth_param basic program /bin/sh %s/auth.sh
auth_param basic children 1
acl known proxy_auth REQUIRED
acl refused dst %s
http_access deny refused
http_access allow known
http_access deny all
`, address, dir, dir, Refused))
	name := fmt.Sprintf("posthorn%dx%d", os.Getpid(), started.Add(1))
	t.Cleanup(func() {
		left, _ := filepath.Glob("/dev/shm/" + name + "-*")
		for _, file := range left {
			_ = os.Remove(file)
		}
	})
	return run(t, address, exec.Command(path, "-N", "-n", name, "-f", conf)) //nolint:noctx // it ends with the test
}

// Dante runs Dante. It knows the users of the machine, so it sees others in a mount namespace of its own.
func Dante(t testing.TB) *Proxy {
	t.Helper()
	need.Root(t)
	need.Programs(t, "unshare", "mount")
	path := program(t, "danted", "sockd")
	dir, address := folder(t), freeAddress(t)
	host, port, _ := net.SplitHostPort(address)
	users, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	passwd := write(t, dir, "passwd", strings.TrimRight(string(users), "\n")+"\n"+User+":x:64999:64999::/nonexistent:/usr/sbin/nologin\n")
	shadow := write(t, dir, "shadow", "root:*:19000:0:99999:7:::\n"+User+":"+passwordHash+":19000:0:99999:7:::\n")
	conf := write(t, dir, "danted.conf", fmt.Sprintf(`logoutput: %s/log
internal: %s port = %s
external: 127.0.0.1
clientmethod: none
socksmethod: username
user.privileged: root
user.unprivileged: root
client pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }
socks block { from: 0.0.0.0/0 to: %s/32 }
socks pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }
`, dir, host, port, Refused))
	script := "mount --bind " + passwd + " /etc/passwd && mount --bind " + shadow + " /etc/shadow && exec " + path + " -f " + conf
	return run(t, address, exec.Command("unshare", "-m", "sh", "-c", script)) //nolint:noctx // it ends with the test
}

// program finds the first of some programs; Debian has them in /usr/sbin.
func program(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		for _, path := range []string{name, "/usr/sbin/" + name} {
			if found, err := exec.LookPath(path); err == nil {
				return found
			}
		}
	}
	need.Missing(t, names[0], "Install it to run this test.")
	return ""
}

// folder is a folder that other users can read: Squid gives up the rights of root.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "posthorn-proxy-") //nolint:usetesting // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t testing.TB, dir, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // see folder
		t.Fatal(err)
	}
	return path
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return "127.0.0.1:" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// run starts a proxy and waits until it accepts connections.
func run(t testing.TB, address string, command *exec.Cmd) *Proxy {
	t.Helper()
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said strings.Builder
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Address: address, command: command}
	t.Cleanup(p.Stop)
	for until := time.Now().Add(30 * time.Second); ; {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
			return p
		}
		if time.Now().After(until) {
			p.Stop()
			t.Fatalf("%s doesn't listen: %s", command.Path, said.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
}
