package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"posthorn/tools/dbtest"
	"posthorn/tools/schematest"
)

// The processes of these tests are this test binary again, as posthorn.
const processVariable = "POSTHORN_TEST_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(processVariable) != "" {
		main()
		return
	}
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(strconv.Itoa(max(6, runtime.GOMAXPROCS(0)))) // most of these tests wait for processes
	}
	// Many programs run within this process. A limit that one of them sets for its own memory would stay when it ends,
	// and the collector would do nothing but collect.
	if os.Getenv("GOMEMLIMIT") == "" {
		_ = os.Setenv("GOMEMLIMIT", "off")
	}
	os.Exit(dbtest.Main(m))
}

// patience bounds what a test waits for on a busy machine; nothing waits that long.
const patience = time.Minute

// newDatabase is a migrated database of the test's own, as the environment that names it.
func newDatabase(t *testing.T) []string {
	t.Helper()
	return databaseEnvironment(schematest.Clone(t))
}

func databaseEnvironment(url string) []string {
	return []string{"POSTHORN_DATABASE_URL=" + url, "POSTHORN_MASTER_KEY=" + testMasterKey}
}

// anyPorts lets the system choose the addresses.
var anyPorts = []string{"POSTHORN_ADDR=127.0.0.1:0", "POSTHORN_METRICS_ADDR=127.0.0.1:0"}

// result is what a command printed and how it ended.
type result struct {
	code           int
	stdout, stderr string
}

// command runs a command of the line within the test's process.
func command(t *testing.T, environ []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	a := &app{program: "posthorn", args: args, environ: environ, stdout: &stdout, stderr: &stderr}
	code := a.run(ctx)
	return result{code, stdout.String(), stderr.String()}
}

// succeed runs a command that must succeed and reads the JSON that it prints, if any is wanted.
func succeed(t *testing.T, environ []string, into any, args ...string) string {
	t.Helper()
	r := command(t, environ, args...)
	if r.code != exitOK {
		t.Fatalf("posthorn %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(r.stdout), into); err != nil {
			t.Fatalf("posthorn %s printed %s: %v", strings.Join(args, " "), r.stdout, err)
		}
	}
	return r.stdout
}

// process is a posthorn that runs.
type process struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr *output
	ended          chan struct{}
}

// launch starts a process; it is killed with the test if it lasts that long.
func launch(t *testing.T, environ []string, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return launchBinary(t, self, environ, args...)
}

// launchBinary starts a process of a binary.
func launchBinary(t *testing.T, binary string, environ []string, args ...string) *process {
	t.Helper()
	p := &process{
		t:      t,
		cmd:    exec.Command(binary, args...),
		stdout: newOutput(),
		stderr: newOutput(),
		ended:  make(chan struct{}),
	}
	p.cmd.Env = append([]string{processVariable + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, environ...)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		p.stdout.end()
		p.stderr.end()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("posthorn %s said:\n%s%s", strings.Join(args, " "), p.stdout, p.stderr)
		}
	})
	return p
}

// addresses is the line that a process logs when it serves.
type addresses struct {
	URL     string `json:"url"`
	Metrics string `json:"metrics"`
}

// serving waits until the process serves.
func (p *process) serving() (a addresses) {
	p.t.Helper()
	line := p.stderr.line(p.t, `"posthorn runs"`)
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		p.t.Fatal(err)
	}
	return a
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// exit waits for the process's end and returns its code.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatal("the process does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// output collects a process's output and signals a line that a test waits for.
type output struct {
	mu   sync.Mutex
	more *sync.Cond
	text bytes.Buffer
	done bool
}

func newOutput() *output {
	o := &output{}
	o.more = sync.NewCond(&o.mu)
	return o
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.more.Broadcast()
	return o.text.Write(b)
}

func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done = true
	o.more.Broadcast()
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// line waits for a complete line that holds a text.
func (o *output) line(t *testing.T, holding string) string {
	t.Helper()
	late := time.AfterFunc(patience, o.end)
	defer late.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for line := range strings.Lines(o.text.String()) {
			if strings.HasSuffix(line, "\n") && strings.Contains(line, holding) {
				return line
			}
		}
		if o.done {
			t.Fatalf("no line with %q came:\n%s", holding, o.text.String())
		}
		o.more.Wait()
	}
}
