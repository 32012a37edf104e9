package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"posthorn/domain/fault"
)

const otherMasterKey = "Hx4dHBsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA="

// createEndpoint stores a secret that is sealed under the program's master key.
func createEndpoint(t *testing.T, url, key string) {
	t.Helper()
	body := `{"url":"https://example.com/hooks","event_types":["*"]}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/endpoints", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		t.Fatal(res.Status)
	}
}

func TestAMasterKeyThatCannotOpenWhatIsStoredIsRefused(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	var m made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
	p := program(t, environ, Parts{Web: true})
	createEndpoint(t, p.URL(), m.APIKey)
	for keys, code := range map[string]string{
		testMasterKey:                        "",
		otherMasterKey + "," + testMasterKey: "",
		otherMasterKey:                       "master_key_missing",
	} {
		cfg, err := loadConfig([]string{"POSTHORN_MASTER_KEY=" + keys, "POSTHORN_DATABASE_URL=" + databaseURL(t, environ)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = openRing(t.Context(), &cfg, &store{url: databaseURL(t, environ)}, openTest(t, environ))
		if (err != nil) != (code != "") || code != "" && !fault.Is(err, code) {
			t.Errorf("got %v, want %q", err, code)
		}
		if err != nil && strings.Contains(err.Error(), keys) {
			t.Errorf("the refusal holds the key: %v", err)
		}
	}
}

func TestALostMasterKeyFileIsNotReplacedByANewKey(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	environ := append(slices.Clone(anyPorts), "POSTHORN_DATA_DIR="+dir)
	var m made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
	cfg, err := loadConfig(environ)
	if err != nil {
		t.Fatal(err)
	}
	p := &Program{Config: cfg, Parts: Parts{Web: true}, Log: silent}
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	createEndpoint(t, p.URL(), m.APIKey)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, masterKeyFile)
	kept, err := os.ReadFile(path)
	if err != nil || os.Remove(path) != nil {
		t.Fatal(err)
	}
	if r := command(t, environ, "web"); r.code != exitUsage || !strings.Contains(r.stderr, path+" is missing") {
		t.Errorf("without its key: exit code %d\n%s", r.code, r.stderr)
	}
	if err := os.WriteFile(path, []byte("junk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := command(t, environ, "web"); r.code != exitUsage || !strings.Contains(r.stderr, path+" does not hold") {
		t.Errorf("with junk: exit code %d\n%s", r.code, r.stderr)
	}
	if err := os.WriteFile(path, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	p = &Program{Config: cfg, Parts: Parts{Web: true}, Log: silent}
	if err := p.Run(t.Context()); err != nil {
		t.Fatalf("with its key again: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestOneMasterKeyIsMadeHoweverManyStartAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), masterKeyFile)
	var made sync.Map
	var starts sync.WaitGroup
	for range 20 {
		starts.Go(func() {
			text, err := makeMasterKey(path)
			if err != nil {
				t.Error(err)
			}
			made.Store(string(text), true)
		})
	}
	starts.Wait()
	count := 0
	made.Range(func(any, any) bool { count++; return true })
	files, err := os.ReadDir(filepath.Dir(path))
	if count != 1 || err != nil || len(files) != 1 {
		t.Errorf("%d keys, files %v, %v", count, files, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestTheMasterKeyIsRotatedByACommandWhilePosthornRuns(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	var m made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
	p := program(t, environ, Parts{Web: true})
	createEndpoint(t, p.URL(), m.APIKey)
	both := []string{"POSTHORN_DATABASE_URL=" + databaseURL(t, environ), "POSTHORN_MASTER_KEY=" + otherMasterKey + "," + testMasterKey}
	var rotated struct {
		KeyID    string `json:"key_id"`
		Resealed int    `json:"resealed"`
	}
	succeed(t, both, &rotated, "master-key", "rotate", "--json")
	if rotated.Resealed != 1 || len(rotated.KeyID) != 8 {
		t.Errorf("%+v", rotated)
	}
	if said := succeed(t, both, nil, "master-key", "rotate"); !strings.Contains(said, "0 secrets") || !strings.Contains(said, rotated.KeyID) {
		t.Errorf("the second time it said %s", said)
	}
	// The old key can be removed, and alone it opens nothing any more.
	for keys, want := range map[string]bool{otherMasterKey: true, testMasterKey: false} {
		cfg, err := loadConfig([]string{"POSTHORN_MASTER_KEY=" + keys, "POSTHORN_DATABASE_URL=" + databaseURL(t, environ)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := openRing(t.Context(), &cfg, &store{url: databaseURL(t, environ)}, openTest(t, environ)); (err == nil) != want {
			t.Errorf("opened %t: %v", err == nil, err)
		}
	}
}
