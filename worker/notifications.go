package worker

import (
	"context"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/queue"
)

// notifications receives the announcements of other processes, until the context ends.
func (w *Worker) notifications(ctx context.Context) {
	w.listener.Listen(ctx, w.listen, []string{db.ChannelWake, queue.ChannelOutbox, accounts.ChannelPauses}, func() {
		w.tellRelay()
		w.tellPauses()
		w.dispatch.WakeAll()
		w.dispatch.Restart(nil, true)
	}, func(channel, payload string) {
		switch channel {
		case queue.ChannelOutbox:
			w.tellRelay()
			return
		case accounts.ChannelPauses:
			w.tellPauses()
			return
		}
		endpoints, all, again := db.ParseWake(payload)
		if all {
			w.dispatch.WakeAll()
		} else {
			w.dispatch.Wake(endpoints)
		}
		if again {
			w.dispatch.Restart(endpoints, all)
			w.changed.Ask(endpoints...)
		}
	})
}
