package worker

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/worker/loop"
)

// botEvery is how often the platform's own signature is read. A new key of it is published for longer before it signs.
const botEvery = 10 * time.Second

// followBot reads the platform's own signature until the context ends.
func (w *Worker) followBot(ctx context.Context) {
	for loop.Sleep(ctx, botEvery) {
		w.readBot(ctx)
	}
}

// readBot reads how the platform signs requests. If it can't be read, it stays as it was.
func (w *Worker) readBot(ctx context.Context) {
	bot, err := endpoints.ReadBot(ctx, w.db, w.keys, w.baseURL)
	if err == nil {
		w.sender.SetBot(bot)
	} else if ctx.Err() == nil && !db.IsPassing(err) {
		w.log.Warn("the keys of the platform's signature could not be read; requests are signed as before", "error", err)
	}
}
