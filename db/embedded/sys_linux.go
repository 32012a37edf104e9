package embedded

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// selfProgram is this program, reachable even if its folder is closed to the server's account.
func selfProgram() (string, error) { return "/proc/self/exe", nil }

// endWithParent makes the kernel send the server a fast stop when this process dies, however it dies. The signal is
// tied to the thread that started the child: see launch.
func endWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = stopFast
}

// PlatformSettings are server settings that only this system accepts.
func platformSettings() map[string]string {
	// A killed Posthorn's statements stop waiting for locks within seconds. Needs POLLRDHUP.
	return map[string]string{"client_connection_check_interval": "5s"}
}

// commandLines lists the running processes. It reads the command line and not the working directory: root in a
// container can lack CAP_SYS_PTRACE, without which another account's directory is unreadable. A zombie has no command
// line.
func commandLines(context.Context) (map[int]string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	all := make(map[int]string, len(entries))
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err != nil || len(line) == 0 {
			continue // exited since, a kernel thread, or a zombie
		}
		all[pid] = string(bytes.ReplaceAll(bytes.TrimRight(line, "\x00"), []byte{0}, []byte{' '}))
	}
	return all, nil
}
