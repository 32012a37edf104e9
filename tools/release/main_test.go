package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdxlib"
)

// made is a small release: programs of this very module instead of Posthorn's, which take minutes to build.
func made(t *testing.T) release {
	t.Helper()
	dir := t.TempDir()
	for _, platform := range []string{"linux-amd64", "windows-arm64"} {
		system, arch, _ := strings.Cut(platform, "-")
		name := filepath.Join(dir, "build", "posthorn-"+platform)
		if system == "windows" {
			name += ".exe"
		}
		c := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", name, ".")
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
		c.Dir = "testdata/program"
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	chart, err := tarred([]file{{name: "posthorn/Chart.yaml", mode: 0o644, content: []byte("name: posthorn\n")}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return release{
		version:   "v1.2.3",
		at:        time.Unix(1767225600, 0).UTC(),
		out:       filepath.Join(dir, "out"),
		binaries:  filepath.Join(dir, "build"),
		changelog: write("CHANGELOG.md", []byte("# Changelog\n\n## Unreleased\n\n- Later.\n\n## 1.2.3 (2026-01-01)\n\n- **New.** A thing.\n\n## 1.2.2\n\n- Old.\n")),
		beside:    []string{write("README.md", []byte("read me"))},
		extra:     []string{write("posthorn-1.2.3.tgz", chart), write("image.tar", []byte("image"))},
		systemd: []string{
			write("posthorn-web.service", []byte("[Service]\nExecStart=/usr/local/bin/posthorn web\n")),
			write("posthorn-worker.service", []byte("[Service]\nExecStart=/usr/local/bin/posthorn worker\n")),
		},
		completions: []string{
			write("posthorn.bash", []byte("complete")),
			write("_posthorn", []byte("#compdef posthorn")),
			write("posthorn.fish", []byte("complete")),
		},
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestAReleaseIsWholeAndTheSameASecondTime(t *testing.T) {
	t.Parallel()
	r := made(t)
	if err := r.write(); err != nil {
		t.Fatal(err)
	}
	first := map[string][]byte{}
	sums := string(read(t, filepath.Join(r.out, "SHA256SUMS")))
	names := []string{
		"NOTES.md", "posthorn_1.2.3_amd64.deb", "posthorn-1.2.3-1.x86_64.rpm", "image.tar", "posthorn-1.2.3.tgz", "posthorn-v1.2.3-linux-amd64.tar.gz", "posthorn-v1.2.3-windows-arm64.zip", "posthorn-v1.2.3.spdx.json",
	}
	for _, name := range names {
		first[name] = read(t, filepath.Join(r.out, name))
		if !strings.Contains(sums, fmt.Sprintf("%x  %s\n", sha256.Sum256(first[name]), name)) {
			t.Errorf("the checksums lack %s:\n%s", name, sums)
		}
	}
	if strings.Count(sums, "\n") != len(names) {
		t.Errorf("checksums of more than there is:\n%s", sums)
	}
	// Packed at another time, the chart is the same file.
	chart, err := untarred(read(t, r.extra[0]))
	if err != nil {
		t.Fatal(err)
	}
	later, err := tarred(chart, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.extra[0], later, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.write(); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !bytes.Equal(read(t, filepath.Join(r.out, name)), first[name]) {
			t.Errorf("%s differs the second time", name)
		}
	}
	if notes := string(first["NOTES.md"]); notes != "# Posthorn v1.2.3\n\n- **New.** A thing.\n" {
		t.Errorf("notes: %q", notes)
	}
}

func TestArchivesHaveTheProgram(t *testing.T) {
	t.Parallel()
	r := made(t)
	if err := r.write(); err != nil {
		t.Fatal(err)
	}
	unpacker, err := gzip.NewReader(bytes.NewReader(read(t, filepath.Join(r.out, "posthorn-v1.2.3-linux-amd64.tar.gz"))))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, system := range []string{"linux-amd64.tar.gz"} {
		out, err := exec.CommandContext(t.Context(), "tar", "-tzf", filepath.Join(r.out, "posthorn-v1.2.3-"+system)).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(string(out)) {
			names[strings.TrimPrefix(name, "posthorn-v1.2.3-linux-amd64/")] = true
		}
	}
	for _, name := range []string{"README.md", "systemd/posthorn-web.service", "systemd/posthorn-worker.service", "completions/posthorn.bash", "completions/_posthorn", "completions/posthorn.fish"} {
		if !names[name] {
			t.Errorf("the archive lacks %s: %v", name, names)
		}
	}
	archive := tar.NewReader(unpacker)
	header, err := archive.Next()
	if err != nil || header.Name != "posthorn-v1.2.3-linux-amd64/posthorn" || header.Mode != 0o755 || !header.ModTime.Equal(r.at) {
		t.Errorf("%+v %v", header, err)
	}
	program := filepath.Join(r.binaries, "posthorn-windows-arm64.exe")
	zipped, err := zip.OpenReader(filepath.Join(r.out, "posthorn-v1.2.3-windows-arm64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer zipped.Close()
	if f := zipped.File[0]; f.Name != "posthorn-v1.2.3-windows-arm64/posthorn.exe" || f.UncompressedSize64 != uint64(len(read(t, program))) {
		t.Errorf("%+v", f.FileHeader)
	}
}

// The SBOM is one that the SPDX library reads, and has the modules that the program says it has.
func TestTheSBOMIsValidAndNamesTheModules(t *testing.T) {
	t.Parallel()
	r := made(t)
	if err := r.write(); err != nil {
		t.Fatal(err)
	}
	text := read(t, filepath.Join(r.out, "posthorn-v1.2.3.spdx.json"))
	doc, err := spdxjson.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(doc); err != nil {
		t.Error(err)
	}
	var found *spdx.Package
	ids := map[string]bool{}
	for _, p := range doc.Packages {
		if id := string(p.PackageSPDXIdentifier); ids[id] || !regexp.MustCompile(`^[A-Za-z0-9.-]+$`).MatchString(id) {
			t.Errorf("the id %s is there twice, or malformed", id)
		} else {
			ids[id] = true
		}
		if p.PackageName == "github.com/spdx/tools-golang" {
			found = p
		}
	}
	if found == nil || !strings.HasPrefix(found.PackageVersion, "v0.") || found.PackageExternalReferences[0].Locator != "pkg:golang/github.com/spdx/tools-golang@"+
		found.PackageVersion {
		t.Errorf("%+v", found)
	}
	var plain map[string]any
	if err := json.Unmarshal(text, &plain); err != nil || plain["spdxVersion"] != "SPDX-2.3" {
		t.Errorf("%v %v", plain["spdxVersion"], err)
	}
}

func TestNotesAreTheVersionsOwn(t *testing.T) {
	t.Parallel()
	changes := "## Unreleased\n\n- Later.\n\n## [v2.0.0]\n\n- Two.\n### Added\n- Three.\n"
	for version, want := range map[string]string{"v2.0.0": "- Two.\n### Added\n- Three.\n", "v2.1.0-3-gabc": "- Later.\n"} {
		if notes, err := notesOf(changes, version); err != nil || notes != "# Posthorn "+version+"\n\n"+want {
			t.Errorf("%s: %q %v", version, notes, err)
		}
	}
	if _, err := notesOf("# Changelog\n", "v1"); err == nil {
		t.Error("a release without notes")
	}
	if err := (release{version: "../x"}).write(); err == nil {
		t.Error("a version that is a path was taken")
	}
	if err := (release{version: "v1", binaries: t.TempDir()}).write(); err == nil {
		t.Error("a release without a program")
	}
}
