package endpoints

import (
	"context"
	"time"

	"posthorn/db/sql"
	"posthorn/domain/catalogue"
	"posthorn/domain/condition"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

// Newest returns a tenant's endpoints, newest first, with what their rows hold.
func Newest(ctx context.Context, q *sql.Queries, tenant id.UUID, most int) ([]sql.Endpoint, error) {
	return q.ListEndpointsNewest(ctx, sql.ListEndpointsNewestParams{
		TenantID: tenant, Before: id.Last, Most: int32(most),
	})
}

// LaneState is the condition of a lane's endpoint.
type LaneState struct {
	condition.Condition
	Ready bool // ready deliveries are sent as fast as the endpoint's limits and the workers allow
}

// ConditionsCrossTenant returns the condition of endpoints of any tenant, for the console, without counts of waiting
// deliveries.
func ConditionsCrossTenant(ctx context.Context, q *sql.Queries, ids []id.UUID) (map[id.UUID]LaneState, error) {
	lanes, err := WaitingLanes(ctx, q, nil, ids)
	found := make(map[id.UUID]LaneState, len(lanes))
	for endpointID, l := range lanes {
		found[endpointID] = LaneState{l.Condition, l.Ready(l.At)}
	}
	return found, err
}

// Conditions returns the condition of a tenant's endpoints at a moment.
func Conditions(ctx context.Context, q *sql.Queries, tenant id.UUID, rows []sql.Endpoint,
	now time.Time,
) (map[id.UUID]condition.Condition, error) {
	full := make([]Full, len(rows))
	for i, e := range rows {
		full[i].Endpoint = e
	}
	err := addHealth(ctx, q, tenant, full)
	found := make(map[id.UUID]condition.Condition, len(rows))
	for _, e := range full {
		found[e.ID] = e.Condition(now)
	}
	return found, err
}

// OfExternalID finds the endpoint that an import created or would change.
func OfExternalID(ctx context.Context, q *sql.Queries, tenant id.UUID, externalID string) (id.UUID, error) {
	return q.ImportedEndpoint(ctx, sql.ImportedEndpointParams{TenantID: tenant, ExternalID: externalID})
}

// versionedTypes bounds how many event types with versions an endpoint's version is compared with.
const versionedTypes = 1000

// checkPinned rejects a payload version that none of the endpoint's event types declares.
func checkPinned(ctx context.Context, q *sql.Queries, tenant id.UUID, s endpoint.Settings) error {
	if s.PayloadVersion == "" {
		return nil
	}
	rows, err := q.VersionedEventTypes(ctx, sql.VersionedEventTypesParams{TenantID: tenant, Most: versionedTypes})
	if err != nil {
		return err
	}
	declared := make(map[string]map[string]catalogue.Version, len(rows))
	for _, r := range rows {
		if declared[r.Name], err = catalogue.DecodeVersions(r.Versions); err != nil {
			return err
		}
	}
	return catalogue.CheckPinned(s.PayloadVersion, s.EventTypes, declared)
}

// ReadBareSettings reads an endpoint's settings without its headers.
func ReadBareSettings(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) (endpoint.Settings, error) {
	e, err := q.GetEndpoint(ctx, sql.GetEndpointParams{TenantID: tenant, ID: endpointID})
	if err != nil {
		return endpoint.Settings{}, err
	}
	return bareSettings(e), nil
}
