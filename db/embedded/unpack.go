package embedded

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/xi2/xz"
)

// Bounds of an archive's content, far above any PostgreSQL's, so that a wrong file can't fill the disk.
const (
	maxUnpacked = 2 << 30
	maxEntries  = 50_000
)

// unpack recognizes an archive by its first bytes: gzip or xz around tar, plain tar, or the zip of a Maven artifact (a
// jar) around a .txz.
func unpack(r io.ReaderAt, size int64, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return unpackInto(root, io.NewSectionReader(r, 0, size))
}

func unpackInto(root *os.Root, archive *io.SectionReader) error {
	head := make([]byte, 262)
	n, err := archive.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return unpackJar(root, archive)
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		gz, err := gzip.NewReader(archive)
		if err != nil {
			return err
		}
		return unpackTar(root, gz)
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		x, err := xz.NewReader(archive, 0)
		if err != nil {
			return err
		}
		return unpackTar(root, x)
	case len(head) == 262 && string(head[257:262]) == "ustar":
		return unpackTar(root, archive)
	}
	return errors.New("neither .tar.gz nor .tar.xz nor a jar with a .txz")
}

func unpackJar(root *os.Root, archive *io.SectionReader) error {
	z, err := zip.NewReader(archive, archive.Size())
	if err != nil {
		return err
	}
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, ".txz") && !strings.HasSuffix(f.Name, ".tar.xz") {
			continue
		}
		inner, err := f.Open()
		if err != nil {
			return err
		}
		x, err := xz.NewReader(inner, 0)
		if err == nil {
			err = unpackTar(root, x)
		}
		return errors.Join(err, inner.Close())
	}
	return errors.New("the zip holds no .txz")
}

// unpackTar writes folders, files and links. os.Root rejects every path that leaves the folder, through ".." or through
// a link; owners and set-id bits of the archive are ignored.
func unpackTar(root *os.Root, r io.Reader) error {
	tr := tar.NewReader(r)
	left := int64(maxUnpacked)
	for range maxEntries {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Clean(strings.TrimPrefix(h.Name, "/"))
		if name == "." {
			continue
		}
		if left -= h.Size; left < 0 {
			return fmt.Errorf("more than %d MB", maxUnpacked>>20)
		}
		if err := unpackEntry(root, name, h, tr); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return fmt.Errorf("more than %d files", maxEntries)
}

func unpackEntry(root *os.Root, name string, h *tar.Header, content io.Reader) error {
	const folder = 0o755
	if err := root.MkdirAll(path.Dir(name), folder); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, folder)
	case tar.TypeReg:
		mode := fs.FileMode(0o644)
		if h.FileInfo().Mode()&0o111 != 0 {
			mode = 0o755
		}
		f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		// Set the mode again: the umask possibly removed rights of the server's account.
		return errors.Join(err, f.Chmod(mode), f.Close())
	case tar.TypeSymlink:
		target := path.Join(path.Dir(name), h.Linkname)
		if path.IsAbs(h.Linkname) || !filepath.IsLocal(target) {
			return errors.New("a link that leaves the archive")
		}
		return root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		return root.Link(path.Clean(strings.TrimPrefix(h.Linkname, "/")), name)
	}
	return nil // devices, pipes and extension headers are skipped
}
