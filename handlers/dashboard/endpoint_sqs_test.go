package dashboard_test

import (
	"net/http"
	"testing"

	"posthorn/domain/access"
)

func TestAQueueIsAddedAndChanged(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	queue := func(change ...string) []string {
		return append([]string{
			"kind", "sqs", "url", "", "sqs_queue_url", "https://sqs.eu-west-1.amazonaws.com/123456789012/webhooks", "sqs_access_key_id", "AKIDEXAMPLE",
			"sqs_secret_access_key", "canary-secret",
		}, change...)
	}
	path := w.add(queue()...)
	owner.get(path).want(http.StatusOK, "amazonaws.com/123456789012/webhooks", "Send a message").lacks("canary", "challenge").keep("sqs-unverified")
	owner.get(path+"/settings").want(http.StatusOK, "Leave empty to keep the current one", "eu-west-1").lacks("canary", `name="url"`).keep("sqs-settings")
	owner.post(path+"/settings", newForm(queue("sqs_secret_access_key", "", "sqs_region", "eu-west-1", "description", "Q")...)).want(http.StatusSeeOther)
	owner.post(path+"/settings", newForm(queue("sqs_secret_access_key", "", "sqs_region", "us-east-1")...)).
		want(http.StatusBadRequest, "Send the secret access key again", `href="#f-sqs_secret_access_key"`).lacks("canary")
}
