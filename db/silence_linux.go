package db

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// boundSilence ends a connection whose other end has acknowledged nothing for too long. On systems without this option,
// only the keep-alive detects it.
func boundSilence(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(deafAfter.Milliseconds()))
	})
}
