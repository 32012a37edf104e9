//go:build unix && !aix && !solaris

package embedded

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"posthorn/domain/fault"
	"posthorn/tools/need"
)

func TestDefaultDataDirFollowsTheUser(t *testing.T) {
	if isRoot() {
		if dir, err := defaultDataDir(); err != nil || dir != "/var/lib/posthorn" {
			t.Errorf("root gets %q, %v", dir, err)
		}
		return
	}
	for _, c := range []struct{ xdg, home, want string }{
		{"/x/data", "/home/u", "/x/data/posthorn"},
		{"", "/home/u", "/home/u/.local/share/posthorn"},
		{"relative", "/home/u", "/home/u/.local/share/posthorn"},
	} {
		t.Setenv("XDG_DATA_HOME", c.xdg)
		t.Setenv("HOME", c.home)
		if dir, err := defaultDataDir(); err != nil || dir != c.want {
			t.Errorf("%+v: got %q, %v", c, dir, err)
		}
	}
}

// asOrdinaryUser makes a child drop root's rights. Its home is the user's own.
func asOrdinaryUser(t *testing.T, home string, environment ...string) func(*exec.Cmd) {
	t.Helper()
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, uid, gid); err != nil {
		t.Fatal(err)
	}
	return func(cmd *exec.Cmd) {
		cmd.Dir = "/"
		cmd.Env = append(cmd.Env, "HOME="+home)
		cmd.Env = append(cmd.Env, environment...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
}

func TestOrdinaryUserGetsAClusterBelowHome(t *testing.T) {
	t.Parallel()
	if !isRoot() {
		return // the other tests show it: they run as an ordinary user already
	}
	for name, c := range map[string]struct{ environment, want string }{
		"home":          {"XDG_DATA_HOME=", ".local/share/posthorn"},
		"XDG_DATA_HOME": {"XDG_DATA_HOME=%s/xdg", "xdg/posthorn"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := testDir(t)
			got := spawn(t, "start", "", asOrdinaryUser(t, home, strings.ReplaceAll(c.environment, "%s", home)))
			if want := filepath.Join(home, c.want); got.Dir != want || !got.Owned {
				t.Errorf("the data is in %s, not in %s (owned %v)", got.Dir, want, got.Owned)
			}
			if ask(t, got.URL, "SHOW fsync") != "on" {
				t.Error("fsync is off")
			}
			// Root would leave files behind that the user can't open.
			_, err := Attach(testContext(t), testConfig(t, got.Dir))
			if e := fault.As(err); e == nil || !strings.Contains(e.Detail, "sudo -u nobody") {
				t.Errorf("root got %v", err)
			}
			got.kill()
			again := spawn(t, "start", got.Dir, asOrdinaryUser(t, home))
			if !again.Owned || again.PID == got.PID {
				t.Errorf("after a kill -9 the user got %+v", again.scene)
			}
			again.end()
		})
	}
}

func TestServerOfRootRunsUnprivileged(t *testing.T) {
	t.Parallel()
	need.Root(t) // who alone has rights to give up
	c := start(t, testConfig(t, testDir(t)))
	status, err := os.ReadFile("/proc/" + strconv.Itoa(c.PID()) + "/status")
	if err != nil {
		need.Missing(t, "/proc", "%v", err)
	}
	for _, line := range []string{"Uid:", "Gid:", "Groups:", "CapEff:"} {
		i := strings.Index(string(status), line)
		value, _, _ := strings.Cut(string(status)[i+len(line):], "\n")
		fields := strings.Fields(value)
		switch line {
		case "Uid:", "Gid:":
			for _, f := range fields {
				if f == "0" {
					t.Errorf("%s %v", line, fields)
				}
			}
		case "Groups:":
			if len(fields) != 0 {
				t.Errorf("supplementary groups are kept: %v", fields)
			}
		case "CapEff:":
			if strings.Trim(fields[0], "0") != "" {
				t.Errorf("capabilities are kept: %v", fields)
			}
		}
	}
	// Root writes only where the server's account can't place a link.
	info, err := os.Stat(c.layout.base)
	if err != nil || ownerOf(info) != 0 || info.Mode().Perm()&0o022 != 0 {
		t.Errorf("%s belongs to %d with mode %v", c.layout.base, ownerOf(info), info.Mode())
	}
	for _, dir := range []string{c.layout.data, c.layout.sockets, c.layout.logs} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s is open to others: %v, %v", dir, info.Mode(), err)
		}
	}
}

func TestUnusableDataDirectoriesAreRejectedWithAFix(t *testing.T) {
	t.Parallel()
	file := filepath.Join(testDir(t), "file")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(testDir(t), "damaged")
	if err := os.MkdirAll(filepath.Join(damaged, "postgres", "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(damaged, "postgres", "data", "PG_VERSION"), []byte("many\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{"a file": file, "below a file": filepath.Join(file, "d"), "a damaged cluster": damaged}
	if isRoot() {
		closed := testDir(t)
		if err := os.MkdirAll(closed, 0o700); err != nil {
			t.Fatal(err)
		}
		cases["closed to the server's account, as /root is"] = filepath.Join(closed, "d")
	}
	for name, dir := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Start(testContext(t), testConfig(t, dir))
			e := fault.As(err)
			if e == nil || e.Code != "data_dir_unusable" || !strings.Contains(e.Detail, "POSTHORN_DATA_DIR") || !strings.Contains(e.Detail, "POSTHORN_DATABASE_URL") {
				t.Errorf("got %v", err)
			}
		})
	}
}
