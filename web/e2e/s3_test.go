//go:build (e2e || soak) && unix

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"posthorn/domain/signature"
	"posthorn/tools/s3test"
)

// TestABucketReceivesWhatWasAcknowledged: thousands of events arrive in a bucket of a real S3 server, in signed objects
// of lines and in the order of their keys, through a restart of the server and a kill of the worker.
func TestABucketReceivesWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	s := s3test.Run(t, "../../bin")
	w := newWorld(t, func(*arrival) int { return 200 })
	web, worker := w.launch("web", "web").ready(), w.launch("worker", "worker").ready()
	w.serveAt(web)
	delays := make([]int, 20)
	for i := range delays {
		delays[i] = 2
	}
	var made struct{ ID, Secret string }
	w.manage(http.MethodPost, "/endpoints", settings{
		"kind": "s3",
		"s3": settings{
			"endpoint_url":      s.URL,
			"region":            "us-east-1",
			"bucket":            s3test.Bucket,
			"key_template":      "hooks/dt={date}/hour={hour}/{id}",
			"access_key_id":     s3test.Key,
			"secret_access_key": s3test.Secret,
		},
		"batch_max_events":  100,
		"batch_max_wait_ms": 500,
		"ordering":          "key",
		"max_in_flight":     10,
		"rate_limit":        nil,
		"retry_policy":      settings{"delays": delays},
	}, &made)
	eventually(t, patience, "the bucket is verified", func() bool {
		var now struct{ Status string }
		w.manage(http.MethodGet, "/endpoints/"+made.ID, nil, &now)
		return now.Status == "active"
	})
	const keys, perKey = 50, brokered / 50
	var clients sync.WaitGroup
	for k := range keys {
		clients.Go(func() {
			key := fmt.Sprintf("key-%d", k)
			for n := range perKey {
				w.emit(emission{Type: "orders", Key: key, Data: payload{Key: key, N: n}, idemp: fmt.Sprintf("%s/%d", key, n)})
			}
		})
	}
	part := func(n int) {
		eventually(t, 2*patience, "a part is delivered", func() bool { return w.ask("SELECT count(*) FROM deliveries WHERE status = 2") > n })
	}
	part(keys * perKey / 5)
	s.Stop()
	s.Start(t)
	part(keys * perKey * 2 / 5)
	worker.kill()
	w.launch("worker", "worker").ready()
	clients.Wait()
	t.Logf("finished %v after the last acknowledgment", w.settled(keys*perKey, 3*patience).Round(time.Millisecond))
	w.balanced(1)
	w.inBucket(s, made.Secret, keys*perKey)
}

// inBucket checks that each acknowledged event is a line of a signed object, and that the lines of an object are in the
// order of their keys.
func (w *world) inBucket(s *s3test.Server, secret string, events int) {
	w.t.Helper()
	client, acks := s.Client(w.t), w.acknowledgements()
	seen, objects, twice := map[string]bool{}, 0, 0
	for o := range client.ListObjectsIter(w.t.Context(), s3test.Bucket, minio.ListObjectsOptions{Prefix: "hooks/dt=", Recursive: true}) {
		if o.Err != nil {
			w.t.Fatal(o.Err)
		}
		object, err := client.GetObject(w.t.Context(), s3test.Bucket, o.Key, minio.GetObjectOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		body, err := io.ReadAll(object)
		if err != nil {
			w.t.Fatal(err)
		}
		info, err := object.Stat()
		if err != nil {
			w.t.Fatal(err)
		}
		header := func(name string) string { return info.UserMetadata[http.CanonicalHeaderKey(name)] }
		if err := (signature.Wire{Format: signature.Standard}).Verify(header, body, []string{secret}, info.LastModified, time.Minute); err != nil {
			w.t.Fatalf("%s does not verify: %v", o.Key, err)
		}
		objects++
		last := map[string]int{}
		for lines := bufio.NewScanner(strings.NewReader(string(body))); lines.Scan(); {
			var e struct {
				ID   string
				Data payload
			}
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				w.t.Fatalf("a line of %s: %v", o.Key, err)
			}
			if acks[fmt.Sprintf("%s/%d", e.Data.Key, e.Data.N)] != e.ID {
				w.t.Fatalf("nobody emitted %s", lines.Bytes())
			}
			if n, known := last[e.Data.Key]; known && e.Data.N <= n {
				w.t.Errorf("%s: %d comes after %d", e.Data.Key, e.Data.N, n)
			}
			if seen[e.ID] {
				twice++
			}
			seen[e.ID], last[e.Data.Key] = true, e.Data.N
		}
	}
	w.t.Logf("%d events in %d objects, %d of them twice", len(seen), objects, twice)
	if len(seen) != events || objects > events/2 {
		w.t.Errorf("%d events in %d objects, want %d", len(seen), objects, events)
	}
}
