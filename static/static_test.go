package static

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, method, url string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, url, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	switch {
	case strings.HasPrefix(url, ThemePrefix):
		ServeTheme(w, r)
	case url == "/favicon.ico":
		ServeIcon(w, r)
	default:
		Serve(w, r)
	}
	return w.Result()
}

func TestEveryBundleHasItsParts(t *testing.T) {
	t.Parallel()
	for _, b := range bundles {
		if _, err := join(b.parts); err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
		answer := get(t, http.MethodGet, URL(b.name))
		body, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != 200 || len(body) == 0 || answer.Header.Get("Content-Type") != b.mime {
			t.Errorf("%s: %d, %d bytes, %s", b.name, answer.StatusCode, len(body), answer.Header.Get("Content-Type"))
		}
	}
	if _, err := join([]string{"css/*.none"}); err == nil {
		t.Error("a bundle without parts is made")
	}
}

func TestOnlyHashedFilesAreCachedForever(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		URL("app.css"):                      "public, max-age=31536000, immutable",
		Prefix + "0123456789abcdef/app.css": "no-store",
	} {
		answer := get(t, http.MethodGet, url)
		if got := answer.Header.Get("Cache-Control"); answer.StatusCode != 200 || got != want {
			t.Errorf("%s: %d, %q, want %q", url, answer.StatusCode, got, want)
		}
	}
	for _, url := range []string{Prefix, Prefix + "x", Prefix + "x/none.css", Prefix + "x/../static.go", Prefix + "x/css/1-tokens.css"} {
		if answer := get(t, http.MethodGet, url); answer.StatusCode != 404 {
			t.Errorf("%s: %d", url, answer.StatusCode)
		}
	}
}

func TestFilesAreSentCompressedToWhoTakesIt(t *testing.T) {
	t.Parallel()
	plain, _ := io.ReadAll(get(t, http.MethodGet, URL("vendor.js")).Body)
	answer := get(t, http.MethodGet, URL("vendor.js"), "Accept-Encoding", "br, gzip;q=0.8")
	unpacked, err := gzip.NewReader(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(unpacked); string(body) != string(plain) || len(body) == 0 {
		t.Errorf("compressed: %d bytes, plain %d", len(body), len(plain))
	}
	for header, want := range map[string]bool{"": false, "br": false, "gzip": true, "GZIP": true, "gzip;q=0": false, "deflate, gzip;q=1.0": true} {
		if got := AcceptsGzip(header); got != want {
			t.Errorf("%q: %t", header, got)
		}
	}
}

func TestHeadAndConditionalRequestsHaveNoBody(t *testing.T) {
	t.Parallel()
	full := get(t, http.MethodGet, URL("app.css"))
	head := get(t, http.MethodHead, URL("app.css"))
	if body, _ := io.ReadAll(head.Body); len(body) != 0 || head.Header.Get("Content-Length") != full.Header.Get("Content-Length") {
		t.Errorf("HEAD: %d bytes, length %s", len(body), head.Header.Get("Content-Length"))
	}
	if again := get(t, http.MethodGet, URL("app.css"), "If-None-Match", full.Header.Get("ETag")); again.StatusCode != 304 {
		t.Errorf("conditional: %d", again.StatusCode)
	}
	if icon := get(t, http.MethodGet, "/favicon.ico"); icon.Header.Get("Content-Type") != "image/svg+xml" {
		t.Errorf("icon: %s", icon.Header.Get("Content-Type"))
	}
}

func TestAnUnknownFileIsAMistakeOfTheProgram(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("an unknown file has an address")
		}
	}()
	URL("none.css")
}

var vendored = regexp.MustCompile("(?m)^\\| `(vendor/[^`]+)` \\| [^|]+ \\| [0-9.]+ \\| [^|]+ \\| [^|]+ \\| `([0-9a-f]{64})` \\|$")

func TestVendoredFilesAreThoseThatAreNamed(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("VENDORED.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]string{}
	for _, row := range vendored.FindAllStringSubmatch(string(list), -1) {
		named[row[1]] = row[2]
	}
	there, err := fs.Glob(files, "vendor/*")
	if err != nil || len(there) == 0 {
		t.Fatal(err)
	}
	for _, name := range there {
		body, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(body)
		if got := hex.EncodeToString(sum[:]); named[name] != got {
			t.Errorf("%s has the hash %s, VENDORED.md says %q", name, got, named[name])
		}
		delete(named, name)
	}
	if len(named) > 0 {
		t.Errorf("named and not there: %v", named)
	}
}

// A policy without unsafe-inline and unsafe-eval stops what these need.
func TestScriptsOfOurOwnEvaluateNothing(t *testing.T) {
	t.Parallel()
	own, err := join([]string{"js/*.js"})
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"eval(", "new Function", "innerHTML", "outerHTML", "document.write", "javascript:", ".style.", "setAttribute(\"style\""} {
		if strings.Contains(string(own), word) {
			t.Errorf("app.js contains %s", word)
		}
	}
}
