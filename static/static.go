// Package static holds what browsers load beside the pages: one style sheet, one script of Posthorn's own, htmx,
// images.
//
// Every file's address carries a hash of its content (URL), so it may be kept for ever and a new version is fetched
// at once. Nothing is built: the parts of a bundle are joined and compressed when the process first needs them.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

//go:embed css docs js img portal vendor
var files embed.FS

// Prefix is where Serve is mounted: Prefix + hash + "/" + name.
const Prefix = "/static/"

// bundles are the files that browsers load, each joined from the parts that match its patterns, in their order.
var bundles = []struct {
	name, mime string
	parts      []string
}{
	{"app.css", "text/css; charset=utf-8", []string{"css/*.css"}},
	{"app.js", "text/javascript; charset=utf-8", []string{"js/*.js"}},
	{"docs.js", "text/javascript; charset=utf-8", []string{"docs/*.js"}},
	{"vendor.js", "text/javascript; charset=utf-8", []string{"vendor/htmx.min.js", "vendor/idiomorph-ext.min.js"}},
	{"portal.js", "text/javascript; charset=utf-8", []string{"portal/*.js"}},
	{"favicon.svg", "image/svg+xml", []string{"img/favicon.svg"}},
}

// asset is one file as it is served.
type asset struct {
	mime        string
	hash        string // 16 hexadecimal digits of the SHA-256
	body, small []byte // small is gzip
}

var assets = sync.OnceValue(func() map[string]asset {
	all := make(map[string]asset, len(bundles))
	for _, b := range bundles {
		body, err := join(b.parts)
		if err != nil {
			panic(fmt.Sprintf("static: %s: %v", b.name, err)) // what is embedded exists: TestEveryBundleHasItsParts
		}
		sum := sha256.Sum256(body)
		all[b.name] = asset{mime: b.mime, hash: hex.EncodeToString(sum[:8]), body: body, small: compress(body)}
	}
	return all
})

// remark is the indentation of a line of our own scripts, and the line if it is a comment. Line numbers stay.
var remark = regexp.MustCompile(`(?m)^[ \t]+(?://.*)?|^//.*`)

func join(patterns []string) ([]byte, error) {
	var out bytes.Buffer
	for _, pattern := range patterns {
		names, err := fs.Glob(files, pattern)
		if err != nil || len(names) == 0 {
			return nil, fmt.Errorf("nothing matches %s: %w", pattern, err)
		}
		for _, name := range names {
			text, err := files.ReadFile(name)
			if err != nil {
				return nil, err
			}
			if path.Dir(name) == "js" {
				text = remark.ReplaceAll(text, nil)
			}
			out.Write(text)
			if path.Ext(name) == ".js" {
				out.WriteString(";") // a minified file can end without one
			}
			out.WriteByte('\n')
		}
	}
	return out.Bytes(), nil
}

func compress(body []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil // a buffer accepts everything; without it the plain body is served
	}
	return out.Bytes()
}

// URL is the address of a file: /static/4f1c9a02b3d4e5f6/app.css. An unknown name is a bug.
func URL(name string) string {
	a, ok := assets()[name]
	if !ok {
		panic("static: there is no file " + name)
	}
	return Prefix + a.hash + "/" + name
}

// Serve responds to GET and HEAD below Prefix. An address with another hash (a page of another version, while several
// processes are replaced one by one) gets the present file, which is then not cached.
func Serve(w http.ResponseWriter, r *http.Request) {
	hash, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, Prefix), "/")
	a, ok := assets()[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	keep := "public, max-age=31536000, immutable"
	if hash != a.hash {
		keep = "no-store"
	}
	write(w, r, a, keep)
}

// PortalPath is the address of the web component that shows a portal within a provider's page. It has no hash, because
// other sites load it.
const PortalPath = "/portal.js"

// ServePortal serves the web component.
func ServePortal(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
	write(w, r, assets()["portal.js"], "public, max-age=3600")
}

// ServeIcon serves /favicon.ico, which browsers request by themselves.
func ServeIcon(w http.ResponseWriter, r *http.Request) {
	write(w, r, assets()["favicon.svg"], "public, max-age=86400")
}

func write(w http.ResponseWriter, r *http.Request, a asset, keep string) {
	h := w.Header()
	h.Set("Content-Type", a.mime)
	h.Set("Cache-Control", keep)
	h.Set("ETag", `"`+a.hash+`"`)
	h.Add("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == `"`+a.hash+`"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := a.body
	if AcceptsGzip(r.Header.Get("Accept-Encoding")) && a.small != nil && len(a.small) < len(a.body) {
		body = a.small
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the caller has disconnected
	}
}

// AcceptsGzip reports whether an Accept-Encoding header names gzip with a weight above 0.
func AcceptsGzip(header string) bool {
	for offer := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(offer), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			value, ok := strings.CutPrefix(strings.TrimSpace(weight), "q=")
			q, err := strconv.ParseFloat(value, 64)
			return !ok || err != nil || q > 0
		}
	}
	return false
}
