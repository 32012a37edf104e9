package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// with runs a program of other people, or skips the test where it is not installed.
func with(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("SKIPPED: %s is missing. Install it to run this test.", name)
	}
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// The tools of the distributions read the packages, and not the library that wrote them.
func TestDpkgTakesThePackage(t *testing.T) {
	t.Parallel()
	r := made(t)
	if err := r.write(); err != nil {
		t.Fatal(err)
	}
	deb, into := filepath.Join(r.out, "posthorn_1.2.3_amd64.deb"), t.TempDir()
	if said := with(t, "dpkg-deb", "--field", deb); !strings.Contains(said, "Package: posthorn\nVersion: 1.2.3\n") || !strings.Contains(said, "Architecture: amd64") {
		t.Errorf("its fields are %s", said)
	}
	if said := with(t, "dpkg-deb", "--info", deb); !strings.Contains(said, "postinst") || !strings.Contains(said, "prerm") || !strings.Contains(said, "conffiles") {
		t.Errorf("it has no scripts, or no configuration: %s", said)
	}
	with(t, "dpkg-deb", "--extract", deb, into)
	unit, err := os.ReadFile(filepath.Join(into, "usr/lib/systemd/system/posthorn-worker.service"))
	if err != nil || !strings.Contains(string(unit), "ExecStart=/usr/bin/posthorn worker") {
		t.Errorf("the unit file is %s, %v", unit, err)
	}
	for name, mode := range map[string]os.FileMode{
		"usr/bin/posthorn":                                  0o755,
		"etc/posthorn.env":                                  0o600,
		"usr/lib/sysusers.d/posthorn.conf":                  0o644,
		"usr/share/bash-completion/completions/posthorn":    0o644,
		"usr/share/zsh/vendor-completions/_posthorn":        0o644,
		"usr/share/fish/vendor_completions.d/posthorn.fish": 0o644,
		"usr/share/doc/posthorn/README.md":                  0o644,
	} {
		if info, err := os.Stat(filepath.Join(into, name)); err != nil || info.Mode().Perm() != mode || !info.ModTime().Equal(r.at) {
			t.Errorf("%s is %v, %v", name, info, err)
		}
	}
}

func TestRpmTakesThePackage(t *testing.T) {
	t.Parallel()
	r := made(t)
	if err := r.write(); err != nil {
		t.Fatal(err)
	}
	rpm := filepath.Join(r.out, "posthorn-1.2.3-1.x86_64.rpm")
	with(t, "rpm", "--checksig", "--nosignature", rpm)
	said := with(t, "rpm", "-qp", "--nosignature", "--queryformat", "%{NAME} %{VERSION} %{ARCH}\n[%{FILENAMES} %{FILEMODES:octal}\n]", rpm)
	for _, want := range []string{
		"posthorn 1.2.3 x86_64\n", "/usr/bin/posthorn 100755\n", "/etc/posthorn.env 100600\n", "/usr/lib/systemd/system/posthorn-web.service 100644\n",
		"/usr/share/zsh/site-functions/_posthorn 100644\n",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it lacks %q:\n%s", want, said)
		}
	}
	if said = with(t, "rpm", "-qp", "--nosignature", "--scripts", rpm); !strings.Contains(said, "systemd-sysusers posthorn.conf") {
		t.Errorf("its scripts are %s", said)
	}
	if said = with(t, "rpm", "-qpc", "--nosignature", rpm); strings.TrimSpace(said) != "/etc/posthorn.env" {
		t.Errorf("its configuration is %s", said)
	}
}

func TestAPackageHasAVersionWhateverTheCommitIs(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.2.3":              "v1.2.3",
		"1.2.3-rc.1":          "1.2.3-rc.1",
		"54ae91f":             "0.0.0-dev.54ae91f",
		"54ae91f-dirty":       "0.0.0-dev.54ae91f.dirty",
		"v1.2.3-4-g54ae91f-x": "v1.2.3-4-g54ae91f-x",
	} {
		if got := packageVersion(version); got != want {
			t.Errorf("%s becomes %s, want %s", version, got, want)
		}
	}
}
