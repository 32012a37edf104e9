package embedded

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"posthorn/domain/fault"
)

// nowhere is a machine without PostgreSQL.
func nowhere() *places { return &places{offline: true} }

// fakeBinaries is a folder with a postgres that only prints a version.
func fakeBinaries(t *testing.T, version string) string {
	t.Helper()
	dir := testDir(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "initdb"} {
		script := "#!/bin/sh\necho '" + name + " (PostgreSQL) " + version + "'\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestMissingPostgreSQLIsExplainedForEverySystem(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, testDir(t))
	cfg.places = nowhere()
	_, err := Start(testContext(t), cfg)
	e := fault.As(err)
	if e == nil || e.Code != "postgres_not_found" {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		"apt-get install postgresql", "dnf install postgresql-server", "apk add postgresql", "brew install postgresql",
		"POSTHORN_POSTGRES_ARCHIVE", "POSTHORN_DATABASE_URL",
	} {
		if !strings.Contains(e.Detail, want) {
			t.Errorf("%q is missing in: %s", want, e.Detail)
		}
	}
}

func TestTooOldPostgreSQLIsNamedAndNotUsed(t *testing.T) {
	t.Parallel()
	old := fakeBinaries(t, "13.21 (Debian 13.21-1)")
	cfg := testConfig(t, testDir(t))
	cfg.places = &places{path: old, offline: true}
	_, err := Start(testContext(t), cfg)
	e := fault.As(err)
	if e == nil || !strings.Contains(e.Detail, "13.21, older than 14 in "+old) {
		t.Errorf("got %v", err)
	}
	// A usable one is found after it.
	cfg.places = &places{path: old + ":" + programs.dir, offline: true}
	start(t, cfg)
}

func TestClusterIsOpenedOnlyByTheVersionThatMadeIt(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, testDir(t))
	c := start(t, cfg)
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	newer := fakeBinaries(t, "99.1")
	cfg.places = &places{path: newer, offline: true}
	_, err := Start(testContext(t), cfg)
	e := fault.As(err)
	if e == nil || e.Code != "postgres_version_missing" || !strings.Contains(e.Detail, "99.1 in "+newer) {
		t.Errorf("got %v", err)
	}
}

func TestNewestFolderWinsAndPATHPrecedesAll(t *testing.T) {
	t.Parallel()
	l, err := prepare(testDir(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.removeForeignSockets)
	base := testDir(t)
	for _, v := range []string{"9.6", "14", "17", "16"} {
		if err := os.MkdirAll(filepath.Join(base, v), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(fakeBinaries(t, v+".1"), filepath.Join(base, v, "bin")); err != nil {
			t.Fatal(err)
		}
	}
	linked := filepath.Join(testDir(t), "links")
	if err := os.MkdirAll(linked, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(fakeBinaries(t, "15.3"), "postgres"), filepath.Join(linked, "postgres")); err != nil {
		t.Fatal(err)
	}
	folders := []string{filepath.Join(base, "*", "bin")}
	for _, c := range []struct {
		path string
		want int
		got  string
	}{{"", 0, "17.1"}, {linked, 0, "15.3"}, {linked, 16, "16.1"}, {"relative:/nonexistent:" + linked, 0, "15.3"}} {
		b, err := l.findBinaries(testContext(t), Config{places: &places{path: c.path, folders: folders, offline: true}}, c.want)
		if err != nil || b.version != c.got {
			t.Errorf("PATH %q, wanted major %d: got %+v, %v", c.path, c.want, b, err)
		}
	}
}

// machineArchive packs the tests' PostgreSQL into a .tar.gz, as an operator would: programs, libraries and shared files
// at their relative paths.
var machineArchive = sync.OnceValues(func() ([]byte, error) {
	files, err := sharedFiles(programs)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	gz, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	tw := tar.NewWriter(gz)
	dirs := []string{filepath.Dir(programs.dir)}
	if !strings.HasPrefix(files, dirs[0]) {
		dirs = append(dirs, files)
	}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if e.IsDir() && (e.Name() == "bitcode" || e.Name() == "man" || e.Name() == "locale" || e.Name() == "pgxs") {
				return fs.SkipDir
			}
			return packEntry(tw, path)
		})
		if err != nil {
			return nil, err
		}
	}
	err = errors.Join(tw.Close(), gz.Close())
	return out.Bytes(), err
})

// sharedFiles is the distribution's folder with postgres.bki and similar files.
func sharedFiles(b binaries) (string, error) {
	home := filepath.Dir(b.dir)
	for _, dir := range []string{
		strings.Replace(home, "/lib/", "/share/", 1),
		filepath.Join(home, "share", "postgresql"), filepath.Join(home, "share"), "/usr/share/pgsql",
	} {
		if _, err := os.Stat(filepath.Join(dir, "postgres.bki")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("no shared files found for " + b.dir)
}

func packEntry(tw *tar.Writer, path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil || filepath.IsAbs(link) {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name = strings.TrimPrefix(path, "/")
	if err := tw.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, err = tw.Write(content)
	return err
}

func archiveFile(t *testing.T) (path, sum string) {
	t.Helper()
	archive, err := machineArchive()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "postgres.tar.gz")
	if err := os.WriteFile(path, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(archive)
	return path, hex.EncodeToString(digest[:])
}

func TestLocalArchiveIsInstalledWhereTheMachineHasNothing(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, testDir(t))
	cfg.places = nowhere()
	cfg.Archive, cfg.ArchiveSHA256 = archiveFile(t)
	c := start(t, cfg)
	if !strings.HasPrefix(c.binaries.dir, c.layout.binaries) || ask(t, c.URL(), "SELECT 'here'") != "here" {
		t.Errorf("the server runs from %s", c.binaries.dir)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	// The second start does not need the archive.
	cfg.Archive = ""
	start(t, cfg)
}

func TestJarOfMavenCentralIsUnpacked(t *testing.T) {
	t.Parallel()
	l, err := prepare(testDir(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.removeForeignSockets)
	cfg := testConfig(t, l.home)
	cfg.places = nowhere()
	cfg.Archive = filepath.Join("testdata", "tiny.jar") // a .txz with a postgres that prints its version
	b, err := l.findBinaries(testContext(t), cfg, 0)
	if err != nil || b.version != "16.4" || !strings.HasPrefix(b.dir, l.binaries) {
		t.Errorf("got %+v, %v", b, err)
	}
}

func TestArchiveWithAnotherChecksumIsRefusedAndLeavesNothing(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, testDir(t))
	cfg.places = nowhere()
	cfg.Archive, _ = archiveFile(t)
	cfg.ArchiveSHA256 = strings.Repeat("0", 64)
	_, err := Start(testContext(t), cfg)
	if e := fault.As(err); e == nil || e.Code != "postgres_archive_refused" || !strings.Contains(e.Detail, "checksum") {
		t.Errorf("got %v", err)
	}
	left, err := os.ReadDir(newLayout(cfg.DataDir).binaries)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestArchiveFromTheNetworkNeedsHTTPSAndAChecksum(t *testing.T) {
	t.Parallel()
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(server.Close)
	for name, c := range map[string]struct{ url, sum string }{
		"http":        {server.URL + "/postgres.tar.gz", strings.Repeat("0", 64)},
		"no checksum": {"https://127.0.0.1:1/postgres.tar.gz", ""},
	} {
		_, err := openArchive(testContext(t), c.url, c.sum)
		if e := fault.As(err); e == nil || e.Code != "postgres_archive_refused" {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if asked {
		t.Error("the archive was asked for all the same")
	}
}

func TestHostileArchivesWriteNothingOutside(t *testing.T) {
	t.Parallel()
	entries := map[string][]tar.Header{
		"parent":        {{Name: "../out", Typeflag: tar.TypeReg}},
		"link out":      {{Name: "l", Linkname: "../..", Typeflag: tar.TypeSymlink}},
		"absolute link": {{Name: "l", Linkname: "/etc", Typeflag: tar.TypeSymlink}},
		"hard link out": {{Name: "l", Linkname: "../../etc/passwd", Typeflag: tar.TypeLink}},
		"overwrite":     {{Name: "f", Typeflag: tar.TypeReg}, {Name: "f", Typeflag: tar.TypeReg}},
	}
	for name, headers := range entries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var archive bytes.Buffer
			tw := tar.NewWriter(&archive)
			for _, h := range headers {
				h.Format = tar.FormatUSTAR
				if err := tw.WriteHeader(&h); err != nil {
					t.Fatal(err)
				}
			}
			if err := tw.Close(); err != nil {
				t.Fatal(err)
			}
			if err := unpack(bytes.NewReader(archive.Bytes()), int64(archive.Len()), t.TempDir()); err == nil {
				t.Error("unpacked without an error")
			}
		})
	}
	for name, content := range map[string]string{"nothing": "", "text": "hello", "damaged gzip": "\x1f\x8b\x08\x00", "damaged zip": "PK\x03\x04junk"} {
		if err := unpack(strings.NewReader(content), int64(len(content)), t.TempDir()); err == nil {
			t.Errorf("%s: unpacked without an error", name)
		}
	}
}
