package mail

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/mail"
	"posthorn/worker/loop"
)

// How the outbox is processed.
const (
	lookEvery = time.Second
	claimMost = 20
	atOnce    = 4
	// claimTime is longer than all the tries of one claim can take, so that no two workers send the same mail.
	claimTime = 5 * time.Minute
	// stopTime is how long a stop waits for running tries. An interrupted mail is sent again under the same key.
	stopTime = 5 * time.Second
	keepTime = 30 * 24 * time.Hour // of sent mails, for the operators' mail log
	tidyMost = 1000
)

// Config holds the dependencies of an outbox.
type Config struct {
	DB       *db.DB
	Driver   Driver
	Keys     *seal.Ring
	From     string
	Log      *slog.Logger
	Registry prometheus.Registerer // nil: metrics are not exported
}

// Outbox sends waiting mails. Create it with New; call Run once.
type Outbox struct {
	Config
	sent *prometheus.CounterVec
	size *prometheus.GaugeVec

	mu     sync.Mutex
	paused time.Time // no mail is sent before
}

// New creates an outbox. It does nothing before Run.
func New(c Config) *Outbox {
	o := &Outbox{
		Config: c,
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mails_total",
			Help: "Mails by kind and what came of a try: sent, retried, throttled, failed.",
		}, []string{"kind", "outcome"}),
		size: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mails",
			Help: "Mails in the outbox that wait, and those that were given up.",
		}, []string{"state"}),
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if c.Registry != nil {
		c.Registry.MustRegister(o.sent, o.size)
	}
	return o
}

// Run sends the mails of the outbox until the context ends.
func (o *Outbox) Run(ctx context.Context) error {
	loop.Every(
		ctx, o.Log,
		loop.Job{
			Name:  "send mails",
			Every: lookEvery,
			Do: func(ctx context.Context) error {
				for ctx.Err() == nil {
					if n, err := o.pass(ctx); err != nil || n < claimMost {
						return err
					}
				}
				return nil
			},
		},
		loop.Job{Name: "tidy mails", Every: time.Minute, Do: o.tidy},
	)
	return nil
}

// pass claims due mails and sends them. It returns how many mails it claimed.
func (o *Outbox) pass(ctx context.Context) (int, error) {
	if time.Now().Before(o.pause()) {
		return 0, nil
	}
	var due []sql.ClaimMailsRow
	err := o.DB.Worker(ctx, func(q *sql.Queries) (err error) {
		due, err = q.ClaimMails(ctx, claimTime.Seconds(), claimMost)
		return err
	})
	if err != nil {
		return 0, err
	}
	slots := make(chan struct{}, atOnce)
	var sending sync.WaitGroup
	for _, row := range due {
		slots <- struct{}{}
		sending.Go(func() {
			defer func() { <-slots }()
			o.send(ctx, row)
		})
	}
	sending.Wait()
	return len(due), nil
}

// send makes one try at a mail and records the result. A stop lets the try continue for a while.
func (o *Outbox) send(ctx context.Context, row sql.ClaimMailsRow) {
	if ctx.Err() != nil || time.Now().Before(o.pause()) {
		o.write(ctx, row, "returned", func(ctx context.Context, q *sql.Queries) error {
			_, err := q.ReturnMail(ctx, sql.ReturnMailParams{
				ID:      row.ID,
				Seconds: max(time.Until(o.pause()), 0).Seconds(),
			})
			return err
		})
		return
	}
	message, err := compose(row, o.Keys, o.From)
	if err != nil {
		o.fail(ctx, row, "The mail could not be composed: "+short(err.Error()))
		return
	}
	try, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(stopTime):
			cancel()
		case <-try.Done():
		}
	})
	defer stop()
	providerID, err := o.Driver.Send(try, message)
	if err == nil {
		o.done(ctx, row, providerID, "")
		return
	}
	refusal := &Refusal{Detail: short(err.Error())}
	errors.As(err, &refusal)
	switch refusal.Verdict {
	case mail.Taken:
		o.done(ctx, row, "", refusal.Detail)
	case mail.Refused:
		o.fail(ctx, row, refusal.Detail)
	case mail.Throttled:
		o.throttle(ctx, row, refusal)
	default:
		o.retry(ctx, row, refusal)
	}
}

func (o *Outbox) done(ctx context.Context, row sql.ClaimMailsRow, providerID, note string) {
	o.write(ctx, row, "sent", func(ctx context.Context, q *sql.Queries) error {
		_, err := q.MarkMailSent(ctx, sql.MarkMailSentParams{ID: row.ID, ProviderID: providerID, Note: note})
		return err
	})
}

func (o *Outbox) fail(ctx context.Context, row sql.ClaimMailsRow, detail string) {
	o.Log.Error("a mail will not be sent", "mail", id.Mail.Format(row.ID), "kind", row.Kind, "tries", row.Tries, "error", detail)
	o.write(ctx, row, "failed", func(ctx context.Context, q *sql.Queries) error {
		_, err := q.MarkMailFailed(ctx, detail, row.ID)
		return err
	})
}

func (o *Outbox) retry(ctx context.Context, row sql.ClaimMailsRow, r *Refusal) {
	wait, more := mail.Next(int(row.Tries), rand.Float64())
	if !more {
		o.fail(ctx, row, r.Detail)
		return
	}
	wait = max(wait, min(r.RetryAfter, mail.Pause(r.RetryAfter)))
	o.Log.Warn("a mail is delayed", "mail", id.Mail.Format(row.ID), "kind", row.Kind, "tries", row.Tries, "again_in", wait.Round(time.Second), "error", r.Detail)
	o.write(ctx, row, "retried", func(ctx context.Context, q *sql.Queries) error {
		_, err := q.PostponeMail(ctx, sql.PostponeMailParams{ID: row.ID, Seconds: wait.Seconds(), LastError: r.Detail})
		return err
	})
}

// throttle delays the whole outbox: the provider counts requests, not mails.
func (o *Outbox) throttle(ctx context.Context, row sql.ClaimMailsRow, r *Refusal) {
	wait := mail.Pause(r.RetryAfter)
	o.mu.Lock()
	if until := time.Now().Add(wait); until.After(o.paused) {
		o.paused = until
	}
	o.mu.Unlock()
	o.write(ctx, row, "throttled", func(ctx context.Context, q *sql.Queries) error {
		_, err := q.ReturnMail(ctx, sql.ReturnMailParams{ID: row.ID, Seconds: wait.Seconds(), LastError: r.Detail})
		return err
	})
}

func (o *Outbox) pause() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.paused
}

// write records a result, even while the worker stops. If this fails, the mail is tried again under the same key when
// the claim has expired.
func (o *Outbox) write(ctx context.Context, row sql.ClaimMailsRow, outcome string, do func(context.Context, *sql.Queries) error,
) {
	o.sent.WithLabelValues(string(row.Kind), outcome).Inc()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := o.DB.Worker(ctx, func(q *sql.Queries) error { return do(ctx, q) }); err != nil {
		o.Log.Warn("what came of a mail could not be recorded; it will be tried again", "mail", id.Mail.Format(row.ID), "outcome", outcome, "error", err)
	}
}

// tidy counts waiting mails and deletes those that were sent long ago.
func (o *Outbox) tidy(ctx context.Context) error {
	return o.DB.Worker(ctx, func(q *sql.Queries) error {
		counts, err := q.CountMails(ctx)
		if err != nil {
			return err
		}
		byState := map[string]int64{}
		for _, c := range counts {
			byState[c.State] = c.N
		}
		for _, state := range []string{"waiting", "failed"} {
			o.size.WithLabelValues(state).Set(float64(byState[state]))
		}
		_, err = q.DropOldMails(ctx, id.FirstAt(time.Now().Add(-keepTime)), tidyMost)
		return err
	})
}
