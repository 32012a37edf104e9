// Package history keeps closed days of tenants in an object store: it exports them, deletes them from the database once
// the objects are verified, and restores them (docs/adr/0023-history-elsewhere.md).
package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Store keeps objects under names with slashes. Its errors contain no credentials.
type Store interface {
	Put(ctx context.Context, name string, body []byte) error
	// Get returns an object of at most so many bytes.
	Get(ctx context.Context, name string, most int64) ([]byte, error)
	// Range returns n bytes of an object, or fewer at its end.
	Range(ctx context.Context, name string, from, n int64) ([]byte, error)
	// Delete deletes an object. A missing object is no error.
	Delete(ctx context.Context, name string) error
	// List returns the names with a prefix. The prefix ends in a slash.
	List(ctx context.Context, prefix string) ([]string, error)
	// URL is where other programs find the objects: the name of an object follows it.
	URL() string
}

// Where says where objects are kept.
type Where struct {
	URL      string // s3://bucket/prefix, or file:///folder
	Endpoint string // of S3: https://s3.eu-central-1.amazonaws.com
	Region   string
	Key      string
	Secret   string
}

var errTooLarge = errors.New("the object is larger than it was when it was written")

// Open returns the store of a place. It connects to nothing.
func Open(w Where) (Store, error) {
	u, err := url.Parse(w.URL)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("is not s3://bucket/prefix or file:///folder")
	}
	var store Store
	switch {
	case u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path):
		store, err = openFolder(u.Path)
	case u.Scheme == "s3" && u.Host != "":
		store, err = openBucket(u.Host, strings.Trim(u.Path, "/"), w)
	default:
		err = errors.New("is not s3://bucket/prefix or file:///folder")
	}
	if err != nil {
		return nil, err
	}
	return named{store}, nil
}

// named says in each error of a store what was done with which object.
type named struct{ store Store }

func (n named) Put(ctx context.Context, name string, body []byte) error {
	return during("store", name, n.store.Put(ctx, name, body))
}

func (n named) Get(ctx context.Context, name string, most int64) ([]byte, error) {
	body, err := n.store.Get(ctx, name, most)
	return body, during("read", name, err)
}

func (n named) Range(ctx context.Context, name string, from, size int64) ([]byte, error) {
	body, err := n.store.Range(ctx, name, from, size)
	return body, during("read", name, err)
}

func (n named) URL() string { return n.store.URL() }

func (n named) Delete(ctx context.Context, name string) error {
	return during("delete", name, n.store.Delete(ctx, name))
}

func (n named) List(ctx context.Context, prefix string) ([]string, error) {
	names, err := n.store.List(ctx, prefix)
	return names, during("list", prefix, err)
}

func during(what, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, name, err)
}

// folder is a store on a file system, such as one that all workers mount.
type folder struct {
	root *os.Root
	path string
}

func openFolder(path string) (Store, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("names a folder that can't be opened: %w", err)
	}
	return folder{root, path}, nil
}

func (s folder) URL() string { return (&url.URL{Scheme: "file", Path: s.path}).String() + "/" }

// Put writes a temporary file and renames it, so that a partial object is never visible.
func (s folder) Put(_ context.Context, name string, body []byte) error {
	if err := s.root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	part := name + ".part"
	f, err := s.root.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := s.root.Rename(part, name); err != nil {
		return err
	}
	dir, err := s.root.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (s folder) Get(_ context.Context, name string, most int64) ([]byte, error) {
	info, err := s.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, errTooLarge
	}
	return s.root.ReadFile(name)
}

func (s folder) Range(_ context.Context, name string, from, n int64) ([]byte, error) {
	f, err := s.root.Open(name)
	if err != nil {
		return nil, err
	}
	body := make([]byte, n)
	got, err := f.ReadAt(body, from)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return body[:got], errors.Join(err, f.Close())
}

// Delete also removes what a Put left that was killed.
func (s folder) Delete(_ context.Context, name string) error {
	for _, file := range []string{name, name + ".part"} {
		if err := s.root.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	// The folder of a day is deleted with its last object.
	_ = s.root.Remove(filepath.Dir(name))
	return nil
}

func (s folder) List(_ context.Context, prefix string) (names []string, err error) {
	dir, err := s.root.Open(strings.TrimSuffix(prefix, "/"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := dir.ReadDir(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := prefix + e.Name()
		if !e.IsDir() {
			names = append(names, name)
			continue
		}
		below, err := s.List(context.Background(), name+"/")
		if err != nil {
			return nil, err
		}
		names = append(names, below...)
	}
	return names, nil
}
