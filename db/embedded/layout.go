package embedded

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// socketPort numbers the socket file; there is no TCP port.
const socketPort = "5432"

// maxSocketDir is the longest path of the socket's folder: macOS has 104 bytes for a socket's whole path with its final
// NUL (Linux 108), and the file's name needs 14.
const maxSocketDir = 104 - 1 - len("/.s.PGSQL."+socketPort)

// layout is the data directory on disk and the account that its server runs as.
type layout struct {
	home     string // the data directory, absolute, symbolic links resolved
	base     string // home/postgres; never writable for the server's account when Posthorn is root
	data     string
	sockets  string
	logs     string
	binaries string
	lock     string
	startLog string
	name     string // marks this cluster's processes: "posthorn-" and 8 digits of the path's hash
	account  account
}

// prepare creates missing folders and checks existing ones.
func prepare(home string) (*layout, error) {
	if err := os.MkdirAll(home, folderMode()); err != nil {
		return nil, dirFault(home, "can't be made", err)
	}
	real, err := filepath.EvalSymlinks(home)
	if err != nil {
		return nil, dirFault(home, "can't be resolved", err)
	}
	l := newLayout(real)
	if err := l.checkOwner(); err != nil {
		return nil, err
	}
	if err := makeDir(l.base, account{}); err != nil {
		return nil, dirFault(home, "can't be written", err)
	}
	if l.account, err = l.chooseAccount(); err != nil {
		return nil, err
	}
	if l.account.drop {
		for _, dir := range []string{l.home, l.base} {
			if own, err := os.UserHomeDir(); err == nil && dir == own {
				continue // the mode of a person's home does not change
			}
			if err := letPass(dir); err != nil {
				return nil, dirFault(home, "can't be opened for "+l.account.name+", who runs PostgreSQL because root can't", err)
			}
		}
	}
	for _, dir := range []string{l.sockets, l.logs} {
		if err := makeDir(dir, l.account); err != nil {
			return nil, dirFault(home, "can't be prepared", err)
		}
	}
	if l.account.drop {
		if err := l.reachable(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// checkOwner rejects a data directory of another user's Posthorn. Root could use it, but would leave files that the
// user can't open, and would write where the user can place links.
func (l *layout) checkOwner() error {
	info, err := os.Lstat(l.base)
	if err != nil {
		return nil // it does not exist or can't be read: its creation will fail if it must
	}
	owner := ownerOf(info)
	if owner == os.Geteuid() {
		return nil
	}
	name := strconv.Itoa(owner)
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return dirFault(l.home, "belongs to the user "+name+"; run this command as that user (sudo -u "+name+" posthorn ...)", nil)
}

func newLayout(home string) *layout {
	base := filepath.Join(home, "postgres")
	sum := sha256.Sum256([]byte(base))
	mark := hex.EncodeToString(sum[:])
	l := &layout{
		home:     home,
		base:     base,
		data:     filepath.Join(base, "data"),
		sockets:  filepath.Join(base, "run"),
		logs:     filepath.Join(base, "log"),
		binaries: filepath.Join(base, "binaries"),
		lock:     filepath.Join(base, "lock"),
		startLog: filepath.Join(base, "start.log"),
		name:     "posthorn-" + mark[:8],
	}
	if len(l.sockets) > maxSocketDir {
		// Not os.TempDir: every process of this installation must use the same path.
		l.sockets = "/tmp/.posthorn-" + mark[:16]
	}
	return l
}

// folderMode lets the server's account traverse a folder, without listing it, if Posthorn is root.
func folderMode() fs.FileMode {
	if isRoot() {
		return 0o711
	}
	return 0o700
}

// letPass lets other accounts traverse one of Posthorn's folders.
func letPass(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o011 == 0o011 {
		return err
	}
	return os.Chmod(dir, info.Mode().Perm()|0o011)
}

// makeDir creates a folder for an account, or checks that an existing one belongs to that account alone. The check
// matters for the socket's folder in /tmp, where another user could have been first.
func makeDir(dir string, owner account) error {
	mode := folderMode()
	if owner.drop {
		mode = 0o700
	}
	err := os.Mkdir(dir, mode)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	if uid, self := ownerOf(info), os.Geteuid(); owner.drop && uid == self {
		// New, or left by a crash between the two calls.
		return os.Lchown(dir, int(owner.uid), int(owner.gid))
	} else if want := owner.uidOr(self); uid != want {
		return fmt.Errorf("%s belongs to user id %d, not to %d", dir, uid, want)
	}
	if owner.drop && info.Mode().Perm()&0o077 != 0 {
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// initialised reports whether there is a cluster, and its major version.
func (l *layout) initialised() (major int, ok bool, err error) {
	text, err := os.ReadFile(filepath.Join(l.data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, dirFault(l.home, "can't be read", err)
	}
	major, err = strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, false, dirFault(l.home, "holds a damaged cluster (PG_VERSION)", err)
	}
	return major, true, nil
}

// url names the server for a role and a database, in the form that libpq and pgx read.
func (l *layout) url(role, database string) string {
	return (&url.URL{
		Scheme:   "postgres",
		User:     url.User(role),
		Path:     "/" + database,
		RawQuery: url.Values{"host": {l.sockets}, "port": {socketPort}, "sslmode": {"disable"}}.Encode(),
	}).String()
}

// pidFile is the content of PostgreSQL's postmaster.pid.
type pidFile struct {
	pid   int
	ready bool
}

// readPIDFile returns the zero value if there is no complete file.
func (l *layout) readPIDFile() pidFile {
	text, err := os.ReadFile(l.pidPath())
	if err != nil {
		return pidFile{}
	}
	lines := bytes.Split(text, []byte("\n"))
	var f pidFile
	// The file of a single-user server holds its process id negated.
	if pid, err := strconv.Atoi(strings.TrimSpace(string(lines[0]))); err == nil {
		f.pid = max(pid, -pid)
	}
	const statusLine = 7 // LOCK_FILE_LINE_PM_STATUS of PostgreSQL's pidfile.h, from 0
	f.ready = len(lines) > statusLine && string(bytes.TrimSpace(lines[statusLine])) == "ready"
	return f
}

func (l *layout) pidPath() string    { return filepath.Join(l.data, "postmaster.pid") }
func (l *layout) socketLock() string { return filepath.Join(l.sockets, ".s.PGSQL."+socketPort+".lock") }

// said is the end of the server's output before its log began, for error messages.
func (l *layout) said() string {
	const most = 2000
	text, err := os.ReadFile(l.startLog)
	if err != nil {
		return ""
	}
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return strings.TrimSpace(string(text))
}

// Installed reports whether a data directory (empty: the default) holds a cluster, and which directory that is. It
// changes nothing.
func Installed(dataDir string) (home string, installed bool, err error) {
	cfg, err := Config{DataDir: dataDir}.withDefaults()
	if err != nil {
		return "", false, err
	}
	_, installed, err = newLayout(cfg.DataDir).initialised()
	return cfg.DataDir, installed, err
}
