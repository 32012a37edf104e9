package dashboard_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"posthorn/domain/access"
	"posthorn/domain/id"
)

// topicForm is what the form sends for a topic.
func topicForm(change ...string) []string {
	return append([]string{
		"kind", "kafka", "url", "", "kafka_bootstrap_servers", "b1.acme-logistics.com:9094\r\nb2.acme-logistics.com:9094", "kafka_topic", "orders", "kafka_tls", "true",
		"kafka_sasl_mechanism", "SCRAM-SHA-512", "kafka_sasl_username", "posthorn", "kafka_sasl_password", "canary-password", "ordering", "key",
	}, change...)
}

func TestATopicIsAddedChangedAndExplained(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	path := w.add(topicForm()...)
	owner.get(path).want(http.StatusOK, "kafka://b1.acme-logistics.com:9094/orders", "Write a record", "All in-sync replicas").lacks("canary", "challenge").keep("kafka-unverified")
	w.activate(path)
	owner.get(path+"/settings").want(http.StatusOK, "b2.acme-logistics.com:9094", "Leave empty to keep the current one").lacks("canary", `name="url"`, `name="kind"`).keep("kafka-settings")
	w.as(access.Viewer).get(path + "/settings").want(http.StatusOK).lacks("canary")
	// The stored password is kept, and never sent to another destination.
	owner.post(path+"/settings", newForm(topicForm("kafka_sasl_password", "", "kafka_topic", "refunds")...)).want(http.StatusSeeOther)
	owner.get(path).want(http.StatusOK, "9094/refunds", "unverified")
	owner.post(path+"/settings", newForm(topicForm("kafka_sasl_password", "", "kafka_topic", "refunds", "kafka_bootstrap_servers", "evil.acme-logistics.com:9094")...)).
		want(http.StatusBadRequest, "Send the password again").lacks("canary").keep("kafka-password-needed")
}

func TestATopicsFormTakesAnAuthorityOfItsOwn(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../domain/endpoint/testdata/authority.pem")
	if err != nil {
		t.Fatal(err)
	}
	authority := string(text)
	w := newDesk(t)
	owner := w.as(access.Owner)
	sent := strings.ReplaceAll(authority, "\n", "\r\n") // as browsers do
	path := w.add(topicForm("kafka_ca_certificate", sent)...)
	owner.get(path+"/settings").want(http.StatusOK, strings.Split(authority, "\n")[1], "CA certificate").keep("kafka-ca")
	// The unchanged form is the same topic, so the stored password is kept.
	owner.post(path+"/settings", newForm(topicForm("kafka_ca_certificate", sent, "kafka_sasl_password", "", "kafka_topic", "refunds")...)).want(http.StatusSeeOther)
	owner.post(path+"/settings", newForm(topicForm("kafka_ca_certificate", "nonsense")...)).want(http.StatusBadRequest, "isn&#39;t a PEM certificate", `href="#f-kafka_ca_certificate"`, "nonsense").keep("kafka-ca-wrong")
}

func TestWhatIsWrongWithATopicIsSaidBesideItsField(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	wrong := topicForm("kafka_bootstrap_servers", "10.0.0.1:9092", "kafka_topic", "a/b", "kafka_sasl_username", "", "kafka_sasl_password", "")
	w.as(access.Owner).post(w.root+"/endpoints", newForm(wrong...)).
		want(http.StatusBadRequest, "address isn&#39;t public", "letters, digits", "1 to 255 bytes", `href="#f-kafka_topic"`, `href="#f-kafka_bootstrap_servers"`, "10.0.0.1:9092").keep("kafka-wrong")
}

func TestARecordIsShownAsOne(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	path := w.add(topicForm()...)
	w.activate(path)
	for n, c := range []struct {
		a    tried
		says []string
	}{
		{tried{status: 200, answer: `{"offset":41,"partition":3,"topic":"orders"}`, terminal: 2}, []string{"All in-sync replicas have the record", "WRITE", "webhook-id", "41"}},
		{tried{status: 404, error: "the broker returned UNKNOWN_TOPIC_OR_PARTITION"}, []string{"No such topic", "Create the topic", "UNKNOWN_TOPIC_OR_PARTITION"}},
		{tried{failure: 6, error: "blocked address"}, []string{"Blocked address", "advertised.listeners"}},
		{tried{status: 413, error: "the broker returned MESSAGE_TOO_LARGE", terminal: 3, reason: 2}, []string{"Record too large", "max.message.bytes"}},
	} {
		dlv := w.delivery(w.emit(w.tn, "order.completed", `{"total":129.5}`))
		w.attempt(dlv, c.a)
		owner.get(w.root+"/deliveries/"+id.Delivery.Format(dlv)).want(http.StatusOK, c.says...).lacks("cURL", "User-Agent", "canary").keep("kafka-delivery-" +
			strings.Repeat("i", n+1))
	}
	owner.get(path).want(http.StatusOK).keep("kafka-endpoint")
	owner.get(w.root+"/endpoints").want(http.StatusOK, "kafka://b1.acme-logistics.com:9094/orders").keep("kafka-list")
}
