package send

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

const s3MaxResponse = 64 << 10 // bytes read

// s3Transport writes objects to buckets of Amazon S3: one of each batch.
type s3Transport struct{ awsClient }

func newS3Transport(g *guard) *s3Transport { return &s3Transport{newAWSClient(g)} }

func (*s3Transport) configure(s endpoint.Settings, _ *egress.Proxy) (any, error) {
	to, ok := s.Connection.(*endpoint.S3Connection)
	if !ok || to == nil {
		return nil, errors.New("the endpoint has no S3 connection")
	}
	return to, nil
}

func (b *s3Transport) deliver(ctx context.Context, t *Destination, p *request, a *queue.Attempt) delivery.Result {
	at, digest := objectOf(p.parts)
	return b.write(ctx, t, p, t.to.(*endpoint.S3Connection).Object(t.Endpoint, at, digest)).record(a)
}

func (b *s3Transport) verify(ctx context.Context, t *Destination, p *request, _ challenge) (status int, detail string, verified bool) {
	return b.write(ctx, t, p, t.to.(*endpoint.S3Connection).Probe(t.Endpoint)).verified("bucket")
}

// objectOf is what names an object: the time of the oldest delivery in it, and a digest of all. The same deliveries
// write the same object, in whatever order and however often.
func objectOf(parts []id.UUID) (oldest time.Time, digest string) {
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(a, b id.UUID) int { return bytes.Compare(a[:], b[:]) })
	h := sha256.New()
	for i, part := range parts {
		if at := part.Time(); i == 0 || at.Before(oldest) {
			oldest = at
		}
		_, _ = h.Write(part[:])
	}
	return oldest, hex.EncodeToString(h.Sum(nil)[:16])
}

func (b *s3Transport) write(ctx context.Context, t *Destination, p *request, key string) said {
	to := t.to.(*endpoint.S3Connection)
	ph := &phases{began: time.Now(), plain: strings.HasPrefix(to.Server, "http://")}
	bounded, cancel := context.WithTimeout(context.WithValue(ctx, phasesKey{}, ph), t.timeout)
	defer cancel()
	return b.put(bounded, t, p, key).timed(ctx, ph)
}

// put writes an object once. The signature in its metadata is that of the lines, compressed or not.
func (b *s3Transport) put(ctx context.Context, t *Destination, p *request, key string) said {
	to := t.to.(*endpoint.S3Connection)
	body, contentType := p.body, p.contentType
	if to.Gzip {
		body, contentType = zip(body), "application/gzip"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, to.URL(key).String(), bytes.NewReader(body))
	if err != nil {
		return unusable(time.Now())
	}
	sum := sha256.Sum256(body)
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
	r.Header.Set("X-Amz-Checksum-Sha256", base64.StdEncoding.EncodeToString(sum[:])) // which a bucket with locks needs
	for _, some := range [][]signature.Header{t.headers, p.headers} {
		for _, h := range some {
			r.Header.Set("X-Amz-Meta-"+h.Name, h.Value)
		}
	}
	status, header, text, err := b.do(ctx, r, body, awsService{"s3", to.Region, to.AccessKeyID, to.SecretKey}, s3MaxResponse)
	switch {
	case errors.Is(err, errUnusable):
		return unusable(time.Now())
	case err != nil:
		return awsFailed(ctx, err)
	}
	return s3Said(status, header, text, key)
}

// zip compresses. The same bytes become the same bytes.
func zip(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // a buffer's errors are panics
	_ = w.Close()
	return out.Bytes()
}

// s3Said reads a response of S3.
func s3Said(status int, header http.Header, text []byte, key string) said {
	if etag := strings.Trim(header.Get("ETag"), `"`); status == http.StatusOK && etag != "" {
		kept := map[string]string{"key": key, "etag": etag}
		if version := header.Get("X-Amz-Version-Id"); version != "" {
			kept["version_id"] = version
		}
		return said{result: delivery.OfS3(""), excerpt: excerpt(kept)}
	}
	var answer struct {
		Code    string
		Message string
	}
	broken := xml.Unmarshal(text, &answer) != nil || answer.Code == "" || len(answer.Code) > 40
	switch {
	case broken && status >= 300 && status < 400:
		answer.Code = "PermanentRedirect"
	case broken && status == http.StatusTooManyRequests:
		answer.Code = "SlowDown"
	case broken && status >= 500:
		answer.Code = "ServiceUnavailable"
	case broken || status < 300:
		return said{result: delivery.Result{Failure: delivery.FailProtocol}, text: "the server does not use the protocol of S3"}
	}
	return said{
		result:  delivery.OfS3(answer.Code),
		text:    "the bucket returned " + answer.Code,
		excerpt: excerpt(map[string]string{"error": answer.Code, "description": answer.Message, "key": key}),
	}
}
