package history

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// storeTries is how often a request to the store is tried before a day counts as failed. The day is tried again later.
const storeTries = 3

// bucket is a store that uses the S3 protocol.
type bucket struct {
	client       *minio.Client
	name, prefix string
}

func openBucket(name, prefix string, w Where) (Store, error) {
	endpoint := w.Endpoint
	if endpoint == "" {
		endpoint = "https://s3.amazonaws.com"
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || strings.Trim(u.Path, "/") != "" {
		return nil, errors.New("has an endpoint that is not a web address without a path")
	}
	// The configured keys, or those of the machine: AWS_ACCESS_KEY_ID, a role of the instance or of the pod.
	keys := credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.IAM{}})
	if w.Key != "" {
		keys = credentials.NewStaticV4(w.Key, w.Secret, "")
	}
	lookup := minio.BucketLookupAuto
	if w.Endpoint != "" {
		lookup = minio.BucketLookupPath
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = time.Minute
	client, err := minio.New(u.Host, &minio.Options{
		Creds:        keys,
		Secure:       u.Scheme == "https",
		Region:       w.Region,
		BucketLookup: lookup,
		MaxRetries:   storeTries,
		Transport:    transport,
	})
	if err != nil {
		return nil, err
	}
	if prefix != "" {
		prefix += "/"
	}
	return bucket{client, name, prefix}, nil
}

func (s bucket) Put(ctx context.Context, name string, body []byte) error {
	_, err := s.client.PutObject(
		ctx,
		s.name,
		s.prefix+name,
		bytes.NewReader(body),
		int64(len(body)),
		minio.PutObjectOptions{ContentType: "application/octet-stream", DisableMultipart: true},
	)
	return err
}

func (s bucket) Get(ctx context.Context, name string, most int64) ([]byte, error) {
	object, err := s.client.GetObject(ctx, s.name, s.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = object.Close() }()
	body, err := io.ReadAll(io.LimitReader(object, most+1))
	if err == nil && int64(len(body)) > most {
		err = errTooLarge
	}
	return body, err
}

func (s bucket) Range(ctx context.Context, name string, from, n int64) ([]byte, error) {
	var options minio.GetObjectOptions
	if err := options.SetRange(from, from+n-1); err != nil {
		return nil, err
	}
	object, err := s.client.GetObject(ctx, s.name, s.prefix+name, options)
	if err != nil {
		return nil, err
	}
	defer func() { _ = object.Close() }()
	return io.ReadAll(io.LimitReader(object, n))
}

func (s bucket) URL() string { return "s3://" + s.name + "/" + s.prefix }

func (s bucket) Delete(ctx context.Context, name string) error {
	return s.client.RemoveObject(ctx, s.name, s.prefix+name, minio.RemoveObjectOptions{})
}

func (s bucket) List(ctx context.Context, prefix string) (names []string, err error) {
	for o := range s.client.ListObjectsIter(ctx, s.name, minio.ListObjectsOptions{
		Prefix:    s.prefix + prefix,
		Recursive: true,
	}) {
		if o.Err != nil {
			return nil, o.Err
		}
		names = append(names, strings.TrimPrefix(o.Key, s.prefix))
	}
	return names, nil
}
