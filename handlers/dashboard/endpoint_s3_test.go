package dashboard_test

import (
	"net/http"
	"testing"

	"posthorn/domain/access"
	"posthorn/domain/id"
)

func TestABucketIsAddedChangedAndExplained(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	bucket := func(change ...string) []string {
		return append([]string{
			"kind", "s3", "url", "", "s3_bucket", "acme-events", "s3_region", "eu-west-1", "s3_key_template", "hooks/{date}/{id}", "s3_access_key_id", "AKIDEXAMPLE",
			"s3_secret_access_key", "canary-secret", "s3_gzip", "true",
		}, change...)
	}
	path := w.add(bucket()...)
	owner.get(path).want(http.StatusOK, "s3://acme-events/hooks/", "Write an object").lacks("canary", "challenge").keep("s3-unverified")
	owner.get(path+"/settings").want(http.StatusOK, "Leave empty to keep the current one", "hooks/{date}/{id}").lacks("canary", `name="url"`).keep("s3-settings")
	w.activate(path)
	for _, c := range []struct {
		a    tried
		says []string
	}{
		{tried{status: 200, answer: `{"key":"hooks/a.ndjson"}`, terminal: 2}, []string{"The bucket has the object", "hooks/a.ndjson"}},
		{tried{status: 404, error: "the bucket returned NoSuchBucket"}, []string{"No such bucket", "NoSuchBucket"}},
		{tried{status: 403, error: "the bucket returned AccessDenied"}, []string{"Not permitted", "s3:PutObject"}},
		{tried{status: 401, error: "the bucket returned SignatureDoesNotMatch"}, []string{"Not authenticated", "SignatureDoesNotMatch"}},
		{tried{status: 429, error: "the bucket returned SlowDown"}, []string{"Slow down", "batch_max_events"}},
		{tried{status: 500, error: "the bucket returned RequestTimeTooSkewed"}, []string{"Clocks differ", "15 minutes"}},
	} {
		dlv := w.delivery(w.emit(w.tn, "order.completed", `{"total":129.5}`))
		w.attempt(dlv, c.a)
		owner.get(w.root+"/deliveries/"+id.Delivery.Format(dlv)).want(http.StatusOK, c.says...).lacks("cURL", "canary").keep("s3-delivery")
	}
	owner.post(path+"/settings", newForm(bucket("s3_secret_access_key", "", "s3_key_template", "{id}")...)).want(http.StatusSeeOther)
	owner.post(path+"/settings", newForm(bucket("s3_secret_access_key", "", "s3_bucket", "other-bucket")...)).
		want(http.StatusBadRequest, "Send the secret access key again", `href="#f-s3_secret_access_key"`).lacks("canary")
}
