package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"

	"posthorn/domain/fault"
)

// account is the system account of the server. The zero value is this process's own account.
type account struct {
	name     string
	uid, gid uint32
	drop     bool // Posthorn is root and drops its rights for the server
}

// candidates are the accounts that root can run the server as, best first. All have an entry in the password file:
// initdb refuses to run without one.
var candidates = []string{"posthorn", "postgres", "_postgres", "nobody"}

func (a account) uidOr(self int) int {
	if a.drop {
		return int(a.uid)
	}
	return self
}

// chooseAccount decides which account runs the server: the owner of the cluster if there is one, this user, or for root
// the first of candidates that exists.
func (l *layout) chooseAccount() (account, error) {
	owner := -1
	for _, dir := range []string{l.data, l.logs} { // l.log exists after a start that failed early
		info, err := os.Lstat(dir)
		if err == nil {
			owner = ownerOf(info)
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return account{}, dirFault(l.home, "can't be read", err)
		}
	}
	if !isRoot() {
		if owner >= 0 && owner != os.Geteuid() {
			return account{}, dirFault(l.home, fmt.Sprintf("belongs to user id %d, and this process runs as %d", owner, os.Geteuid()), nil)
		}
		return account{}, nil
	}
	if owner > 0 {
		u, err := user.LookupId(strconv.Itoa(owner))
		if err != nil {
			return account{}, dirFault(l.home, fmt.Sprintf("belongs to user id %d, who is not in /etc/passwd", owner), err)
		}
		return accountOf(u)
	}
	for _, name := range candidates {
		if u, err := user.Lookup(name); err == nil {
			return accountOf(u)
		}
	}
	return account{}, &fault.Error{
		Kind:   fault.Invalid,
		Code:   "postgres_account_missing",
		Detail: fmt.Sprintf("PostgreSQL can't run as root and none of the accounts %v exists to run it. Create one (useradd --system posthorn), run Posthorn as an ordinary user, or set POSTHORN_DATABASE_URL.", candidates),
	}
}

func accountOf(u *user.User) (account, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("user id of %s: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("group id of %s: %w", u.Username, err)
	}
	return account{name: u.Username, uid: uint32(uid), gid: uint32(gid), drop: true}, nil
}

// command prepares a program to run as the server's account, in a folder that it can enter, with its own environment:
// PGDATA, PGOPTIONS and similar variables of the caller must not reach the server.
func (l *layout) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = l.sockets
	cmd.Env = []string{
		"PATH=" + filepath.Dir(program) + ":/usr/bin:/bin",
		"HOME=" + l.sockets,
		"LC_ALL=C", // messages in English: some are matched
		"TZ=UTC",   // else initdb tries every time zone to find out
	}
	// A PostgreSQL outside the system's folders can need it to find its libraries.
	if path := os.Getenv("LD_LIBRARY_PATH"); path != "" {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+path)
	}
	runAs(cmd, l.account)
	return cmd
}

// reachable checks whether the server's account can enter its folders.
func (l *layout) reachable() error {
	const shell = "/bin/sh"
	if _, err := os.Stat(shell); err != nil {
		return nil // no program to try it with; the start will fail if it can't
	}
	ctx := context.Background()
	err := l.command(ctx, shell, "-c", ":").Run()
	if err == nil {
		return nil
	}
	elsewhere := l.command(ctx, shell, "-c", ":")
	elsewhere.Dir = "/"
	if cause := elsewhere.Run(); cause != nil {
		return &fault.Error{
			Kind:   fault.Invalid,
			Code:   "postgres_account_refused",
			Cause:  cause,
			Detail: "PostgreSQL can't run as root, and this process can't switch to " + l.account.name + " to run it. Run Posthorn as an ordinary user, give it the capabilities SETUID and SETGID, or set POSTHORN_DATABASE_URL.",
		}
	}
	return dirFault(l.home, "is out of reach for "+l.account.name+", who runs PostgreSQL because root can't (a parent folder is closed to others, as /root is)", err)
}
