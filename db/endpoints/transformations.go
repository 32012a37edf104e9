package endpoints

import (
	"context"
	"encoding/json"
	"reflect"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/transform"
)

// keptVersions is how many versions of a transformation are kept. Deliveries of older ones are rendered by the oldest
// that is.
const keptVersions = 200

// keepTransformation stores what an endpoint's transformation is from a version of its tenant's routes on.
func keepTransformation(ctx context.Context, q *sql.Queries, ring *seal.Ring, e sql.Endpoint, version int64, t *transform.Transformation) error {
	p := sql.InsertTransformationParams{
		TenantID:       e.TenantID,
		ID:             db.NewID(),
		EndpointID:     e.ID,
		RoutingVersion: version,
		Transformation: marked(t),
	}
	if t != nil && len(t.Variables) > 0 {
		p.Variables = ring.Seal(encode(t.Variables), e.TenantID, e.ID)
	}
	if err := q.InsertTransformation(ctx, p); err != nil {
		return err
	}
	return q.DropOldTransformations(ctx, sql.DropOldTransformationsParams{TenantID: e.TenantID, EndpointID: e.ID, Keep: keptVersions})
}

func sameTransformation(a, b endpoint.Settings) bool {
	return reflect.DeepEqual(a.Transformation, b.Transformation)
}

// OpenTransformations are the versions of an endpoint's transformation, oldest first. Without a ring their variables
// are marked, for people.
func OpenTransformations(rows []sql.Transformation, ring *seal.Ring) (transform.Versions, error) {
	versions := make(transform.Versions, len(rows))
	for i, r := range rows {
		v := &transform.Version{From: r.RoutingVersion, T: transformationOf(r.Transformation)}
		versions[i] = v
		if v.T == nil || len(r.Variables) == 0 || ring == nil {
			continue
		}
		text, err := ring.Open(r.Variables, r.TenantID, r.EndpointID)
		if err != nil {
			return nil, db.Unopened(err)
		}
		if err := json.Unmarshal(text, &v.T.Variables); err != nil {
			return nil, db.Unopened(err)
		}
	}
	return versions, nil
}

// Transformations are the versions of an endpoint's transformation for people: the values of their variables are
// marked.
func Transformations(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) (transform.Versions, error) {
	rows, err := q.Transformations(ctx, tenant, endpointID)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return OpenTransformations(rows, nil)
}
