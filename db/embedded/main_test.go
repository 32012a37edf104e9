package embedded

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// The tests' child processes are this test binary again, with a scene to play.
const (
	sceneVariable = "POSTHORN_EMBEDDED_SCENE"
	dirVariable   = "POSTHORN_EMBEDDED_DIR"
)

func TestMain(m *testing.M) {
	if ChildMain() {
		return
	}
	if scene := os.Getenv(sceneVariable); scene != "" {
		if err := play(scene); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(runTests(m))
}

// programs is the PostgreSQL of the tests: this machine's, or one that is fetched once for all of them.
var programs binaries

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "posthorn")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = os.Chmod(dir, 0o755)
	}
	var l *layout
	if err == nil {
		l, err = prepare(filepath.Join(dir, "d"))
	}
	if err == nil {
		defer l.removeForeignSockets()
		var cfg Config
		if cfg, err = (Config{DataDir: dir}).withDefaults(); err == nil {
			programs, err = l.findBinaries(context.Background(), cfg, 0)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "no PostgreSQL to test with:", err)
		return 1
	}
	return m.Run()
}

// scene is what a child reports when its cluster is ready.
type scene struct {
	URL   string
	PID   int
	Owned bool
	Dir   string
}

// play starts or attaches, reports on standard output, and closes when its standard input ends.
func play(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cfg := Config{
		DataDir:  os.Getenv(dirVariable),
		Log:      slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Settings: small(),
	}
	begin := Start
	if name == "attach" {
		begin = Attach
	}
	c, err := begin(ctx, cfg)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(scene{c.URL(), c.PID(), c.owns(), c.DataDir()}); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return c.Close(ctx)
}

// small keeps the tests' many servers light.
func small() map[string]string { return map[string]string{"shared_buffers": "16MB"} }

// testDir is a data directory that the server's account can reach: t.TempDir's parent is closed to all but its owner.
func testDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != filepath.Clean(os.TempDir()) && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "d")
}

func testContext(t *testing.T) context.Context {
	// Long: with the race detector on a busy machine, unpacking an archive takes a minute.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func testConfig(t *testing.T, dir string) Config {
	return Config{
		DataDir:  dir,
		Log:      slog.New(slog.NewTextHandler(t.Output(), nil)),
		Settings: small(),
		places:   &places{path: programs.dir, offline: true},
	}
}

func start(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	c, err := Start(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// ask runs a query with one text as its result.
func ask(t *testing.T, url, query string, args ...any) string {
	t.Helper()
	text, err := tryAsk(testContext(t), url, query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return text
}

func tryAsk(ctx context.Context, url, query string, args ...any) (string, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var text string
	return text, conn.QueryRow(ctx, query, args...).Scan(&text)
}

func run(t *testing.T, url string, statements ...string) {
	t.Helper()
	ctx := testContext(t)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// child is another Posthorn process.
type child struct {
	scene
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

func spawn(t *testing.T, name, dir string, change ...func(*exec.Cmd)) *child {
	t.Helper()
	c := &child{t: t}
	self, err := selfProgram()
	if err != nil {
		t.Fatal(err)
	}
	c.cmd = exec.CommandContext(testContext(t), self)
	c.cmd.Env = append(os.Environ(), sceneVariable+"="+name, dirVariable+"="+dir, "PATH="+programs.dir+":"+os.Getenv("PATH"))
	c.cmd.Stderr = t.Output()
	for _, f := range change {
		f(c.cmd)
	}
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the child process %s ended: %v", name, c.cmd.Wait())
	}
	if err := json.Unmarshal(line, &c.scene); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return c
}

// end makes the child close its cluster and exit.
func (c *child) end() {
	c.t.Helper()
	_ = c.stdin.Close()
	if err := c.cmd.Wait(); err != nil {
		c.t.Fatalf("the child process failed: %v", err)
	}
}

// kill ends the child as kill -9 does.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// until waits for a condition of another process.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited 20 s in vain: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// gone reports whether a process has ended; a zombie has.
func gone(pid int) bool {
	if errors.Is(signal(pid, 0), syscall.ESRCH) {
		return true
	}
	all, err := commandLines(context.Background())
	return err == nil && !strings.Contains(all[pid], "postgres")
}

// owns reports whether this process runs the server. It can become true later, when an owner exits.
func (c *Cluster) owns() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lock != nil
}
