//go:build (e2e || soak) && unix

package e2e

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"posthorn/tools/need"
)

// typed are the commands of a section of README.md, block by block, as a reader would copy them.
func typed(t *testing.T, heading string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("README.md has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for _, m := range regexp.MustCompile("(?s)\n```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// terminal is a shell that a person types into.
type terminal struct {
	t     *testing.T
	stdin io.Writer
	log   *lines
}

// openTerminal starts a shell in the room, at the top of the sources. Whatever it started ends with the test.
func openTerminal(t *testing.T, r *room, name string) *terminal {
	t.Helper()
	term := &terminal{t: t, log: newLines(t, name)}
	cmd := r.command("bash", "--noprofile", "--norc")
	cmd.Dir = root(t)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	term.stdin = stdin
	cmd.Stdout, cmd.Stderr = term.log, term.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		term.log.end()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		_ = stdin.Close()
		<-ended
		if t.Failed() {
			t.Logf("the terminal %s showed:\n%s", name, term.log.tail(100))
		}
	})
	return term
}

func (term *terminal) typeIn(text string) {
	term.t.Helper()
	if _, err := io.WriteString(term.stdin, text); err != nil {
		term.t.Fatal(err)
	}
}

// TestTheQuickStartOfTheREADMEEndsWithAVerifiedWebhook types what README.md says, word by word.
func TestTheQuickStartOfTheREADMEEndsWithAVerifiedWebhook(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	start, first := typed(t, "Start"), typed(t, "Your first webhook with curl")
	if len(start) != 1 || len(first) != 6 {
		t.Fatalf("README.md has %d and %d blocks of commands; this test expects 1 and 6", len(start), len(first))
	}
	if !strings.HasPrefix(start[0], "make run") {
		t.Fatalf("README.md begins with %q", start[0])
	}
	server := openTerminal(t, r, "server")
	server.typeIn(start[0])
	server.log.await(t, `"posthorn runs"`)
	user := openTerminal(t, r, "user")
	// shown is what the terminal showed last of a kind, which a reader puts in the place of the dots.
	shown := func(pattern string) string {
		t.Helper()
		var found string
		eventually(t, patience, "the terminal shows "+pattern, func() bool {
			all := regexp.MustCompile(pattern).FindAllString(user.log.whole(), -1)
			if len(all) > 0 {
				found = all[len(all)-1]
			}
			return found != ""
		})
		return found
	}
	user.typeIn(first[0])
	user.typeIn(strings.ReplaceAll(first[1], "phk_...", shown(`phk_[A-Za-z0-9_]+`)) + "echo\n")
	secret := shown(`whsec_[A-Za-z0-9+/=]+`)
	endpoint := shown(`ep_[a-z0-9]{26}`)
	user.typeIn("\n" + strings.ReplaceAll(first[2], "whsec_...", secret))
	user.log.await(t, "waiting for webhooks")
	user.typeIn(strings.ReplaceAll(first[3], "ep_...", endpoint) + "echo\n")
	user.log.await(t, `"state": "pending"`)
	user.typeIn(first[4] + "echo\n")
	user.log.await(t, `order.completed {"order_id":"ord_1","total":4200}`)
	eventually(t, patience, "the delivery is shown as delivered", func() bool {
		from := user.log.count(`"next_cursor"`)
		user.typeIn(first[5] + "echo\n")
		eventually(t, patience, "the list is shown", func() bool { return user.log.count(`"next_cursor"`) > from })
		return user.log.count(`"status": "delivered"`) > 0
	})
	for _, field := range shownFields(t) {
		if user.log.count(field) == 0 {
			t.Errorf("README.md shows a response with %s, and no response had it", field)
		}
	}
	for _, line := range shownLines(t) {
		if user.log.count(line) == 0 {
			t.Errorf("README.md shows the line %q, and no command printed it", line)
		}
	}
	user.typeIn("link=$(bin/posthorn open); curl -s -o /dev/null -w 'opened: %{http_code} %{redirect_url}\\n' \"$link\"; " +
		"curl -s -L -c /dev/null \"$(bin/posthorn open)\" | grep -o '<h1[^>]*>Overview' | sed 's/^/shown: /'\n")
	user.log.await(t, "opened: 303 http://127.0.0.1:8080/")
	user.log.await(t, "shown: <h1")
	if n := user.log.count("rejected: "); n != 0 {
		t.Errorf("the receiver rejected %d requests", n)
	}
}

// A room is a place of its own for what README.md says literally: its ports and its data directory belong to nobody
// else there. Root makes one of Linux's namespaces; others, and where there are none, use the machine as it is, with a
// home of their own, if its ports are free.
type room struct {
	environ []string
	attr    *syscall.SysProcAttr
	enter   []string // the command before every command; empty: none
}

// roomVariable tells this test binary that it is to furnish a room and keep it.
const roomVariable = "POSTHORN_E2E_ROOM"

func newRoom(t *testing.T) *room {
	t.Helper()
	environ := os.Environ()
	for _, name := range []string{"GOFLAGS", "GOMODCACHE", "GOCACHE", "GOPATH"} { // as this machine has them
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		environ = append(environ, name+"="+strings.TrimSpace(string(out)))
	}
	environ = append(environ, "HOME="+dataDir(t), "XDG_DATA_HOME=")
	if own := ownRoom(t, environ); own != nil {
		return own
	}
	for _, address := range []string{"127.0.0.1:8080", "127.0.0.1:9000", "127.0.0.1:9090"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			need.Missing(t, "a free port", "%s is in use, and no namespace can be made for what README.md says: %v", address, err)
		}
		_ = l.Close()
	}
	if os.Getuid() == 0 {
		environ = append(environ, "POSTHORN_DATA_DIR="+dataDir(t))
	}
	return &room{environ: environ, attr: &syscall.SysProcAttr{Setpgid: true}}
}

func (r *room) command(name string, args ...string) *exec.Cmd {
	line := append(append([]string{}, r.enter...), append([]string{name}, args...)...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env, cmd.SysProcAttr = r.environ, r.attr
	return cmd
}

// shownFields are the names of the fields, with quotes and colon, in the responses that README.md shows.
func shownFields(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name := regexp.MustCompile(`^\s*("[a-z_]+":)`).FindStringSubmatch(line); name != nil {
			names = append(names, name[1])
		}
	}
	if len(names) < 10 {
		t.Errorf("README.md shows only the fields %q", names)
	}
	return names
}

// shownLines are the lines of output that README.md shows in its walk, up to their dots, without JSON.
func shownLines(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, walk, _ := strings.Cut(string(text), "\n## Your first webhook with curl\n")
	walk, _, _ = strings.Cut(walk, "\n## ")
	for _, block := range regexp.MustCompile("(?s)\n```([a-z]*)\n(.*?)\n```").FindAllStringSubmatch(walk, -1) {
		if block[1] != "" {
			continue // commands
		}
		for line := range strings.SplitSeq(block[2], "\n") {
			if line, _, _ = strings.Cut(line, "..."); line != "" && !strings.HasPrefix(line, "{") {
				lines = append(lines, line)
			}
		}
	}
	if len(lines) < 5 {
		t.Errorf("README.md shows only the lines %q", lines)
	}
	return lines
}
