package endpoints

import (
	"context"

	"posthorn/db/sql"
	"posthorn/domain/catalogue"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

// OfExternalID finds the endpoint that an import created or would change.
func OfExternalID(ctx context.Context, q *sql.Queries, tenant id.UUID, externalID string) (id.UUID, error) {
	return q.ImportedEndpoint(ctx, tenant, externalID)
}

// versionedTypes bounds how many event types with versions an endpoint's version is compared with.
const versionedTypes = 1000

// checkPinned rejects a payload version that none of the endpoint's event types declares.
func checkPinned(ctx context.Context, q *sql.Queries, tenant id.UUID, s endpoint.Settings) error {
	if s.PayloadVersion == "" {
		return nil
	}
	rows, err := q.VersionedEventTypes(ctx, tenant, versionedTypes)
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
	e, err := q.GetEndpoint(ctx, tenant, endpointID)
	if err != nil {
		return endpoint.Settings{}, err
	}
	return bareSettings(e), nil
}
