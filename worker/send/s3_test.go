package send

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"posthorn/db"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/signature"
	"posthorn/tools/s3test"
)

func s3To(s *s3test.Server) *endpoint.S3Connection {
	return &endpoint.S3Connection{
		Server:      s.URL,
		Region:      "us-east-1",
		Bucket:      s3test.Bucket,
		PathStyle:   true,
		Key:         "hooks/dt={date}/{endpoint}/{id}",
		AccessKeyID: s3test.Key,
		SecretKey:   s3test.Secret,
	}
}

// bucketDestination is an endpoint of the kind s3.
func bucketDestination(t *testing.T, to *endpoint.S3Connection) (*Sender, *Destination) {
	t.Helper()
	d := someDestination(t, "http://127.0.0.1:1/")
	d.kind, d.to, d.batch = endpoint.S3, to, endpoint.Settings{Kind: endpoint.S3}.Batch()
	return newTestSender(t), d
}

// oneOf is an event in a batch.
func oneOf(data string) Message {
	m := someMessage(data)
	m.Delivery = db.NewID()
	return m
}

// objects are all objects of the bucket, by their names.
func objects(t *testing.T, s *s3test.Server) (names []string, of func(string) ([]byte, minio.ObjectInfo)) {
	t.Helper()
	c := s.Client(t)
	for o := range c.ListObjectsIter(t.Context(), s3test.Bucket, minio.ListObjectsOptions{Recursive: true}) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		names = append(names, o.Key)
	}
	return names, func(name string) ([]byte, minio.ObjectInfo) {
		o, err := c.GetObject(t.Context(), s3test.Bucket, name, minio.GetObjectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(o)
		if err != nil {
			t.Fatal(err)
		}
		info, err := o.Stat()
		if err != nil {
			t.Fatal(err)
		}
		return body, info
	}
}

// TestABatchIsAnObjectOfLines: signed in its metadata, under the name of its template, compressed or not.
func TestABatchIsAnObjectOfLines(t *testing.T) {
	t.Parallel()
	s := s3test.Run(t, "../../bin")
	for _, zipped := range []bool{false, true} {
		to := s3To(s)
		to.Gzip, to.Key = zipped, fmt.Sprintf("zipped-%t/dt={date}/hour={hour}/{endpoint}/{id}", zipped)
		sender, d := bucketDestination(t, to)
		events := []Message{
			oneOf("{\n  \"total\": 42\r\n}"), oneOf(`{"text":"a\nb"}`), oneOf(`"x"`),
		}
		for range 2 { // the second attempt overwrites the first
			for i, sent := range sender.DeliverBatch(t.Context(), d, events) {
				if sent.Result.Status != 200 || sent.Result.Failure != delivery.FailNone || sent.Attempt.Total == 0 || !strings.Contains(string(sent.Attempt.ResponseExcerpt), `"key"`) {
					t.Fatalf("event %d: %+v, %s, %s", i, sent.Result, sent.Attempt.Error, sent.Attempt.ResponseExcerpt)
				}
			}
		}
		names, read := objects(t, s)
		var name string
		for _, n := range names {
			if strings.HasPrefix(n, to.Address()[len("s3://"+to.Bucket+"/"):]) {
				if name != "" {
					t.Fatalf("two objects: %v", names)
				}
				name = n
			}
		}
		body, info := read(name)
		oldest := events[0].Delivery.Time().UTC()
		if want := oldest.Format("dt=2006-01-02/hour=15/") + d.Endpoint + "/" + oldest.Format("20060102T150405.000Z") + "-"; !strings.Contains(name, want) {
			t.Errorf("the name %s has not %s", name, want)
		}
		if zipped {
			if !strings.HasSuffix(name, ".ndjson.gz") || info.ContentType != "application/gzip" {
				t.Errorf("%s is %s", name, info.ContentType)
			}
			r, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		} else if !strings.HasSuffix(name, ".ndjson") || info.ContentType != "application/x-ndjson" {
			t.Errorf("%s is %s", name, info.ContentType)
		}
		lines := strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
		if len(lines) != len(events) {
			t.Fatalf("%d lines:\n%s", len(lines), body)
		}
		for i, line := range lines {
			var e struct {
				ID   string
				Type string
				Data json.RawMessage
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.ID != events[i].EventID || len(e.Data) == 0 {
				t.Errorf("line %d is %s, %v", i, line, err)
			}
		}
		header := func(name string) string { return info.UserMetadata[http.CanonicalHeaderKey(name)] }
		if err := (signature.Wire{Format: signature.Standard}).Verify(header, body, []string{signature.NewSecret([32]byte{1})}, time.Now(), time.Minute); err != nil {
			t.Errorf("%v: %v", err, info.UserMetadata)
		}
	}
}

// TestTheNameOfAnObjectIsThatOfItsDeliveries: in any order, and of no others.
func TestTheNameOfAnObjectIsThatOfItsDeliveries(t *testing.T) {
	t.Parallel()
	a, b, c := db.NewID(), db.NewID(), db.NewID()
	at, digest := objectOf([]id.UUID{a, b, c})
	if again, same := objectOf([]id.UUID{c, a, b}); same != digest || !again.Equal(at) || !at.Equal(a.Time()) {
		t.Errorf("%s %v and %s %v", digest, at, same, again)
	}
	if _, other := objectOf([]id.UUID{a, b}); other == digest {
		t.Error("other deliveries have the same name")
	}
}

// TestEachTroubleOfABucketIsItsOwnReason, on a real server.
func TestEachTroubleOfABucketIsItsOwnReason(t *testing.T) {
	t.Parallel()
	s := s3test.Run(t, "../../bin")
	for _, tt := range []struct {
		name   string
		change func(*endpoint.S3Connection)
		status int
		error  string
	}{
		{"no bucket", func(to *endpoint.S3Connection) { to.Bucket = "missing" }, 404, "NoSuchBucket"},
		{"another key", func(to *endpoint.S3Connection) { to.AccessKeyID = "nobody" }, 401, "XAdminUserNotFound"},
		{"another secret", func(to *endpoint.S3Connection) { to.SecretKey = "wrong" }, 401, "SignatureDoesNotMatch"},
	} {
		to := s3To(s)
		tt.change(to)
		sender, d := bucketDestination(t, to)
		sent := sender.DeliverBatch(t.Context(), d, []Message{oneOf(`1`)})[0]
		if sent.Result.Status != tt.status || !strings.Contains(sent.Attempt.Error, tt.error) || strings.Contains(sent.Attempt.Error+string(sent.Attempt.ResponseExcerpt), s3test.Secret) {
			t.Errorf("%s: %+v, %s", tt.name, sent.Result, sent.Attempt.Error)
		}
	}
}

// TestResponsesOfAStoreAreTranslated: those that the real server does not give.
func TestResponsesOfAStoreAreTranslated(t *testing.T) {
	t.Parallel()
	coded := func(code string) string { return "<Error><Code>" + code + "</Code><Message>because</Message></Error>" }
	for _, tt := range []struct {
		status  int
		body    string
		want    int
		failure delivery.Failure
		error   string
	}{
		{403, coded("AccessDenied"), 403, delivery.FailNone, "AccessDenied"},
		{503, coded("SlowDown"), 429, delivery.FailNone, "SlowDown"},
		{403, coded("RequestTimeTooSkewed"), 500, delivery.FailNone, "RequestTimeTooSkewed"},
		{400, coded("AuthorizationHeaderMalformed"), 401, delivery.FailNone, "AuthorizationHeaderMalformed"},
		{301, coded("PermanentRedirect"), 404, delivery.FailNone, "PermanentRedirect"},
		{307, "", 404, delivery.FailNone, "PermanentRedirect"},
		{400, coded("MetadataTooLarge"), 422, delivery.FailNone, "MetadataTooLarge"},
		{400, coded("EntityTooLarge"), 413, delivery.FailNone, "EntityTooLarge"},
		{500, coded("InternalError"), 503, delivery.FailNone, "InternalError"},
		{503, "<html>busy", 503, delivery.FailNone, "ServiceUnavailable"},
		{429, "", 429, delivery.FailNone, "SlowDown"},
		{200, "", 0, delivery.FailProtocol, "does not use the protocol"}, // without an ETag
		{404, "<html>no such page", 0, delivery.FailProtocol, "does not use the protocol"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.body)
		}))
		to := s3To(&s3test.Server{URL: server.URL})
		sender, d := bucketDestination(t, to)
		sent := sender.DeliverBatch(t.Context(), d, []Message{oneOf(`1`)})[0]
		if sent.Result.Status != tt.want || sent.Result.Failure != tt.failure || !strings.Contains(sent.Attempt.Error, tt.error) {
			t.Errorf("%d %s: %+v, %s", tt.status, tt.body, sent.Result, sent.Attempt.Error)
		}
		if sent.Result.Status != 0 && sent.Result != delivery.OfS3(tt.error) {
			t.Errorf("%s is %+v", tt.error, sent.Result)
		}
		server.Close()
	}
}

// TestAVerificationWritesOneObjectThatTablesSkip: with permission to write alone, and however often.
func TestAVerificationWritesOneObjectThatTablesSkip(t *testing.T) {
	t.Parallel()
	s := s3test.Run(t, "../../bin")
	sender, d := bucketDestination(t, s3To(s))
	for range 2 {
		if status, detail, ok := sender.Check(t.Context(), d); !ok || status != 200 || detail != "" {
			t.Fatalf("%d %s", status, detail)
		}
	}
	names, read := objects(t, s)
	if want := "hooks/_posthorn_" + d.Endpoint + ".ndjson"; len(names) != 1 || names[0] != want {
		t.Fatalf("the objects are %v, want %s", names, want)
	}
	if body, _ := read(names[0]); !bytes.HasSuffix(body, []byte("}\n")) || bytes.Count(body, []byte("\n")) != 1 {
		t.Errorf("it is %s", body)
	}
	s.Stop()
	if _, detail, ok := sender.Check(t.Context(), d); ok || !strings.Contains(detail, "Writing to the bucket failed: connection refused") {
		t.Errorf("without a server: %s", detail)
	}
}
