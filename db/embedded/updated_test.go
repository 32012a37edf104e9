package embedded

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posthorn/domain/fault"
	"posthorn/tools/need"
)

// copied is an installation of the tests' PostgreSQL whose files a test can replace.
type copied struct{ bin, libraries string }

func copyPrograms(t *testing.T) copied {
	t.Helper()
	c := start(t, testConfig(t, testDir(t)))
	folder := func(name string) string {
		return ask(t, c.AdminURL("postgres"), "SELECT setting FROM pg_config WHERE name = $1", name)
	}
	bin, libraries, data, shared := folder("BINDIR"), folder("PKGLIBDIR"), folder("SHAREDIR"), folder("LIBDIR")
	if entries, err := os.ReadDir(bin); err != nil || len(entries) > 200 {
		need.Missing(t, "a PostgreSQL of its own folder", "It is among other programs in %s: %v", bin, err)
	}
	prefix := bin
	for !strings.HasPrefix(libraries, prefix+"/") || !strings.HasPrefix(data, prefix+"/") {
		prefix = filepath.Dir(prefix)
	}
	root := testDir(t)
	folders := []string{bin, libraries, data}
	if filepath.Dir(shared) == filepath.Dir(bin) { // libraries of its own, not the system's
		folders = append(folders, shared)
	}
	for _, from := range folders {
		to := filepath.Join(root, strings.TrimPrefix(from, prefix))
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.CommandContext(t.Context(), "cp", "-R", from+"/.", to).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, said)
		}
	}
	moved := func(folder string) string { return filepath.Join(root, strings.TrimPrefix(folder, prefix)) }
	return copied{moved(bin), moved(libraries)}
}

// replace puts a file in the place of another, as a package manager does.
func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	fresh := path + ".new"
	if err := os.WriteFile(fresh, content, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestTheServerRestartsWhenItsFilesWereReplacedAndAreComplete(t *testing.T) {
	t.Parallel()
	here := copyPrograms(t)
	cfg := testConfig(t, testDir(t))
	cfg.places, cfg.quiet = &places{path: here.bin, offline: true}, 1500*time.Millisecond
	c := start(t, cfg)
	run(t, c.URL(), "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (42)")
	if err := c.Ready(); err != nil {
		t.Fatal(err)
	}
	first := c.PID()
	library := filepath.Join(here.libraries, "plpgsql.so")
	if _, err := os.Stat(library); err != nil {
		library = filepath.Join(here.libraries, "plpgsql.dylib")
	}
	content := read(t, library)
	var lastWrite time.Time
	for range 5 { // each is noticed by another look, so together longer than a quiet time: it is still being written
		before := fault.As(c.Ready())
		lastWrite = time.Now()
		replace(t, library, content)
		until(t, "the change is noticed", func() bool { e := fault.As(c.Ready()); return e != nil && e != before })
	}
	if e := fault.As(c.Ready()); e == nil || e.Code != "postgres_updated" || !strings.Contains(e.Detail, "restarts it at ") {
		t.Errorf("it says %v", e)
	}
	until(t, "the server restarts", func() bool { return c.PID() != first && c.Ready() == nil })
	if waited := time.Since(lastWrite); waited < cfg.quiet {
		t.Errorf("it restarted %s after the last change, before the files can be complete", waited)
	}
	if !gone(first) {
		t.Error("the first server runs on")
	}
	if got := ask(t, c.URL(), "SELECT n::text FROM kept"); got != "42" {
		t.Errorf("kept row reads %q", got)
	}
	second := c.PID()
	replace(t, filepath.Join(here.bin, "postgres"), read(t, filepath.Join(here.bin, "postgres")))
	until(t, "the server follows the program too", func() bool { return c.PID() != second && c.Ready() == nil })
}

func TestProgramsOfAnotherMajorAreNamedAndTheServerGoesOn(t *testing.T) {
	t.Parallel()
	here := copyPrograms(t)
	cfg := testConfig(t, testDir(t))
	cfg.places, cfg.quiet = &places{path: here.bin, offline: true}, 300*time.Millisecond
	c := start(t, cfg)
	first, program := c.PID(), filepath.Join(here.bin, "postgres")
	if err := os.Rename(program, program+".kept"); err != nil {
		t.Fatal(err)
	}
	replace(t, program, []byte("#!/bin/sh\necho 'postgres (PostgreSQL) 99.1'\n"))
	until(t, "the other major is named", func() bool {
		e := fault.As(c.Ready())
		return e != nil && e.Code == "postgres_version_missing" && strings.Contains(e.Detail, "99.1") && strings.Contains(e.Detail, "Install it")
	})
	if c.PID() != first || ask(t, c.URL(), "SELECT 'here'") != "here" {
		t.Error("the server that has the data was stopped")
	}
	if err := os.Rename(program+".kept", program); err != nil {
		t.Fatal(err)
	}
	until(t, "the files are the server's again", func() bool { return c.Ready() == nil })
	if c.PID() != first {
		t.Error("it restarted though nothing has changed in the end")
	}
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
