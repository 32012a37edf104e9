package cli

import (
	"context"
	"time"

	"posthorn/client"
)

// feed brings every event of a tenant once, in the order of their ids, from a moment on. An event may appear below one that
// was already seen: ids are drawn before they are stored. So each look goes back a little and leaves out what it knows.
type feed struct {
	sdk    *client.Client
	seen   map[string]time.Time // by id, when it was created; what is older than every look is forgotten
	newest time.Time            // by the server's clock; zero while there is no event
}

// feedOverlap is how far behind the newest event one may still appear: longer than a request to emit may take.
const feedOverlap = 30 * time.Second

// begin sets the feed to what happens from now on, or since a moment.
func (f *feed) begin(ctx context.Context, since *time.Time) error {
	if since != nil {
		f.newest = since.Add(feedOverlap)
		return nil
	}
	latest, err := collect(f.sdk.Events(ctx, client.ListEventsParams{Limit: new(1)}), 1)
	if err != nil || len(latest) == 0 {
		return err
	}
	f.newest = latest[0].CreatedAt
	_, err = f.next(ctx) // what is there counts as seen
	return err
}

// next are the events that were not there before. On an error nothing is lost: they come with the next call.
func (f *feed) next(ctx context.Context) ([]client.Event, error) {
	params := client.ListEventsParams{Limit: new(250), Order: new(client.ListEventsParamsOrderAsc)}
	from := f.newest.Add(-feedOverlap)
	if !f.newest.IsZero() {
		params.Since = &from
	}
	all, err := collect(f.sdk.Events(ctx, params), 0)
	if err != nil {
		return nil, err
	}
	var fresh []client.Event
	for _, e := range all {
		if _, known := f.seen[e.ID]; !known {
			f.seen[e.ID] = e.CreatedAt
			fresh = append(fresh, e)
		}
		if e.CreatedAt.After(f.newest) {
			f.newest = e.CreatedAt
		}
	}
	for id, at := range f.seen {
		if at.Before(f.newest.Add(-2 * feedOverlap)) {
			delete(f.seen, id)
		}
	}
	return fresh, nil
}
