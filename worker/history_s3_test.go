package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"posthorn/tools/need"
	"posthorn/worker/history"
)

const (
	s3Key    = "posthorn-test"
	s3Secret = "a-secret-that-no-log-holds"
)

// s3 starts an S3 server with a bucket, and returns its address.
func s3(t *testing.T) string {
	t.Helper()
	binary, err := exec.LookPath("../bin/versitygw")
	if err != nil {
		binary, err = exec.LookPath("versitygw")
	}
	if err != nil {
		need.Missing(t, "bin/versitygw", "`make bin/versitygw` builds it, to test history with S3.")
	}
	// A port below those that the system gives out, so that no other test takes it before it is used.
	address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
	folder := filepath.Join(t.TempDir(), "gateway")
	if err := os.MkdirAll(filepath.Join(folder, "bucket"), 0o700); err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(context.Background(), binary, "--port", address, "--access", s3Key, "--secret", s3Secret, "--quiet", "posix", folder)
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	eventually(t, 20*time.Second, "the S3 server responds", func() bool {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, nil)
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		return err == nil
	})
	client, err := minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(s3Key, s3Secret, "")})
	if err == nil {
		if there, asked := client.BucketExists(t.Context(), "bucket"); asked != nil || !there {
			err = client.MakeBucket(t.Context(), "bucket", minio.MakeBucketOptions{})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + address
}

func TestADayLeavesForS3AndComesBack(t *testing.T) {
	t.Parallel()
	store, err := history.Open(history.Where{URL: "s3://bucket/of/posthorn", Endpoint: s3(t), Region: "us-east-1", Key: s3Key, Secret: s3Secret})
	if err != nil {
		t.Fatal(err)
	}
	newHouse(t).leavesAndComesBack(store)
}

// A store that is down or rejects the key leaves the day in the database, and the recorded error contains no secret.
func TestAnS3ServerThatFailsLeavesTheDayWhereItIs(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	day := h.historyDay(tenant, h.endpoint(tenant, "http://127.0.0.1:1", nil), 5, 10)
	before := h.historyRows(tenant)
	address := s3(t)
	for name, where := range map[string]history.Where{
		"down":           {URL: "s3://bucket/a", Endpoint: "http://127.0.0.1:1", Region: "us-east-1", Key: s3Key, Secret: s3Secret},
		"another secret": {URL: "s3://bucket/a", Endpoint: address, Region: "us-east-1", Key: s3Key, Secret: s3Secret + "x"},
		"no bucket":      {URL: "s3://nothing/a", Endpoint: address, Region: "us-east-1", Key: s3Key, Secret: s3Secret},
	} {
		store, err := history.Open(where)
		if err != nil {
			t.Fatal(err)
		}
		h.work(h.keeper(store))
		state, why := h.historyState(tenant, day)
		if state != "exporting" || why == "" || strings.Contains(why, s3Secret) || h.historyRows(tenant) != before {
			t.Errorf("%s: the day is %s: %q", name, state, why)
		}
		h.exec("UPDATE history_days SET failed_at = NULL, failure = ''")
	}
}
