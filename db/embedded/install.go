package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"posthorn/domain/fault"
)

// maxArchive bounds the size of a download; PostgreSQL's archives have 10 to 60 MB.
const maxArchive = 512 << 20

// installArchive installs the configured archive and returns its folder. It rejects a checksum that does not match
// before it unpacks anything.
func (l *layout) installArchive(ctx context.Context, cfg Config) (string, error) {
	want := strings.ToLower(strings.TrimSpace(cfg.ArchiveSHA256))
	source, err := openArchive(ctx, cfg.Archive, want)
	if err != nil {
		return "", err
	}
	defer func() { _ = source.Close() }()
	cfg.Log.Info("installing PostgreSQL", "archive", cfg.Archive)
	dir, err := l.install(source, want)
	if err != nil {
		return "", archiveFault(cfg.Archive, err)
	}
	return dir, nil
}

func archiveFault(name string, cause error) error {
	if fault.As(cause) != nil {
		return cause
	}
	return &fault.Error{
		Kind:   fault.Invalid,
		Code:   "postgres_archive_refused",
		Cause:  cause,
		Detail: "The PostgreSQL archive " + name + " can't be used. Check POSTHORN_POSTGRES_ARCHIVE and POSTHORN_POSTGRES_ARCHIVE_SHA256 (sha256sum prints it).",
	}
}

// openArchive opens a local file or an https URL. A download requires a checksum; plain http is rejected.
func openArchive(ctx context.Context, name, sum string) (io.ReadCloser, error) {
	u, err := url.Parse(name)
	if err != nil || u.Host == "" {
		f, err := os.Open(strings.TrimPrefix(name, "file://"))
		if err != nil {
			return nil, archiveFault(name, err)
		}
		return f, nil
	}
	if u.Scheme != "https" || sum == "" {
		return nil, archiveFault(name, errors.New("an archive on the network needs https and a checksum"))
	}
	client := &http.Client{
		Timeout: 10 * time.Minute,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Scheme != "https" || len(via) > 5 {
				return errors.New("redirected away from https, or too often")
			}
			return nil
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, name, nil)
	if err != nil {
		return nil, archiveFault(name, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, archiveFault(name, err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, archiveFault(name, errors.New("the server responded with "+resp.Status))
	}
	return resp.Body, nil
}

// install copies an archive to its own file and hashes it, compares the sum, unpacks to a temporary folder beside the
// final one, and renames it. So a crash leaves nothing that looks complete. sum can be empty.
func (l *layout) install(source io.Reader, sum string) (string, error) {
	if err := makeDir(l.binaries, account{}); err != nil {
		return "", err
	}
	if err := openFolder(l.binaries); err != nil {
		return "", err
	}
	archive, err := os.CreateTemp(l.binaries, ".archive-*")
	if err != nil {
		return "", err
	}
	defer func() {
		_ = archive.Close()
		_ = os.Remove(archive.Name())
	}()
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(archive, hash), io.LimitReader(source, maxArchive+1))
	if err != nil {
		return "", err
	}
	if size > maxArchive {
		return "", fmt.Errorf("larger than %d MB", maxArchive>>20)
	}
	got := hex.EncodeToString(hash.Sum(nil))
	if sum != "" && got != sum {
		return "", fault.New(
			fault.Invalid,
			"postgres_archive_refused",
			"The PostgreSQL archive has the SHA-256 checksum "+got+", not "+sum+" as required. Nothing was installed.",
		)
	}
	fresh, err := os.MkdirTemp(l.binaries, ".unpack-*")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	if err := unpack(archive, size, fresh); err != nil {
		return "", fmt.Errorf("unpacking: %w", err)
	}
	if err := openFolder(fresh); err != nil {
		return "", err
	}
	if programFolder(fresh) == "" {
		return "", errors.New("no folder in it holds postgres and initdb")
	}
	dir := filepath.Join(l.binaries, got[:16])
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.Rename(fresh, dir)
}

// openFolder lets the server's account read a folder of programs. If Posthorn is an ordinary user, the account is its
// own.
func openFolder(dir string) error {
	if !isRoot() {
		return nil
	}
	return os.Chmod(dir, 0o755)
}

// programFolder finds the folder below dir that holds postgres and initdb; "" if there is none.
func programFolder(dir string) string {
	found := ""
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir
		}
		if e.IsDir() && e.Name() != filepath.Base(dir) && strings.HasPrefix(e.Name(), ".") {
			return fs.SkipDir
		}
		if !e.IsDir() && e.Name() == "postgres" {
			at := filepath.Dir(path)
			if info, err := os.Stat(filepath.Join(at, "initdb")); err == nil && info.Mode().IsRegular() {
				found = at
				return fs.SkipAll
			}
		}
		return nil
	})
	return found
}
