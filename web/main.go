// Command posthorn delivers events to HTTPS endpoints: the server, its worker, and the commands around them.
//
// main only connects the process to run; run parses the command line, and Program is the server as a value that tests
// start and close.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/mattn/go-isatty"

	"posthorn/db/embedded"
)

// version is set by the build: -ldflags "-X main.version=v1.2.3".
var version string

func main() {
	if embedded.ChildMain() {
		return
	}
	a := &app{
		program:     os.Args[0],
		args:        os.Args[1:],
		environ:     os.Environ(),
		stdin:       os.Stdin,
		stdout:      os.Stdout,
		stderr:      os.Stderr,
		terminal:    isatty.IsTerminal(os.Stdout.Fd()),
		inTerminal:  isatty.IsTerminal(os.Stdin.Fd()),
		logTerminal: isatty.IsTerminal(os.Stderr.Fd()),
	}
	ctx, stop := untilSignaled(a.stderr)
	code := a.run(ctx)
	stop()
	os.Exit(code)
}

// untilSignaled is a context that ends with the first SIGTERM or SIGINT. The second ends the process at once, as it
// would a program that does not listen.
func untilSignaled(stderr io.Writer) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-signals
		cancel()
		again := <-signals
		_, _ = io.WriteString(stderr, "posthorn: stopped immediately\n")
		code := 130
		if again == syscall.SIGTERM {
			code = 143
		}
		os.Exit(code)
	}()
	return ctx, cancel
}

// buildVersion is the version given at build time, else what Go recorded.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "dev-" + s.Value[:12]
		}
	}
	return "dev"
}
