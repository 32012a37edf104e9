//go:build (e2e || soak) && unix

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds what a test waits for on a busy machine where no promise says less.
const patience = 2 * time.Minute

// process is a posthorn that runs, or has run.
type process struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	log   *lines
	ended chan struct{}

	url, metrics string // of the API and of the metrics address, once it runs
}

// place says where a program runs and as whom. The zero value: here, as the test does.
type place struct {
	program string // in the binary's stead; empty: the one that is asked for
	who     *syscall.Credential
	network int // a process in whose network namespace it runs; 0: this one's
}

// command is a program with its arguments at a place.
func (p place) command(name string, args ...string) *exec.Cmd {
	if p.program != "" {
		name = p.program
	}
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.who}
	if p.network != 0 {
		words := []string{"--target", strconv.Itoa(p.network), "--net"}
		if p.who != nil {
			words = append(words, "--setuid", fmt.Sprint(p.who.Uid), "--setgid", fmt.Sprint(p.who.Gid))
		}
		cmd = exec.Command("nsenter", append(append(words, "--", name), args...)...)
	}
	if p.who != nil {
		cmd.Dir = "/"
	}
	return cmd
}

// launch starts a process of the binary; it is killed with the test if it lasts that long.
func launch(t *testing.T, name string, environ []string, at place, args ...string) *process {
	t.Helper()
	if binary == "" {
		t.Fatal("POSTHORN_BIN names no binary: run `make e2e`")
	}
	p := &process{
		t:     t,
		name:  name,
		cmd:   at.command(binary, args...),
		log:   newLines(t, name),
		ended: make(chan struct{}),
	}
	p.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
		"POSTHORN_ADDR=127.0.0.1:0", "POSTHORN_METRICS_ADDR=127.0.0.1:0", "POSTHORN_EGRESS_ALLOW=127.0.0.0/8", "POSTHORN_WORKER_NAME=" + name,
	}, environ...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		p.log.end()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("%s said at last:\n%s", p.name, p.log.tail(30))
			if still := time.Duration(standstill.Load()); still > 0 {
				t.Logf("the machine stood still for %v while the tests ran: nothing that takes time can be trusted", still.Round(time.Second))
			}
		}
	})
	return p
}

// serving waits until a process runs and knows its addresses.
func (p *process) serving() *process {
	p.t.Helper()
	var said struct {
		URL     string `json:"url"`
		Metrics string `json:"metrics"`
	}
	if err := json.Unmarshal([]byte(p.log.await(p.t, `"posthorn runs"`)), &said); err != nil {
		p.t.Fatal(err)
	}
	p.url, p.metrics = said.URL, strings.TrimSuffix(said.Metrics, "/metrics")
	return p
}

// ready waits until a process says that it can do its work.
func (p *process) ready() *process {
	p.t.Helper()
	p.serving()
	eventually(p.t, patience, p.name+" is ready", func() bool { return status(p.metrics+"/readyz") == http.StatusOK })
	return p
}

// status asks an address and returns the status of its answer; 0: none.
func status(url string) int {
	client := http.Client{Timeout: 10 * time.Second}
	res, err := client.Get(url)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// kill ends a process as a power cut would, and returns when it is gone.
func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// stop ends a process as an operator does, and returns its exit code.
func (p *process) stop() int {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s does not stop", p.name)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// command runs a command of the binary that must succeed, and reads the JSON that it prints.
func command(t *testing.T, environ []string, at place, into any, args ...string) {
	t.Helper()
	cmd := at.command(binary, args...)
	cmd.Dir = "/"
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, environ...)
	var said bytes.Buffer
	cmd.Stderr = &said
	printed, err := cmd.Output()
	if err != nil {
		t.Fatalf("posthorn %s: %v\n%s%s", strings.Join(args, " "), err, printed, said.String())
	}
	if err := json.Unmarshal(printed, into); err != nil {
		t.Fatalf("posthorn %s printed %s: %v", strings.Join(args, " "), printed, err)
	}
}

// lines is what a process has written, line by line.
type lines struct {
	mu   sync.Mutex
	more *sync.Cond
	all  []string
	rest []byte
	done bool
	copy *os.File // nil: not kept
}

func newLines(t *testing.T, name string) *lines {
	l := &lines{}
	l.more = sync.NewCond(&l.mu)
	if dir := os.Getenv("POSTHORN_E2E_LOGS"); dir != "" {
		f, err := os.OpenFile(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "_")+"."+name+".log"),
			os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		l.copy = f
	}
	return l
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.copy != nil {
		_, _ = l.copy.Write(b)
	}
	l.rest = append(l.rest, b...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			break
		}
		l.all = append(l.all, string(line))
		l.rest = append([]byte(nil), rest...)
	}
	l.more.Broadcast()
	return len(b), nil
}

func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = true
	l.more.Broadcast()
	if l.copy != nil {
		_ = l.copy.Close()
		l.copy = nil
	}
}

// await waits for a line that holds a text.
func (l *lines) await(t *testing.T, holding string) string {
	t.Helper()
	late := false
	timer := time.AfterFunc(patience+time.Minute, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		late = true
		l.more.Broadcast()
	})
	defer timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for seen := 0; ; l.more.Wait() {
		for ; seen < len(l.all); seen++ {
			if strings.Contains(l.all[seen], holding) {
				return l.all[seen]
			}
		}
		if l.done || late {
			t.Fatalf("no line with %q came; it said\n%s", holding, strings.Join(l.all, "\n"))
		}
	}
}

// everything is a copy of all lines.
func (l *lines) everything() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.all...)
}

// count counts the lines that hold a text.
func (l *lines) count(holding string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, holding) {
			n++
		}
	}
	return n
}

// whole is every line as it came.
func (l *lines) whole() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

// tail is the last lines, cut, without repetitions and those about single attempts.
func (l *lines) tail(most int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var kept []string
	last := ""
	for _, line := range l.all {
		_, message, _ := strings.Cut(line, `"msg":`)
		message, _, _ = strings.Cut(message, ",")
		if message == `"attempt"` || message != "" && message == last {
			continue
		}
		last = message
		if len(line) > 300 {
			line = line[:300] + "..."
		}
		kept = append(kept, line)
	}
	return strings.Join(kept[max(0, len(kept)-most):], "\n") + string(l.rest)
}

// metric sums the samples of a metric over its labels.
func (p *process) metric(name string) (sum float64) {
	p.t.Helper()
	res, err := http.Get(p.metrics + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	scanner := bufio.NewScanner(res.Body)
	for scanner.Scan() {
		rest, found := strings.CutPrefix(scanner.Text(), name)
		if !found || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		var value float64
		if err := json.Unmarshal([]byte(rest[strings.LastIndex(rest, " ")+1:]), &value); err != nil {
			p.t.Fatalf("%s%s: %v", name, rest, err)
		}
		sum += value
	}
	return sum
}

// eventually polls until the answer is yes.
func eventually(t *testing.T, within time.Duration, what string, yes func() bool) time.Duration {
	t.Helper()
	started := startWatch()
	for !yes() {
		if started.passed() > within {
			t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return started.passed()
}
