package feeds

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/feed"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// Consumers changes the consumers of one feed on behalf of an author.
type Consumers struct {
	Tenant, Feed id.UUID
	By           db.Author
	Now          time.Time
}

// Create stores a consumer with a token of its own, which is returned and not stored.
func (s Consumers) Create(ctx context.Context, q *sql.Queries, name string, start feed.Start) (show.Consumer, string, error) {
	if err := feed.CheckName(name); err != nil {
		return show.Consumer{}, "", err
	}
	if err := s.lock(ctx, q); err != nil {
		return show.Consumer{}, "", err
	}
	key, text, err := s.token(ctx, q, name)
	if err != nil {
		return show.Consumer{}, "", err
	}
	c, err := s.add(ctx, q, name, start, &key)
	if err != nil {
		return c, "", err
	}
	return c, text, s.audit(ctx, q, "feed.consumer.create", name, nil)
}

// Ensure is the consumer of a name; if there is none, it is created without a token.
func (s Consumers) Ensure(ctx context.Context, q *sql.Queries, name string, start feed.Start) error {
	if err := feed.CheckName(name); err != nil {
		return err
	}
	_, err := q.GetConsumer(ctx, sql.GetConsumerParams{TenantID: s.Tenant, EndpointID: s.Feed, Name: name})
	if !db.IsNoRows(err) {
		return err
	}
	if err := s.lock(ctx, q); err != nil {
		return err
	}
	_, err = s.add(ctx, q, name, start, nil)
	if fault.Is(err, errConsumerThere.Code) {
		return nil
	}
	return err
}

// lock keeps the feed and the number of its consumers as they are.
func (s Consumers) lock(ctx context.Context, q *sql.Queries) error {
	e, err := q.LockEndpoint(ctx, s.Tenant, s.Feed)
	if err == nil && !endpoint.Kind(e.Kind).Pulls() {
		return endpoint.ErrNoFeed
	}
	return err
}

var errConsumerThere = fault.New(fault.Conflict, "consumer_exists", "This feed has a consumer of this name. Choose another name, or rotate the token of the existing one.")

func (s Consumers) add(ctx context.Context, q *sql.Queries, name string, start feed.Start, key *id.UUID) (show.Consumer, error) {
	has, err := q.CountConsumers(ctx, s.Tenant, s.Feed)
	if err != nil {
		return show.Consumer{}, err
	}
	if err := feed.CheckRoom(int(has)); err != nil {
		return show.Consumer{}, err
	}
	l, err := openLog(ctx, q, s.Tenant)
	if err != nil {
		return show.Consumer{}, err
	}
	place, err := l.place(ctx, start)
	if err != nil {
		return show.Consumer{}, err
	}
	row, err := q.InsertConsumer(ctx, sql.InsertConsumerParams{
		TenantID:   s.Tenant,
		EndpointID: s.Feed,
		Name:       name,
		KeyID:      key,
		Cursor:     place.String(),
	})
	if db.IsNoRows(err) {
		return show.Consumer{}, errConsumerThere
	} else if err != nil {
		return show.Consumer{}, err
	}
	return s.show(ctx, l, row)
}

func (s Consumers) token(ctx context.Context, q *sql.Queries, name string) (id.UUID, string, error) {
	key, text, err := accounts.MakeKey(ctx, q, accounts.NewKey{
		Tenant: &s.Tenant,
		Name:   "feed consumer " + name,
		Scopes: access.Scopes{access.Scope(feed.Scope(s.Feed, name))},
	})
	return key.ID, text, err
}

// Rotate gives a consumer another token. The old one ends at once.
func (s Consumers) Rotate(ctx context.Context, q *sql.Queries, name string) (string, error) {
	row, err := s.locked(ctx, q, name)
	if err != nil {
		return "", err
	}
	if err := s.revoke(ctx, q, row); err != nil {
		return "", err
	}
	key, text, err := s.token(ctx, q, name)
	if err != nil {
		return "", err
	}
	set := sql.SetConsumerKeyParams{KeyID: &key, TenantID: s.Tenant, EndpointID: s.Feed, Name: name}
	if _, err := q.SetConsumerKey(ctx, set); err != nil {
		return "", err
	}
	return text, s.audit(ctx, q, "feed.consumer.rotate", name, nil)
}

// Delete ends a consumer and its token.
func (s Consumers) Delete(ctx context.Context, q *sql.Queries, name string) error {
	row, err := q.DeleteConsumer(ctx, sql.DeleteConsumerParams{TenantID: s.Tenant, EndpointID: s.Feed, Name: name})
	if err != nil {
		return err
	}
	if err := s.revoke(ctx, q, row); err != nil {
		return err
	}
	return s.audit(ctx, q, "feed.consumer.delete", name, nil)
}

func (s Consumers) revoke(ctx context.Context, q *sql.Queries, row sql.FeedConsumer) error {
	if row.KeyID == nil {
		return nil
	}
	if _, err := q.RevokeKey(ctx, &s.Tenant, *row.KeyID); err != nil {
		return err
	}
	return q.BumpKeysRevision(ctx)
}

// List lists the consumers of a feed with their lag.
func (s Consumers) List(ctx context.Context, q *sql.Queries) ([]show.Consumer, error) {
	e, err := q.GetEndpoint(ctx, s.Tenant, s.Feed)
	if err != nil {
		return nil, err
	}
	if !endpoint.Kind(e.Kind).Pulls() {
		return nil, endpoint.ErrNoFeed
	}
	rows, err := q.ListConsumers(ctx, s.Tenant, s.Feed)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	l, err := openLog(ctx, q, s.Tenant)
	if err != nil {
		return nil, err
	}
	list := make([]show.Consumer, len(rows))
	for i, row := range rows {
		if list[i], err = s.show(ctx, l, row); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (s Consumers) show(ctx context.Context, l *tenantLog, row sql.FeedConsumer) (show.Consumer, error) {
	c := show.Consumer{
		Name:      row.Name,
		Cursor:    row.Cursor,
		AckedAt:   row.AckedAt,
		ReadAt:    db.OrZero(row.ReadAt),
		CreatedAt: row.CreatedAt,
	}
	if row.KeyID != nil {
		c.Key = *row.KeyID
	}
	place, err := feed.ParsePlace(row.Cursor)
	if err != nil {
		return c, err
	}
	c.Lag, err = l.lag(ctx, place, s.Now)
	return c, err
}

// locked locks a consumer's row. Without a row it returns fault.ErrNotFound after the transaction.
func (s Consumers) locked(ctx context.Context, q *sql.Queries, name string) (sql.FeedConsumer, error) {
	return q.LockConsumer(ctx, sql.LockConsumerParams{TenantID: s.Tenant, EndpointID: s.Feed, Name: name})
}

// Acknowledge says that a consumer has finished everything up to a cursor. An older cursor than it acknowledged before
// changes nothing.
func (s Consumers) Acknowledge(ctx context.Context, q *sql.Queries, name string, to feed.Place) (show.Consumer, error) {
	row, err := s.locked(ctx, q, name)
	if err != nil {
		return show.Consumer{}, err
	}
	l, err := openLog(ctx, q, s.Tenant)
	if err != nil {
		return show.Consumer{}, err
	}
	if _, err := l.check(ctx, to); err != nil {
		return show.Consumer{}, err
	}
	if to, err = l.named(ctx, to); err != nil {
		return show.Consumer{}, err
	}
	before, err := feed.ParsePlace(row.Cursor)
	if err != nil {
		return show.Consumer{}, err
	}
	if to.Compare(before) > 0 {
		if row, err = s.move(ctx, q, name, to); err != nil {
			return show.Consumer{}, err
		}
	}
	return s.show(ctx, l, row)
}

func (s Consumers) move(ctx context.Context, q *sql.Queries, name string, to feed.Place) (sql.FeedConsumer, error) {
	return q.MoveConsumer(ctx, sql.MoveConsumerParams{
		Cursor:     to.String(),
		TenantID:   s.Tenant,
		EndpointID: s.Feed,
		Name:       name,
	})
}

// Rewind moves a consumer, back or ahead, to a start or, if at is set, to a cursor.
func (s Consumers) Rewind(ctx context.Context, q *sql.Queries, name string, start feed.Start, at *feed.Place) (show.Consumer, error) {
	before, err := s.locked(ctx, q, name)
	if err != nil {
		return show.Consumer{}, err
	}
	l, err := openLog(ctx, q, s.Tenant)
	if err != nil {
		return show.Consumer{}, err
	}
	if at == nil {
		place, err := l.place(ctx, start)
		if err != nil {
			return show.Consumer{}, err
		}
		at = &place
	} else if _, err := l.check(ctx, *at); err != nil {
		return show.Consumer{}, err
	}
	row, err := s.move(ctx, q, name, *at)
	if err != nil {
		return show.Consumer{}, err
	}
	c, err := s.show(ctx, l, row)
	if err != nil {
		return c, err
	}
	return c, s.audit(ctx, q, "feed.consumer.rewind", name, map[string]any{"from": before.Cursor, "to": row.Cursor})
}

func (s Consumers) audit(ctx context.Context, q *sql.Queries, action, name string, details map[string]any) error {
	all := map[string]any{"consumer": name}
	for k, v := range details {
		all[k] = v
	}
	return db.Audit(ctx, q, s.By, db.Audited{
		Tenant:  &s.Tenant,
		Action:  action,
		Kind:    "endpoint",
		Object:  id.Endpoint.Format(s.Feed),
		Details: all,
	})
}
