package dashboard_test

import (
	"net/http"
	"testing"

	"posthorn/domain/access"
	"posthorn/domain/id"
)

// exchangeForm is what the form sends for an exchange.
func exchangeForm(change ...string) []string {
	return append([]string{
		"kind", "rabbitmq", "url", "", "rabbitmq_url", "amqps://rabbitmq.acme-logistics.com:5671/shop", "rabbitmq_exchange", "webhooks",
		"rabbitmq_username", "posthorn", "rabbitmq_password", "canary-password",
	}, change...)
}

func TestAnExchangeIsAddedChangedAndExplained(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	path := w.add(exchangeForm()...)
	owner.get(path).want(http.StatusOK, "amqps://rabbitmq.acme-logistics.com:5671/shop/webhooks", "Send a message", "It must confirm").lacks("canary", "challenge").keep("rabbitmq-unverified")
	w.activate(path)
	owner.get(path+"/settings").want(http.StatusOK, "Leave empty to keep the current one", "{type}").lacks("canary", `name="url"`, `name="kind"`).keep("rabbitmq-settings")
	for _, c := range []struct {
		a    tried
		says []string
	}{
		{tried{status: 200, answer: `{"exchange":"webhooks","routing_key":"order.completed"}`, terminal: 2}, []string{"has confirmed the message", "webhook-id"}},
		{tried{status: 422, error: "the broker returned NO_ROUTE"}, []string{"Unroutable", "Bind a queue", "NO_ROUTE"}},
		{tried{status: 401, error: "the broker returned LOGIN_REFUSED"}, []string{"Not authenticated", "guest"}},
		{tried{status: 503, error: "the broker returned NACK"}, []string{"Broker error", "a queue is full"}},
	} {
		dlv := w.delivery(w.emit(w.tn, "order.completed", `{"total":129.5}`))
		w.attempt(dlv, c.a)
		owner.get(w.root+"/deliveries/"+id.Delivery.Format(dlv)).want(http.StatusOK, c.says...).lacks("cURL", "User-Agent", "canary").keep("rabbitmq-delivery")
	}
	// The stored password is kept, and never sent to another broker.
	owner.post(path+"/settings", newForm(exchangeForm("rabbitmq_password", "", "rabbitmq_exchange", "refunds")...)).want(http.StatusSeeOther)
	owner.get(path).want(http.StatusOK, "/shop/refunds", "unverified")
	owner.post(path+"/settings", newForm(exchangeForm("rabbitmq_password", "", "rabbitmq_url", "amqps://evil.acme-logistics.com")...)).
		want(http.StatusBadRequest, "Send the password again", `href="#f-rabbitmq_password"`).lacks("canary").keep("rabbitmq-password-needed")
}
