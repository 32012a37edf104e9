package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posthorn/web/cli"
)

// A program that failed in front of a pipe, and a variable of the shell that is not set, are not data.
func TestAnEmptyInputIsRefusedByEveryCommandThatReadsOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty, blank := write("empty.json", ""), write("blank.json", " \n\t")
	marked := write("marked.json", "\ufeff{\"a\": 1}\n")
	wide := write("wide.json", "\xff\xfe{\x00}\x00\n\x00")
	bare := write("bare.json", "{\x00}\x00\n\x00")
	commands := map[string][]string{ // IN is the input
		"emit":     {"emit", "in.x", "IN"},
		"test":     {"test", "ep_x", "--data", "IN"},
		"--body":   {"endpoints", "create", "--body", "IN"},
		"update":   {"endpoints", "update", "ep_x", "--body", "IN"},
		"--secret": {"endpoints", "create", "https://a.example.com", "--secret", "IN"},
		"rotate":   {"endpoints", "secret", "rotate", "ep_x", "--secret", "IN"},
		"password": {"endpoints", "create", "--kafka", "a:1", "--topic", "t", "--sasl", "PLAIN", "--user", "u", "--password", "IN"},
		"ca":       {"endpoints", "create", "--kafka", "a:1", "--topic", "t", "--ca-certificate", "IN"},
	}
	refused := func(what, stdin, says string, args ...string) {
		t.Helper()
		d.stdin = stdin
		r := d.run("", args...)
		if r.code != cli.ExitUsage || !strings.Contains(r.stderr, says) || r.stdout != "" {
			t.Errorf("%s: exit code %d, %q %q", what, r.code, r.stderr, r.stdout)
		}
	}
	with := func(args []string, in string) []string {
		out := append([]string{}, args...)
		for i := range out {
			if out[i] == "IN" {
				out[i] = in
			}
		}
		return out
	}
	for name, args := range commands {
		refused(name+" from an empty pipe", "", "Stdin was empty", with(args, "-")...)
		refused(name+" from white space", " \r\n", "Stdin was empty", with(args, "-")...)
		refused(name+" from nothing", "x", "was empty", with(args, "")...)
		refused(name+" from an empty file", "x", "empty.json was empty", with(args, "@"+empty)...)
		refused(name+" from a blank file", "x", "blank.json was empty", with(args, "@"+blank)...)
		refused(name+" with a mark", "\ufeff{}", "byte order mark", with(args, "-")...)
		for _, odd := range []string{wide, bare} {
			refused(name+" in UTF-16", "x", "is UTF-16", with(args, "@"+odd)...)
		}
	}
	for name, args := range map[string][]string{"import": {"import", "IN"}, "apply": {"apply", "-f", "IN"}, "catalogue": {"catalogue", "diff", "IN", "IN"}} {
		if name != "catalogue" {
			refused(name, "", "Stdin was empty", with(args, "-")...)
		}
		refused(name, "x", "was empty", with(args, empty)...)
		refused(name, "x", "byte order mark", with(args, marked)...)
		refused(name, "x", "is UTF-16", with(args, wide)...)
	}
	refused("a pipe without an argument", "", "write '{}'", "emit", "in.x")
	var list []struct{ ID string }
	if d.ok(&list, "events list --json"); len(list) != 0 {
		t.Errorf("%d events were emitted", len(list))
	}
	d.stdin = `{"a": 1}`
	d.ok(nil, "emit in.x")
	d.ok(nil, "emit in.x {}")
	d.stdin = ""
	person := &app{
		program:    "posthorn",
		args:       []string{"emit", "in.x"},
		environ:    d.environ,
		stdin:      strings.NewReader(""),
		stdout:     io.Discard,
		stderr:     io.Discard,
		inTerminal: true,
	}
	if code := person.run(t.Context()); code != 0 {
		t.Errorf("a person without data: exit code %d", code)
	}
	if d.ok(&list, "events list --json"); len(list) != 3 {
		t.Errorf("%d events", len(list))
	}
}

// A pipe, a terminal, and a named pipe can stay open without a word.
func TestACommandThatWaitsForInputEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"emit", "in.x"}, {"apply", "-f", "-"}, {"import", "-"}, {"login", "http://127.0.0.1:1"}, {"endpoints", "create", "--body", "-"},
	} {
		silent, never := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		var out bytes.Buffer
		a := &app{
			program: "posthorn",
			args:    args,
			environ: []string{"POSTHORN_URL=http://127.0.0.1:1", "HOME=" + t.TempDir()},
			stdin:   silent,
			stdout:  &out,
			stderr:  &out,
		}
		if args[0] != "login" {
			a.environ = append(a.environ, "POSTHORN_API_KEY=phk_x")
		}
		ended := make(chan int)
		go func() { ended <- a.run(ctx) }()
		cancel()
		select {
		case code := <-ended:
			if code == 0 {
				t.Errorf("%v: exit code 0", args)
			}
		case <-time.After(patience):
			t.Errorf("%v does not end", args)
		}
		never.Close()
	}
}
