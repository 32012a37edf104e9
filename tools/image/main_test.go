package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// made writes an image of a program of a few bytes, and returns where. Its size is no multiple of a block of tar.
func made(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "posthorn")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho posthorn "+strings.Repeat("x", 1000)+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "image")
	i := image{
		version:  "v1.2.3",
		revision: "0123456789abcdef0123456789abcdef01234567",
		source:   "https://example.com/posthorn",
		at:       time.Unix(1767225600, 0).UTC(),
	}
	if err := i.write(out, []string{"linux/amd64=" + program, "linux/arm64=" + program}); err != nil {
		t.Fatal(err)
	}
	return out
}

// run runs a program of other people, or skips the test where it is not installed.
func run(t *testing.T, name string, args ...string) string {
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

// layer unpacks the archive for docker load with tar, and returns its layer.
func layer(t *testing.T, image string) string {
	t.Helper()
	into := t.TempDir()
	run(t, "tar", "-xf", filepath.Join(image, "posthorn-linux-amd64.tar"), "-C", into)
	layers, err := filepath.Glob(filepath.Join(into, "*.tar.gz"))
	if err != nil || len(layers) != 1 {
		t.Fatalf("layers %v, %v", layers, err)
	}
	return layers[0]
}

// Go's reader takes an archive without its end. Scanners, converters and tar itself don't.
func TestTheLayerIsAWholeTar(t *testing.T) {
	t.Parallel()
	image := made(t)
	for _, reader := range [][]string{
		{"tar", "-tzf"},
		{"bsdtar", "-tzf"},
		{"python3", "-c", "import sys, tarfile\nfor m in tarfile.open(sys.argv[1]):\n  print(m.name, m.mtime)"},
	} {
		t.Run(reader[0], func(t *testing.T) {
			t.Parallel()
			args := append([]string{}, reader[1:]...)
			args = append(args, layer(t, image))
			if said := run(t, reader[0], args...); !strings.Contains(said, "posthorn") {
				t.Errorf("no program in it:\n%s", said)
			}
		})
	}
}

func TestTarUnpacksTheProgramWithItsMode(t *testing.T) {
	t.Parallel()
	image, into := made(t), t.TempDir()
	run(t, "tar", "-xzf", layer(t, image), "-C", into, "--no-same-owner")
	info, err := os.Stat(filepath.Join(into, "posthorn"))
	if err != nil || info.Mode().Perm() != 0o755 || !info.ModTime().Equal(time.Unix(1767225600, 0)) {
		t.Fatalf("%v %v", info, err)
	}
	if said := run(t, filepath.Join(into, "posthorn")); !strings.HasPrefix(said, "posthorn x") {
		t.Errorf("the program says %q", said)
	}
}

// What skopeo reads of the layout is what a registry and a scanner see.
func TestSkopeoReadsTheDateAndTheLabels(t *testing.T) {
	t.Parallel()
	image := made(t)
	into := filepath.Join(t.TempDir(), "copied")
	run(t, "skopeo", "--override-os", "linux", "--override-arch", "arm64", "--insecure-policy", "copy", "oci:"+filepath.Join(image, "oci"), "dir:"+into)
	var seen struct {
		Created      time.Time
		Architecture string
		Labels       map[string]string
	}
	said := run(t, "skopeo", "inspect", "--override-os", "linux", "--override-arch", "arm64", "oci:"+filepath.Join(image, "oci"))
	if err := json.Unmarshal([]byte(said), &seen); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if !seen.Created.Equal(time.Unix(1767225600, 0)) || seen.Architecture != "arm64" {
		t.Errorf("created %v for %s", seen.Created, seen.Architecture)
	}
	for name, want := range map[string]string{
		"revision": "0123456789abcdef0123456789abcdef01234567",
		"source":   "https://example.com/posthorn",
		"version":  "v1.2.3",
		"created":  "2026-01-01T00:00:00Z",
	} {
		if got := seen.Labels["org.opencontainers.image."+name]; got != want {
			t.Errorf("label %s is %q, want %q", name, got, want)
		}
	}
	if said = run(t, "skopeo", "inspect", "--raw", "oci:"+filepath.Join(image, "oci")); !strings.Contains(said, `"org.opencontainers.image.revision":"0123456789abcdef`) {
		t.Errorf("the index has no annotations:\n%s", said)
	}
}

func TestTheSameSourcesGiveTheSameImage(t *testing.T) {
	t.Parallel()
	first, second := made(t), made(t)
	err := filepath.WalkDir(first, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(first, path)
		run(t, "cmp", path, filepath.Join(second, name))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
