//go:build unix && !linux && !aix && !solaris

package embedded

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

func selfProgram() (string, error) { return os.Executable() }

// endWithParent can do nothing here: after a kill -9 of Posthorn the server keeps running, and the next start replaces
// it.
func endWithParent(*exec.Cmd) {}

func platformSettings() map[string]string { return nil }

// commandLines lists the running processes.
func commandLines(ctx context.Context) (map[int]string, error) {
	out, err := exec.CommandContext(ctx, "/bin/ps", "-axww", "-o", "pid=,command=").Output()
	if err != nil {
		return nil, err
	}
	all := map[int]string{}
	for line := range strings.Lines(string(out)) {
		number, command, found := strings.Cut(strings.TrimSpace(line), " ")
		pid, err := strconv.Atoi(number)
		if found && err == nil {
			all[pid] = strings.TrimSpace(command)
		}
	}
	return all, nil
}
