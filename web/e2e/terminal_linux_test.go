//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// The size of the terminal.
const (
	terminalColumns = 100
	terminalRows    = 40
)

// TestTheSignInLinkStaysInSight records a terminal in which the demo runs, as `make demo` runs it: with constant
// traffic and failing receivers, the link of the start is on the screen a minute later.
func TestTheSignInLinkStaysInSight(t *testing.T) {
	t.Parallel()
	if binary == "" {
		t.Fatal("POSTHORN_BIN names no binary: run `make e2e`")
	}
	screen, program := openPty(t)
	cmd := exec.Command(binary, "serve", "--demo")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TERM=xterm-256color", "POSTHORN_DATA_DIR=" + dataDir(t),
		"POSTHORN_ADDR=127.0.0.1:0", "POSTHORN_METRICS_ADDR=127.0.0.1:0", "POSTHORN_DEMO_ADDR=127.0.0.1:" + freePort(t),
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = program.Close()
	log, ended := newLines(t, "terminal"), make(chan struct{})
	go func() {
		_, _ = io.Copy(log, screen)
		log.end()
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	const link = "/sign-in/link?token="
	log.await(t, link)
	// Each is a summary of ten seconds, so the demo was busy for a minute.
	eventually(t, patience+patience, "the demo was busy for a minute", func() bool { return log.count("attempts in the last 10 s") >= 6 })
	below, found := 0, false
	for _, line := range log.everything() {
		if found {
			below += max(1, (utf8.RuneCountInString(strings.TrimRight(line, "\r"))+terminalColumns-1)/terminalColumns)
		}
		found = found || strings.Contains(line, link)
	}
	if below >= terminalRows {
		t.Errorf("%d rows came after the link, and the terminal has %d:\n%s", below, terminalRows, log.whole())
	}
	for _, line := range log.everything() {
		if strings.Contains(line, "No tenants yet") {
			t.Errorf("README.md says to open the link, and the terminal says %q", line)
		}
	}
	if n := log.count("migration"); n != 1 {
		t.Errorf("%d lines are about migrations", n)
	}
}

// openPty opens a terminal: its screen, and the end that a program writes to.
func openPty(t *testing.T) (screen, program *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	fd := int(screen.Fd())
	number, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: terminalRows, Col: terminalColumns})
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return screen, program
}
