// Command image writes Posthorn's container image without a container engine: the static binary for each platform,
// the certificates of public authorities, and nothing else. The same sources give the same bytes.
//
//	image -out bin/image -time 1767225600 -revision 54ae91f linux/amd64=path linux/arm64=path
//
// It writes an OCI layout with one index of all platforms, and one archive per platform that `docker load` and
// `podman load` read.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// The image runs as this user, which owns nothing but its data directory.
const user = 65532

// image is what the images of all platforms have in common.
type image struct {
	version  string
	revision string    // the commit; empty: unknown
	source   string    // where the sources are; empty: unknown
	at       time.Time // of the commit
}

func main() {
	log.SetFlags(0)
	var i image
	out := flag.String("out", "bin/image", "folder of the result; it is replaced")
	flag.StringVar(&i.version, "version", "dev", "version in the labels and the tag")
	flag.StringVar(&i.revision, "revision", "", "commit in the labels")
	flag.StringVar(&i.source, "source", "", "URL of the sources in the labels")
	seconds := flag.Int64("time", 0, "time of the commit, seconds since 1970")
	flag.Parse()
	i.at = time.Unix(*seconds, 0).UTC()
	if err := i.write(*out, flag.Args()); err != nil {
		log.Fatal("image: ", err)
	}
}

// write writes an archive for each binary, and a layout of all of them.
func (i image) write(out string, binaries []string) error {
	if len(binaries) == 0 {
		return errors.New("give at least one binary, such as linux/amd64=bin/posthorn")
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	tag, err := name.NewTag("posthorn:" + i.version)
	if err != nil {
		return err
	}
	for _, each := range binaries {
		platformName, path, ok := strings.Cut(each, "=")
		if !ok {
			return fmt.Errorf("%q is not platform=path", each)
		}
		platform, err := v1.ParsePlatform(platformName)
		if err != nil {
			return err
		}
		built, err := i.build(*platform, path)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        built,
			Descriptor: v1.Descriptor{Platform: platform},
		})
		if err := os.MkdirAll(out, 0o755); err != nil {
			return err
		}
		archive := filepath.Join(out, "posthorn-"+strings.ReplaceAll(platformName, "/", "-")+".tar")
		if err := tarball.WriteToFile(archive, tag, built); err != nil {
			return err
		}
		digest, err := built.Digest()
		if err != nil {
			return err
		}
		fmt.Println(archive, digest)
	}
	// Registries and scanners read the annotations of the index, engines the labels of the configuration.
	annotated, ok := mutate.Annotations(index, i.labels()).(v1.ImageIndex)
	if !ok {
		return errors.New("the index can't be annotated")
	}
	// The folder has one entry, the index of both platforms: readers that find several ask which one is meant.
	folder, err := layout.Write(filepath.Join(out, "oci"), empty.Index)
	if err != nil {
		return err
	}
	return folder.AppendIndex(annotated)
}

// labels say what the image is, in the names of the OCI image specification.
func (i image) labels() map[string]string {
	labels := map[string]string{
		"org.opencontainers.image.title":       "Posthorn",
		"org.opencontainers.image.version":     i.version,
		"org.opencontainers.image.description": "Multi-tenant webhook delivery over PostgreSQL",
		"org.opencontainers.image.vendor":      "Posthorn",
		"org.opencontainers.image.created":     i.at.Format(time.RFC3339),
	}
	if i.revision != "" {
		labels["org.opencontainers.image.revision"] = i.revision
	}
	if i.source != "" {
		labels["org.opencontainers.image.source"] = i.source
	}
	return labels
}

func (i image) build(platform v1.Platform, path string) (v1.Image, error) {
	files, err := i.files(path)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	plain := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	built, err := mutate.AppendLayers(plain, layer)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(built, &v1.ConfigFile{
		Architecture: platform.Architecture,
		OS:           platform.OS,
		Variant:      platform.Variant,
		Created:      v1.Time{Time: i.at},
		History: []v1.History{{
			Created:   v1.Time{Time: i.at},
			CreatedBy: "make image",
		}},
		RootFS: v1.RootFS{Type: "layers", DiffIDs: diffIDs(layer)},
		Config: v1.Config{
			User:         fmt.Sprintf("%d:%d", user, user),
			Entrypoint:   []string{"/posthorn"},
			Cmd:          []string{"serve"},
			WorkingDir:   "/data",
			Env:          []string{"PATH=/", "POSTHORN_DATA_DIR=/data", "POSTHORN_ADDR=0.0.0.0:8080", "POSTHORN_METRICS_ADDR=0.0.0.0:9090"},
			ExposedPorts: map[string]struct{}{"8080/tcp": {}, "9090/tcp": {}},
			StopSignal:   "SIGTERM",
			Healthcheck: &v1.HealthConfig{
				Test:        []string{"CMD", "/posthorn", "ready"},
				Interval:    10 * time.Second,
				Timeout:     3 * time.Second,
				StartPeriod: time.Minute,
				Retries:     3,
			},
			Labels: i.labels(),
		},
	})
}

func diffIDs(layer v1.Layer) []v1.Hash {
	id, err := layer.DiffID()
	if err != nil {
		return nil // the layer's opener cannot fail
	}
	return []v1.Hash{id}
}

// files is the image's only layer as a tar: directories, then files, all of the commit's time.
func (i image) files(binary string) ([]byte, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	passwd := fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\nposthorn:x:%d:%d:posthorn:/data:/sbin/nologin\n", user, user)
	group := fmt.Sprintf("root:x:0:\nposthorn:x:%d:\n", user)
	entries := []struct {
		name string
		mode int64
		uid  int
		text []byte // nil: a directory
	}{
		{name: "data/", mode: 0o700, uid: user},
		{name: "etc/", mode: 0o755},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "tmp/", mode: 0o1777},
		{name: "etc/group", mode: 0o644, text: []byte(group)},
		{name: "etc/passwd", mode: 0o644, text: []byte(passwd)},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, text: roots.Bytes()},
		{name: "posthorn", mode: 0o755, text: program},
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		header := &tar.Header{
			Name:     e.name,
			Mode:     e.mode,
			Uid:      e.uid,
			Gid:      e.uid,
			Size:     int64(len(e.text)),
			ModTime:  i.at,
			Format:   tar.FormatPAX,
			Typeflag: tar.TypeReg,
		}
		if e.text == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.text); err != nil {
			return nil, err
		}
	}
	// Close writes the end of the archive, without which tar rejects it.
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
