package api_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"posthorn/domain/id"
)

func someBucket(more map[string]any) map[string]any {
	b := map[string]any{
		"bucket":            "acme-events",
		"region":            "eu-west-1",
		"access_key_id":     "AKIDEXAMPLE",
		"secret_access_key": "canary-secret",
	}
	for name, value := range more {
		b[name] = value
	}
	return map[string]any{"kind": "s3", "s3": b}
}

func TestABucketIsAnEndpointWhoseSecretNobodySees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	made := w.do("POST", "/api/v1/endpoints", tn.key, someBucket(map[string]any{"key_template": "hooks/dt={date}/{id}"})).want(http.StatusCreated)
	if made.text("url") != "s3://acme-events/hooks/" || made.text("s3.region") != "eu-west-1" || made.text("s3.access_key_id") != "AKIDEXAMPLE" ||
		made.text("verification") != "simple" || strings.Contains(string(made.Body), "canary") {
		t.Errorf("got %s", made.Body)
	}
	patch := func(change map[string]any) *answer {
		return w.do("PATCH", "/api/v1/endpoints/"+made.text("id"), tn.key, map[string]any{"s3": change})
	}
	patch(map[string]any{"secret_access_key": "***", "gzip": true, "key_template": "{id}"}).want(http.StatusOK)
	for _, change := range []map[string]any{
		{"endpoint_url": "https://evil.example.com"}, {"region": "us-east-1"}, {"bucket": "other"}, {"access_key_id": "OTHER"},
	} {
		patch(change).problem(http.StatusBadRequest, "s3_secret_needed", "s3.secret_access_key")
	}
	own := someBucket(map[string]any{"endpoint_url": "https://S3.example.com/"})
	if a := w.do("POST", "/api/v1/endpoints", tn.key, own).want(http.StatusCreated); a.text("s3.endpoint_url") != "https://s3.example.com" ||
		!strings.Contains(string(a.Body), `"path_style":true`) {
		t.Errorf("got %s", a.Body)
	}
	if n := one[int](w, "SELECT count(*)::int FROM endpoints WHERE id = $1 AND kind = 's3' AND connection IS NOT NULL AND position('canary'::bytea IN connection) = 0", w.uuid(id.Endpoint, made.text("id"))); n != 1 {
		t.Error("the connection is not sealed")
	}
}

func TestTheExampleOfTheS3PageMakesAnEndpoint(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/s3.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "\n```json\n")
	example, _, _ = strings.Cut(example, "```")
	w := newWorld(t)
	if a := w.do("POST", "/api/v1/endpoints", w.tenant("a").key, example).want(http.StatusCreated); a.text("s3.bucket") != "acme-events" {
		t.Errorf("got %s", a.Body)
	}
}

func TestAnInvalidBucketIsRejectedByField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	with := func(name string, value any) map[string]any { return someBucket(map[string]any{name: value}) }
	for _, tt := range []struct {
		body        map[string]any
		code, field string
	}{
		{map[string]any{"kind": "s3"}, "s3_missing", "s3"},
		{map[string]any{"url": hook, "s3": someBucket(nil)["s3"]}, "s3_unwanted", "s3"},
		{with("bucket", "Acme_Events"), "s3_bucket_malformed", "s3.bucket"},
		{with("bucket", "a..b"), "s3_bucket_malformed", "s3.bucket"},
		{with("region", "Europe"), "s3_region_malformed", "s3.region"},
		{with("endpoint_url", "https://s3.example.com/path"), "s3_endpoint_malformed", "s3.endpoint_url"},
		{with("endpoint_url", "https://a:b@s3.example.com"), "s3_endpoint_malformed", "s3.endpoint_url"},
		{with("endpoint_url", "http://s3.example.com"), "endpoint_url_refused", "s3.endpoint_url"},
		{with("endpoint_url", "https://10.0.0.1"), "endpoint_url_refused", "s3.endpoint_url"},
		{with("endpoint_url", "https://169.254.169.254"), "endpoint_url_refused", "s3.endpoint_url"},
		{with("key_template", "{date}"), "s3_key_malformed", "s3.key_template"},
		{with("key_template", "{tenant}/{id}"), "s3_key_malformed", "s3.key_template"},
		{with("key_template", "a/../{id}"), "s3_key_malformed", "s3.key_template"},
		{with("key_template", "/{id}"), "s3_key_malformed", "s3.key_template"},
		{with("key_template", "a b/{id}"), "s3_key_malformed", "s3.key_template"},
		{with("access_key_id", "a b"), "s3_credentials_malformed", "s3.access_key_id"},
		{with("secret_access_key", "a\nb"), "s3_credentials_malformed", "s3.secret_access_key"},
	} {
		w.do("POST", "/api/v1/endpoints", tn.key, tt.body).problem(http.StatusBadRequest, tt.code, tt.field)
	}
}
