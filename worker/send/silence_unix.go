//go:build unix

package send

import (
	"net"
	"syscall"
)

// silence is the expected state of an idle connection: if anything arrives on it, data or its end, the connection is
// useless.
type silence struct {
	raw  syscall.RawConn
	peek func(fd uintptr) bool
	kept bool
}

func (s *silence) of(c net.Conn) {
	inner, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := inner.SyscallConn()
	if err != nil {
		return
	}
	s.raw = raw
	s.peek = func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		s.kept = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	}
}

// holds reports whether nothing has arrived.
func (s *silence) holds() bool {
	s.kept = false
	return s.raw != nil && s.raw.Read(s.peek) == nil && s.kept
}
