// Package s3test starts versitygw, which has the API of Amazon S3, for tests: on this machine alone, with its objects
// in files, so that they survive a restart.
package s3test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"posthorn/tools/need"
)

// The credentials of a server, and its bucket.
const (
	Key    = "posthorn-test"
	Secret = "a-secret-that-no-log-holds"
	Bucket = "events"
)

// Server is a versitygw.
type Server struct {
	URL string

	program, dir, address string
	cmd                   *exec.Cmd
}

// Run starts a server with a bucket that ends with the test. binaries are the folders where the program can be, beside
// the path.
func Run(t testing.TB, binaries ...string) *Server {
	t.Helper()
	s := &Server{dir: filepath.Join(t.TempDir(), "gateway")}
	for _, folder := range append(binaries, "") {
		if path, err := exec.LookPath(filepath.Join(folder, "versitygw")); err == nil && s.program == "" {
			s.program = path
		}
	}
	if s.program == "" {
		need.Missing(t, "bin/versitygw", "`make bin/versitygw` builds it, to test endpoints that are buckets.")
	}
	if err := os.MkdirAll(filepath.Join(s.dir, Bucket), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	_ = l.Close()
	s.URL = "http://" + s.address
	t.Cleanup(s.Stop)
	s.Start(t)
	return s
}

// Start starts a server that was stopped, with its objects, and waits until it responds.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	s.cmd = exec.Command(s.program, "--port", s.address, "--access", Key, "--secret", Secret, "--quiet", "posix", s.dir)
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) { // a poll: nothing tells when it listens
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = response.Body.Close()
			return
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}

// Stop kills the server. Its objects stay.
func (s *Server) Stop() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// Client is a client of the server.
func (s *Server) Client(t testing.TB) *minio.Client {
	t.Helper()
	c, err := minio.New(s.address, &minio.Options{Creds: credentials.NewStaticV4(Key, Secret, ""), BucketLookup: minio.BucketLookupPath})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
