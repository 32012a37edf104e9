// Command release packs what was built into the files of a release: an archive for each platform, a deb and an rpm for
// Linux, the image, the chart and the SDKs as they are, an SBOM, the notes of the version, and the checksums of all of
// it. The same input gives the same bytes.
//
//	release -version v1.2.3 -time 1767225600 -out bin/release -binaries bin/build -changelog CHANGELOG.md files...
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// release is what a release is made of.
type release struct {
	version   string
	at        time.Time // of the commit; every file in an archive has it
	out       string
	binaries  string // a folder of posthorn-OS-ARCH
	changelog string
	beside    []string // files that each archive has beside the program
	extra     []string // files that are released as they are

	systemd     []string // unit files, for Linux
	completions []string // of shells, for all but Windows
}

func main() {
	log.SetFlags(0)
	var r release
	flag.StringVar(&r.version, "version", "", "version, from the tag")
	seconds := flag.Int64("time", 0, "time of the commit, seconds since 1970")
	flag.StringVar(&r.out, "out", "bin/release", "folder of the result; it is replaced")
	flag.StringVar(&r.binaries, "binaries", "bin/release-build", "folder of the programs")
	flag.StringVar(&r.changelog, "changelog", "CHANGELOG.md", "where the notes are cut from")
	beside := flag.String("beside", "README.md,CHANGELOG.md", "files that each archive has beside the program")
	systemd := flag.String("systemd", "", "folder with unit files, *.service")
	completions := flag.String("completions", "", "folder with the completions of shells")
	flag.Parse()
	r.at, r.beside, r.extra = time.Unix(*seconds, 0).UTC(), strings.Split(*beside, ","), flag.Args()
	r.systemd, _ = filepath.Glob(filepath.Join(*systemd, "*.service")) // the pattern is well-formed
	r.completions, _ = filepath.Glob(filepath.Join(*completions, "*posthorn*"))
	if err := r.write(); err != nil {
		log.Fatal("release: ", err)
	}
}

var versions = regexp.MustCompile(`^v?[0-9A-Za-z][0-9A-Za-z.+-]*$`)

// write writes the whole release.
func (r release) write() error {
	if !versions.MatchString(r.version) {
		return fmt.Errorf("%q is not a version, such as v1.2.3", r.version)
	}
	programs, err := filepath.Glob(filepath.Join(r.binaries, "posthorn-*"))
	if err != nil || len(programs) == 0 {
		return errors.Join(err, fmt.Errorf("there is no program in %s", r.binaries))
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	slices.Sort(programs)
	for _, program := range programs {
		if err := errors.Join(r.archive(program), r.packages(program)); err != nil {
			return err
		}
	}
	for _, path := range r.extra {
		if err := r.take(path); err != nil {
			return err
		}
	}
	sbom, err := r.sbom(programs)
	if err != nil {
		return err
	}
	changes, err := os.ReadFile(r.changelog)
	if err != nil {
		return err
	}
	notes, err := notesOf(string(changes), r.version)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"posthorn-" + r.version + ".spdx.json": sbom, "NOTES.md": []byte(notes)} {
		if err := os.WriteFile(filepath.Join(r.out, name), content, 0o644); err != nil {
			return err
		}
	}
	return r.checksums()
}

// archive packs one program: a zip for Windows, a compressed tar for others.
func (r release) archive(program string) error {
	platform := strings.TrimPrefix(strings.TrimSuffix(filepath.Base(program), ".exe"), "posthorn-")
	folder := "posthorn-" + r.version + "-" + platform
	windows := strings.HasSuffix(program, ".exe")
	files := []file{{name: folder + "/posthorn", mode: 0o755, path: program}}
	if windows {
		files[0].name += ".exe"
	}
	add := func(below string, paths []string) {
		for _, path := range paths {
			files = append(files, file{name: folder + below + filepath.Base(path), mode: 0o644, path: path})
		}
	}
	add("/", r.beside)
	if strings.HasPrefix(platform, "linux-") {
		add("/systemd/", r.systemd)
	}
	if !windows {
		add("/completions/", r.completions)
	}
	for i := range files {
		content, err := os.ReadFile(files[i].path)
		if err != nil {
			return err
		}
		files[i].content = content
	}
	var packed []byte
	var err error
	name := folder + ".tar.gz"
	if windows {
		name = folder + ".zip"
		packed, err = zipped(files, r.at)
	} else {
		packed, err = tarred(files, r.at)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, name), packed, 0o644)
}

// file is one file in an archive.
type file struct {
	name, path string
	mode       int64
	content    []byte
}

func tarred(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	packer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(packer)
	for _, f := range files {
		header := &tar.Header{
			Name:    f.name,
			Mode:    f.mode,
			Size:    int64(len(f.content)),
			ModTime: at,
			Format:  tar.FormatPAX,
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.content); err != nil {
			return nil, err
		}
	}
	err = errors.Join(archive.Close(), packer.Close())
	return out.Bytes(), err
}

func zipped(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(os.FileMode(f.mode))
		entry, err := archive.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return out.Bytes(), err
}

// take copies a file. What is in a .tgz gets the release's time: the packer of the chart writes the time of packing.
func (r release) take(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if strings.HasSuffix(path, ".tgz") {
		files, err := untarred(content)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if content, err = tarred(files, r.at); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(r.out, filepath.Base(path)), content, 0o644)
}

// mostUnpacked bounds the archives that are taken: they are Posthorn's own.
const mostUnpacked = 1 << 28

func untarred(packed []byte) (files []file, err error) {
	unpacker, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	archive := tar.NewReader(io.LimitReader(unpacker, mostUnpacked))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: header.Name, mode: header.Mode & 0o777, content: content})
	}
}

// notesOf returns the notes of a version: its section of the changelog, or the unreleased changes if it has none.
func notesOf(changes, version string) (string, error) {
	sections := map[string]string{}
	var name string
	for line := range strings.Lines(changes) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			name, _, _ = strings.Cut(strings.Trim(strings.TrimSpace(title), "[]"), " ")
			continue
		}
		sections[name] += line
	}
	for _, candidate := range []string{version, strings.TrimPrefix(version, "v"), "Unreleased"} {
		if text := strings.TrimSpace(sections[candidate]); text != "" {
			return "# Posthorn " + version + "\n\n" + text + "\n", nil
		}
	}
	return "", fmt.Errorf("the changelog has neither a section %s nor one that is unreleased", version)
}

// checksums writes SHA256SUMS as `sha256sum --check` reads it.
func (r release) checksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
