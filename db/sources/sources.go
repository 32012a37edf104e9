// Package sources stores the sources of tenants and what was read of them (docs/adr/0032-sources.md).
package sources

import (
	"context"
	"encoding/json"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/source"
)

// Store changes the sources of a tenant on behalf of an author.
type Store struct {
	Tenant id.UUID
	Keys   *seal.Ring
	By     db.Author
}

// Create stores a source. The settings are those that Check returned.
func (s Store) Create(ctx context.Context, q *sql.Queries, settings source.Settings) (show.Source, error) {
	sourceID := db.NewID()
	total, err := s.checkName(ctx, q, sourceID, settings.Name)
	if err == nil {
		err = source.CheckRoom(int(total))
	}
	if err != nil {
		return show.Source{}, err
	}
	connection, err := s.seal(sourceID, settings)
	if err != nil {
		return show.Source{}, err
	}
	row, err := q.InsertSource(ctx, sql.InsertSourceParams{
		TenantID:   s.Tenant,
		ID:         sourceID,
		Name:       settings.Name,
		Kind:       string(settings.Kind),
		URL:        settings.URL,
		Connection: connection,
		Start:      settings.Start,
		Mapping:    settings.Mapping,
	})
	if err != nil {
		return show.Source{}, err
	}
	return s.audited(ctx, q, "source.create", row, map[string]any{"name": row.Name, "kind": row.Kind, "url": row.URL})
}

// checkName locks the tenant, and counts its sources.
func (s Store) checkName(ctx context.Context, q *sql.Queries, sourceID id.UUID, name string) (total int64, err error) {
	if _, err := q.LockTenant(ctx, s.Tenant); err != nil {
		return 0, err
	}
	count, err := q.CountSources(ctx, sql.CountSourcesParams{Name: name, ID: sourceID, TenantID: s.Tenant})
	if err == nil && count.Named > 0 {
		err = source.ErrNameTaken
	}
	return count.Total, err
}

func (s Store) seal(sourceID id.UUID, settings source.Settings) ([]byte, error) {
	text, err := json.Marshal(settings.Connection)
	return s.Keys.Seal(text, s.Tenant, sourceID), err
}

// Change changes a source. Its reader starts again; where the queue is another one, without what it knew of the old
// one.
func (s Store) Change(
	ctx context.Context,
	q *sql.Queries,
	sourceID id.UUID,
	change func(source.Settings) (source.Settings, error),
) (show.Source, error) {
	row, err := q.LockSource(ctx, s.Tenant, sourceID)
	if err != nil {
		return show.Source{}, err
	}
	before, err := Settings(row, s.Keys)
	if err != nil {
		return show.Source{}, err
	}
	after, err := change(before)
	if err == nil {
		_, err = s.checkName(ctx, q, sourceID, after.Name)
	}
	if err != nil {
		return show.Source{}, err
	}
	connection, err := s.seal(sourceID, after)
	if err != nil {
		return show.Source{}, err
	}
	if after.Moved(before) {
		if err := q.ForgetSource(ctx, s.Tenant, sourceID); err != nil {
			return show.Source{}, err
		}
	}
	row, err = q.ChangeSource(ctx, sql.ChangeSourceParams{
		Name:       after.Name,
		URL:        after.URL,
		Connection: connection,
		Start:      after.Start,
		Mapping:    after.Mapping,
		TenantID:   s.Tenant,
		ID:         sourceID,
	})
	if err != nil {
		return show.Source{}, err
	}
	return s.audited(ctx, q, "source.update", row, map[string]any{"name": row.Name, "url": row.URL})
}

// Pause stops reading a source, or goes on.
func (s Store) Pause(ctx context.Context, q *sql.Queries, sourceID id.UUID, paused bool) (show.Source, error) {
	row, err := q.LockSource(ctx, s.Tenant, sourceID)
	if err != nil {
		return show.Source{}, err
	}
	if (row.PausedAt != nil) == paused {
		return s.show(row)
	}
	row, err = q.PauseSource(ctx, sql.PauseSourceParams{Paused: paused, TenantID: s.Tenant, ID: sourceID})
	if err != nil {
		return show.Source{}, err
	}
	return s.audited(ctx, q, map[bool]string{true: "source.pause", false: "source.resume"}[paused], row, nil)
}

// Delete deletes a source and what it knew of its queue. What was rejected stays.
func (s Store) Delete(ctx context.Context, q *sql.Queries, sourceID id.UUID) error {
	row, err := q.DeleteSource(ctx, s.Tenant, sourceID)
	if err != nil {
		return err
	}
	if err := q.ForgetSource(ctx, s.Tenant, sourceID); err != nil {
		return err
	}
	return s.audit(ctx, q, "source.delete", row, map[string]any{"name": row.Name, "url": row.URL})
}

// Read reads a source.
func (s Store) Read(ctx context.Context, q *sql.Queries, sourceID id.UUID) (show.Source, error) {
	row, err := q.GetSource(ctx, s.Tenant, sourceID)
	if err != nil {
		return show.Source{}, err
	}
	return s.show(row)
}

// List reads a page of sources.
func (s Store) List(ctx context.Context, q *sql.Queries, r show.Range) (page show.Page[show.Source], err error) {
	rows, err := q.ListSources(ctx, sql.ListSourcesParams{
		TenantID: s.Tenant,
		Newest:   !r.Ascending,
		After:    r.Edge(),
		Limit:    int32(r.Limit + 1),
	})
	if err != nil {
		return page, err
	}
	return show.Each(show.CutByID(rows, r.Limit, func(row sql.Source) id.UUID { return row.ID }), func(row sql.Source) show.Source {
		one, failed := s.show(row)
		if failed != nil {
			err = failed
		}
		return one
	}), err
}

// RejectedMessage reads a message that was rejected.
func (s Store) RejectedMessage(ctx context.Context, q *sql.Queries, sourceID, rejected id.UUID) (source.Message, error) {
	text, err := q.RejectedMessage(ctx, sql.RejectedMessageParams{TenantID: s.Tenant, SourceID: &sourceID, ID: rejected})
	if err != nil {
		return source.Message{}, err
	}
	return source.Decode(text)
}

func (s Store) audited(ctx context.Context, q *sql.Queries, action string, row sql.Source, details any) (show.Source, error) {
	if err := s.audit(ctx, q, action, row, details); err != nil {
		return show.Source{}, err
	}
	return s.show(row)
}

func (s Store) audit(ctx context.Context, q *sql.Queries, action string, row sql.Source, details any) error {
	return db.Audit(ctx, q, s.By, db.Audited{
		Tenant:  &s.Tenant,
		Action:  action,
		Kind:    "source",
		Object:  id.Source.Format(row.ID),
		Details: details,
	})
}

func (s Store) show(row sql.Source) (show.Source, error) {
	settings, err := Settings(row, s.Keys)
	return show.Source{ID: row.ID, Settings: settings, State: stateOf(row), CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt}, err
}

// Settings are the settings of a stored source, with its connection opened.
func Settings(row sql.Source, ring *seal.Ring) (source.Settings, error) {
	s := source.Settings{Name: row.Name, Kind: endpoint.Kind(row.Kind), URL: row.URL, Start: row.Start, Mapping: row.Mapping}
	text, err := ring.Open(row.Connection, row.TenantID, row.ID)
	if err == nil {
		s.Connection, err = s.Kind.ReadConnection(text)
	}
	if err != nil {
		return s, db.Unopened(err)
	}
	return s, nil
}

// stateOf is how a stored source is.
func stateOf(row sql.Source) source.State {
	return source.State{
		PausedAt:     db.OrZero(row.PausedAt),
		FailingSince: db.OrZero(row.FailingSince),
		Reason:       row.Reason,
		Waiting:      row.Waiting,
		BehindSince:  db.OrZero(row.BehindSince),
		LastReadAt:   db.OrZero(row.LastReadAt),
		LastSentAt:   db.OrZero(row.LastSentAt),
		Missed:       row.Missed,
	}
}

// Counts counts the sources of all tenants.
func Counts(ctx context.Context, q *sql.Queries) (show.SourceCounts, error) {
	n, err := q.CountSourceStates(ctx)
	return show.SourceCounts{Active: n.Active, Paused: n.Paused, Failing: n.Failing, Waiting: n.Waiting}, err
}
