//go:build (e2e || soak) && unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

var errRolledBack = errors.New("the product changed its mind")

// emitSQL emits in a transaction of its own, as a product does, and keeps or undoes it.
func (w *world) emitSQL(n int, keep bool) (event string, err error) {
	err = pgx.BeginFunc(context.Background(), w.sql, func(tx pgx.Tx) error {
		err := tx.QueryRow(context.Background(), "SELECT posthorn.emit($1, 'order.placed', $2::json, key => $3)", w.tenant,
			fmt.Sprintf(`{"n":%d}`, n), fmt.Sprintf("k%d", n%7)).Scan(&event)
		if err == nil && !keep {
			return errRolledBack
		}
		return err
	})
	return event, err
}

// TestAKilledRelayLosesAndDoublesNothing kills the worker, which holds the relay, again and again while a product
// emits in SQL.
func TestAKilledRelayLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.serveAt(w.launch("web", "web").ready())
	relay := w.launch("worker", "worker").ready()
	w.endpoint("/one", nil)
	w.endpoint("/two", nil)
	const writers = 2 // as many as the test has connections
	stop := make(chan struct{})
	var all sync.WaitGroup
	for k := range writers {
		all.Go(func() {
			for n := k; ; n += writers {
				select {
				case <-stop:
					return
				default:
				}
				event, err := w.emitSQL(n, n%5 != 4)
				switch {
				case err == nil:
					w.acknowledged(fmt.Sprint(n), event)
				case !errors.Is(err, errRolledBack):
					t.Error(err)
					return
				}
			}
		})
	}
	for range kills(t) {
		acked := len(w.acknowledgements())
		eventually(t, patience, "the product emits and the relay stores", func() bool {
			return len(w.acknowledgements()) > acked+200
		})
		relay.kill()
		relay = w.launch("worker", "worker").ready()
	}
	close(stop)
	all.Wait()
	eventually(t, patience, "the outbox is empty", func() bool { return w.ask("SELECT count(*) FROM outbox") == 0 })
	acks := w.acknowledgements()
	if n := w.ask("SELECT count(*) FROM events"); n != len(acks) || n < 200*kills(t) {
		t.Errorf("%d events are stored, %d were committed", n, len(acks))
	}
	if n := w.ask("SELECT count(*) FROM deliveries"); n != 2*len(acks) {
		t.Errorf("%d deliveries, want two of each of %d events", n, len(acks))
	}
	if n := w.ask("SELECT count(*) FROM outbox_rejected"); n != 0 {
		t.Errorf("%d are rejected", n)
	}
}
