package delivery_test

import (
	"testing"

	"posthorn/domain/delivery"
	"posthorn/domain/retry"
)

func TestKafkasAnswersBecomeTheSameOutcomes(t *testing.T) {
	t.Parallel()
	schedule, _ := retry.Named("short")
	for name, want := range map[string]struct {
		status delivery.Status
		reason delivery.Reason
		class  delivery.Class
	}{
		"":                           {delivery.Delivered, delivery.None, delivery.Success},
		"SASL_AUTHENTICATION_FAILED": {delivery.Retrying, delivery.None, delivery.Auth},
		"TOPIC_AUTHORIZATION_FAILED": {delivery.Retrying, delivery.None, delivery.Auth},
		"UNKNOWN_TOPIC_OR_PARTITION": {delivery.Retrying, delivery.None, delivery.Auth},
		"MESSAGE_TOO_LARGE":          {delivery.Failed, delivery.Rejected, delivery.Neutral},
		"INVALID_RECORD":             {delivery.Failed, delivery.Rejected, delivery.Neutral},
		"THROTTLING_QUOTA_EXCEEDED":  {delivery.Retrying, delivery.None, delivery.Throttled},
		"NOT_ENOUGH_REPLICAS":        {delivery.Retrying, delivery.None, delivery.Unhealthy},
		"SOMETHING_OF_TOMORROW":      {delivery.Retrying, delivery.None, delivery.Unhealthy},
	} {
		d := delivery.Decide(delivery.Policy{Schedule: schedule}, 1, delivery.OfKafka(name), 0.5)
		if d.Status != want.status || d.Reason != want.reason || d.Class != want.class || d.Disable != "" {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
