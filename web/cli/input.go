package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"strings"
)

// The most that is read from stdin, and from a file, in bytes. A file can be a device that never ends.
const (
	maxStdin = 16 << 20
	maxFile  = 256 << 20
)

// The ends of the sentences about an empty input.
const (
	nothing      = "."
	withoutData  = `: for an event without data write '{}'.`
	withoutFile  = ": it needs `tenants` or `platform`; `posthorn export` prints an example."
	byteOrder    = "\ufeff"
	asPlainUTF8  = "Save it as UTF-8 without a byte order mark; in PowerShell 7 with -Encoding utf8NoBOM."
	littleEndian = "\xff\xfe"
	bigEndian    = "\xfe\xff"
)

// input is a text on the command line, from @FILE, or, as -, from stdin. An empty one is an error: a program that
// failed in front of a pipe, or a variable that is not set, must not pass for data.
func input(ctx context.Context, e *Env, value, ifEmpty string) ([]byte, error) {
	name, text := "the value", []byte(value)
	var err error
	if path, isFile := strings.CutPrefix(value, "@"); isFile {
		name = path
		text, err = readFile(ctx, path)
	} else if value == "-" {
		name = "stdin"
		text, err = readStdin(ctx, e)
	}
	if err != nil {
		return nil, err
	}
	if value == "-" || value != "" && value[0] == '@' {
		text = bytes.TrimSpace(text)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, fail(ExitUsage, "%s was empty%s", strings.ToUpper(name[:1])+name[1:], ifEmpty)
	}
	return text, nil
}

// readFile reads a file that is UTF-8, or until the context ends: a pipe with a name can stay open without a word.
func readFile(ctx context.Context, path string) ([]byte, error) {
	text, err := interruptible(ctx, func() ([]byte, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, maxFile+1))
	})
	switch {
	case ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, fail(ExitUsage, "%s", fileText(err))
	case len(text) > maxFile:
		return nil, fail(ExitUsage, "%s has more than %d MiB.", path, maxFile>>20)
	}
	return text, encoding(path, text)
}

// encoding refuses texts that are not UTF-8, and a mark that no parser of JSON takes.
func encoding(name string, text []byte) error {
	switch {
	case bytes.HasPrefix(text, []byte(byteOrder)):
		return fail(ExitUsage, "%s starts with a byte order mark (BOM). %s", name, asPlainUTF8)
	case bytes.HasPrefix(text, []byte(littleEndian)), bytes.HasPrefix(text, []byte(bigEndian)),
		len(text) > 1 && (text[0] == 0) != (text[1] == 0):
		return fail(ExitUsage, "%s is UTF-16, which Windows PowerShell writes. %s", name, asPlainUTF8)
	}
	return nil
}

// readStdin reads all of stdin, or until the context ends: a terminal or a pipe can stay open for as long as it likes.
func readStdin(ctx context.Context, e *Env) ([]byte, error) {
	if e.Stdin == nil {
		return nil, nil
	}
	text, err := interruptible(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(e.Stdin, maxStdin+1)) })
	switch {
	case ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, fail(ExitFailed, "stdin: %v", err)
	case len(text) > maxStdin:
		return nil, fail(ExitUsage, "stdin has more than %d MiB.", maxStdin>>20)
	}
	return text, encoding("stdin", text)
}

// readLine reads a line from stdin, or until the context ends. The last line can lack its end.
func readLine(ctx context.Context, in *bufio.Reader) (string, error) {
	line, err := interruptible(ctx, func() (string, error) { return in.ReadString('\n') })
	if ctx.Err() != nil {
		return "", err
	}
	return strings.TrimSpace(line), nil
}

// interruptible does what can't be interrupted, and stops waiting for it when the context ends.
func interruptible[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
