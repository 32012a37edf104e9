package client

import (
	"context"
	"iter"
)

// Each iterates over a list of the API, page after page. list fetches the page after a cursor, nil for the first. An
// error ends the iteration and is yielded last. Most programs use the iterators for particular lists.
func Each[T any](list func(cursor *string) ([]T, Nullable[string], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var cursor *string
		for {
			rows, next, err := list(cursor)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
			after, err := next.Get()
			if err != nil { // null or absent: that was the last page
				return
			}
			cursor = &after
		}
	}
}

// Events walks through the events that the parameters select, newest first unless they say otherwise.
//
//	for event, err := range c.Events(ctx, client.ListEventsParams{Type: new("order.completed")}) {
func (c *Client) Events(ctx context.Context, params ListEventsParams) iter.Seq2[Event, error] {
	return Each(func(cursor *string) ([]Event, Nullable[string], error) {
		params.Cursor = cursor
		page, err := c.ListEvents(ctx, params)
		return page.Data, page.NextCursor, err
	})
}

// Subscriptions iterates over the subscriptions of AI clients.
func (c *Client) Subscriptions(ctx context.Context, params ListSubscriptionsParams) iter.Seq2[Subscription, error] {
	return Each(func(cursor *string) ([]Subscription, Nullable[string], error) {
		params.Cursor = cursor
		page, err := c.ListSubscriptions(ctx, params)
		return page.Data, page.NextCursor, err
	})
}

// Sources iterates over the sources of events.
func (c *Client) Sources(ctx context.Context, params ListSourcesParams) iter.Seq2[Source, error] {
	return Each(func(cursor *string) ([]Source, Nullable[string], error) {
		params.Cursor = cursor
		page, err := c.ListSources(ctx, params)
		return page.Data, page.NextCursor, err
	})
}

// EventDeliveries iterates over the deliveries of one event.
func (c *Client) EventDeliveries(ctx context.Context, eventID string, params ListEventDeliveriesParams) iter.Seq2[Delivery, error] {
	return Each(func(cursor *string) ([]Delivery, Nullable[string], error) {
		params.Cursor = cursor
		page, err := c.ListEventDeliveries(ctx, eventID, params)
		return page.Data, page.NextCursor, err
	})
}

// Deliveries iterates over the deliveries that the parameters select, newest first unless they say otherwise.
func (c *Client) Deliveries(ctx context.Context, params ListDeliveriesParams) iter.Seq2[Delivery, error] {
	return Each(func(cursor *string) ([]Delivery, Nullable[string], error) {
		params.Cursor = cursor
		page, err := c.ListDeliveries(ctx, params)
		return page.Data, page.NextCursor, err
	})
}

// Endpoints iterates over the tenant's endpoints.
func (c *Client) Endpoints(ctx context.Context, params ListEndpointsParams) iter.Seq2[Endpoint, error] {
	return Each(func(cursor *string) ([]Endpoint, Nullable[string], error) {
		params.Cursor = cursor
		page, err := c.ListEndpoints(ctx, params)
		return page.Data, page.NextCursor, err
	})
}

// EventTypes iterates over the catalog.
func (c *Client) EventTypes(ctx context.Context, params ListEventTypesParams) iter.Seq2[EventType, error] {
	return Each(func(cursor *string) ([]EventType, Nullable[string], error) {
		params.Cursor = cursor
		page, err := c.ListEventTypes(ctx, params)
		return page.Data, page.NextCursor, err
	})
}

// Keys iterates over the tenant's API keys, including revoked and expired ones.
func (c *Client) Keys(ctx context.Context, params ListKeysParams) iter.Seq2[Key, error] {
	return Each(func(cursor *string) ([]Key, Nullable[string], error) {
		params.Cursor = cursor
		page, err := c.ListKeys(ctx, params)
		return page.Data, page.NextCursor, err
	})
}

// AuditLog iterates over the audit log.
func (c *Client) AuditLog(ctx context.Context, params ListAuditLogParams) iter.Seq2[AuditEntry, error] {
	return Each(func(cursor *string) ([]AuditEntry, Nullable[string], error) {
		params.Cursor = cursor
		page, err := c.ListAuditLog(ctx, params)
		return page.Data, page.NextCursor, err
	})
}

// Tenants iterates over all tenants; for platform keys.
func (c *Client) Tenants(ctx context.Context, params ListTenantsParams) iter.Seq2[Tenant, error] {
	return Each(func(cursor *string) ([]Tenant, Nullable[string], error) {
		params.Cursor = cursor
		page, err := c.ListTenants(ctx, params)
		return page.Data, page.NextCursor, err
	})
}

// BulkJobs iterates over the tenant's bulk jobs, newest first unless the parameters say otherwise.
func (c *Client) BulkJobs(ctx context.Context, params ListBulkJobsParams) iter.Seq2[BulkJob, error] {
	return Each(func(cursor *string) ([]BulkJob, Nullable[string], error) {
		params.Cursor = cursor
		page, err := c.ListBulkJobs(ctx, params)
		return page.Data, page.NextCursor, err
	})
}
