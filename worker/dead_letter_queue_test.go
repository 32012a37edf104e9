package worker

import (
	"context"
	"strings"
	"testing"
	"time"

	"posthorn/db/accounts"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/tools/sqstest"
)

// TestDeadLettersCanGoToAQueue: a queue of SQS that subscribes to posthorn.delivery.failed is the dead-letter queue of
// its tenant. It has each dead letter once.
func TestDeadLettersCanGoToAQueue(t *testing.T) {
	t.Parallel()
	s := sqstest.Run(t)
	queue := s.Queue(t, "dead-letters", nil)
	h := newHouse(t)
	tenant := h.tenant()
	r, _ := newFailing(t, 500)
	failing := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.RetryPolicy, s.EventTypes = "once", []string{"order.*"} })
	h.endpoint(tenant, "", func(s *endpoint.Settings) {
		s.Kind, s.EventTypes = endpoint.SQS, []string{"posthorn.delivery.failed"}
		s.Connection = &endpoint.SQSConnection{QueueURL: queue, Region: "us-east-1", AccessKeyID: "test", SecretKey: "test"}
	})
	h.worker(true)
	links := accounts.Links{BaseURL: "https://posthorn.example.com", Keys: h.ring}
	h.run(func(ctx context.Context) error { // as the process does that sends mail
		for ctx.Err() == nil {
			if _, err := accounts.AnnounceDeadLetters(ctx, h.db, links, 100); err != nil && ctx.Err() == nil {
				return err
			}
			time.Sleep(20 * time.Millisecond) // a poll
		}
		return nil
	})
	h.emitN(tenant, 3)
	eventually(t, 30*time.Second, "three dead letters are in the queue", func() bool { return s.Left(t, queue) == 3 })
	for _, m := range s.Messages(t, queue) {
		if !strings.Contains(m.Body, `"posthorn.delivery.failed"`) || !strings.Contains(m.Body, id.Endpoint.Format(failing)) || !strings.Contains(m.Body, `"dlv_`) {
			t.Errorf("a dead letter is %s", m.Body)
		}
	}
}
