package maintenance

import (
	"context"
	"fmt"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

// resealMost is how many values one transaction reseals.
const resealMost = 200

// sealedValue is one sealed value and the ids under which it is sealed.
type sealedValue struct {
	row, tenant, object id.UUID
	sealed              []byte
}

// sealedColumn is a column of sealed values. TestEverySealedColumnIsRotated compares the list with the schema.
type sealedColumn struct {
	name  string // table.column
	stale func(ctx context.Context, q *sql.Queries, head []byte, most int32) ([]sealedValue, error)
	put   func(ctx context.Context, q *sql.Queries, v sealedValue) error
}

var sealedColumns = []sealedColumn{
	{"endpoint_secrets.sealed", func(ctx context.Context, q *sql.Queries, head []byte, most int32) ([]sealedValue, error) {
		rows, err := q.StaleEndpointSecrets(ctx, head, most)
		return sealedValues(rows, err, func(r sql.StaleEndpointSecretsRow) sealedValue {
			return sealedValue{r.ID, r.TenantID, r.EndpointID, r.Sealed}
		})
	}, func(ctx context.Context, q *sql.Queries, v sealedValue) error {
		return q.ResealEndpointSecret(ctx, sql.ResealEndpointSecretParams{
			Sealed:   v.sealed,
			TenantID: v.tenant,
			ID:       v.row,
		})
	}},
	{"endpoints.custom_headers", func(ctx context.Context, q *sql.Queries, head []byte, most int32) ([]sealedValue, error) {
		rows, err := q.StaleCustomHeaders(ctx, head, most)
		return sealedValues(rows, err, func(r sql.StaleCustomHeadersRow) sealedValue {
			return sealedValue{r.ID, r.TenantID, r.ID, r.CustomHeaders}
		})
	}, func(ctx context.Context, q *sql.Queries, v sealedValue) error {
		return q.ResealCustomHeaders(ctx, sql.ResealCustomHeadersParams{
			CustomHeaders: v.sealed,
			TenantID:      v.tenant,
			ID:            v.row,
		})
	}},
	{"endpoints.connection", func(ctx context.Context, q *sql.Queries, head []byte, most int32) ([]sealedValue, error) {
		rows, err := q.StaleConnections(ctx, head, most)
		return sealedValues(rows, err, func(r sql.StaleConnectionsRow) sealedValue {
			return sealedValue{r.ID, r.TenantID, r.ID, r.Connection}
		})
	}, func(ctx context.Context, q *sql.Queries, v sealedValue) error {
		return q.ResealConnection(ctx, sql.ResealConnectionParams{Connection: v.sealed, TenantID: v.tenant, ID: v.row})
	}},
	{"sources.connection", func(ctx context.Context, q *sql.Queries, head []byte, most int32) ([]sealedValue, error) {
		rows, err := q.StaleSources(ctx, head, most)
		return sealedValues(rows, err, func(r sql.StaleSourcesRow) sealedValue {
			return sealedValue{r.ID, r.TenantID, r.ID, r.Connection}
		})
	}, func(ctx context.Context, q *sql.Queries, v sealedValue) error {
		return q.ResealSource(ctx, sql.ResealSourceParams{Connection: v.sealed, TenantID: v.tenant, ID: v.row})
	}},
	{"endpoints.also_secret", func(ctx context.Context, q *sql.Queries, head []byte, most int32) ([]sealedValue, error) {
		rows, err := q.StaleAlsoSecrets(ctx, head, most)
		return sealedValues(rows, err, func(r sql.StaleAlsoSecretsRow) sealedValue {
			return sealedValue{r.ID, r.TenantID, r.ID, r.AlsoSecret}
		})
	}, func(ctx context.Context, q *sql.Queries, v sealedValue) error {
		return q.ResealAlsoSecret(ctx, sql.ResealAlsoSecretParams{AlsoSecret: v.sealed, TenantID: v.tenant, ID: v.row})
	}},
	{"signing_keys.sealed", func(ctx context.Context, q *sql.Queries, head []byte, most int32) ([]sealedValue, error) {
		rows, err := q.StaleSigningKeys(ctx, head, most)
		return sealedValues(rows, err, func(r sql.StaleSigningKeysRow) sealedValue {
			return sealedValue{r.ID, r.TenantID, r.ID, r.Sealed}
		})
	}, func(ctx context.Context, q *sql.Queries, v sealedValue) error {
		return q.ResealSigningKey(ctx, sql.ResealSigningKeyParams{Sealed: v.sealed, TenantID: v.tenant, ID: v.row})
	}},
	{"egress_proxies.sealed", func(ctx context.Context, q *sql.Queries, head []byte, most int32) ([]sealedValue, error) {
		rows, err := q.StaleEgressProxies(ctx, head, most)
		return sealedValues(rows, err, func(r sql.StaleEgressProxiesRow) sealedValue {
			return sealedValue{r.TenantID, r.TenantID, r.TenantID, r.Sealed}
		})
	}, func(ctx context.Context, q *sql.Queries, v sealedValue) error {
		return q.ResealEgressProxy(ctx, v.sealed, v.row)
	}},
	{"endpoints.credentials", func(ctx context.Context, q *sql.Queries, head []byte, most int32) ([]sealedValue, error) {
		rows, err := q.StaleCredentials(ctx, head, most)
		return sealedValues(rows, err, func(r sql.StaleCredentialsRow) sealedValue {
			return sealedValue{r.ID, r.TenantID, r.ID, r.Credentials}
		})
	}, func(ctx context.Context, q *sql.Queries, v sealedValue) error {
		return q.ResealCredentials(ctx, sql.ResealCredentialsParams{Credentials: v.sealed, TenantID: v.tenant, ID: v.row})
	}},
	{"transformations.variables", func(ctx context.Context, q *sql.Queries, head []byte, most int32) ([]sealedValue, error) {
		rows, err := q.StaleVariables(ctx, head, most)
		return sealedValues(rows, err, func(r sql.StaleVariablesRow) sealedValue {
			return sealedValue{r.ID, r.TenantID, r.EndpointID, r.Variables}
		})
	}, func(ctx context.Context, q *sql.Queries, v sealedValue) error {
		return q.ResealVariables(ctx, sql.ResealVariablesParams{Variables: v.sealed, TenantID: v.tenant, ID: v.row})
	}},
	{"mails.sealed", func(ctx context.Context, q *sql.Queries, head []byte, most int32) ([]sealedValue, error) {
		rows, err := q.StaleMails(ctx, head, most)
		return sealedValues(rows, err, func(r sql.StaleMailsRow) sealedValue {
			return sealedValue{r.ID, db.TenantOrZero(r.TenantID), r.ID, r.Sealed}
		})
	}, func(ctx context.Context, q *sql.Queries, v sealedValue) error {
		return q.ResealMail(ctx, v.sealed, v.row)
	}},
	{"mailbox.sealed", func(ctx context.Context, q *sql.Queries, head []byte, most int32) ([]sealedValue, error) {
		rows, err := q.StaleMailbox(ctx, head, most)
		return sealedValues(rows, err, func(r sql.Mailbox) sealedValue {
			return sealedValue{
				r.ID,
				id.UUID{},
				r.ID,
				r.Sealed,
			}
		})
	}, func(ctx context.Context, q *sql.Queries, v sealedValue) error {
		return q.ResealMailbox(ctx, v.sealed, v.row)
	}},
	{"people.totp", func(ctx context.Context, q *sql.Queries, head []byte, most int32) ([]sealedValue, error) {
		rows, err := q.StalePeopleSeeds(ctx, head, most)
		return sealedValues(rows, err, func(r sql.StalePeopleSeedsRow) sealedValue {
			return sealedValue{r.ID, id.UUID{}, r.ID, r.Totp}
		})
	}, func(ctx context.Context, q *sql.Queries, v sealedValue) error {
		return q.ResealPersonSeed(ctx, v.sealed, v.row)
	}},
	{"operators.totp", func(ctx context.Context, q *sql.Queries, head []byte, most int32) ([]sealedValue, error) {
		rows, err := q.StaleOperatorSeeds(ctx, head, most)
		return sealedValues(rows, err, func(r sql.StaleOperatorSeedsRow) sealedValue {
			return sealedValue{r.ID, id.UUID{}, r.ID, r.Totp}
		})
	}, func(ctx context.Context, q *sql.Queries, v sealedValue) error {
		return q.ResealOperatorSeed(ctx, v.sealed, v.row)
	}},
	{"sso_connections.client_secret", func(ctx context.Context, q *sql.Queries, head []byte, most int32) ([]sealedValue, error) {
		rows, err := q.StaleClientSecrets(ctx, head, most)
		return sealedValues(rows, err, func(r sql.StaleClientSecretsRow) sealedValue {
			return sealedValue{r.TenantID, r.TenantID, r.TenantID, r.ClientSecret}
		})
	}, func(ctx context.Context, q *sql.Queries, v sealedValue) error {
		return q.ResealClientSecret(ctx, v.sealed, v.tenant)
	}},
	{"tenant_moves.link_key", func(ctx context.Context, q *sql.Queries, head []byte, most int32) ([]sealedValue, error) {
		rows, err := q.StaleLinkKeys(ctx, head, most)
		return sealedValues(rows, err, func(r sql.StaleLinkKeysRow) sealedValue {
			return sealedValue{r.TenantID, r.TenantID, r.TenantID, r.LinkKey}
		})
	}, func(ctx context.Context, q *sql.Queries, v sealedValue) error {
		return q.ResealLinkKey(ctx, v.sealed, v.tenant)
	}},
}

func sealedValues[R any](rows []R, err error, value func(R) sealedValue) ([]sealedValue, error) {
	all := make([]sealedValue, len(rows))
	for i, r := range rows {
		all[i] = value(r)
	}
	return all, err
}

// SealedColumns names the columns that a rotation reseals, as table.column.
func SealedColumns() []string {
	all := make([]string, len(sealedColumns))
	for i, c := range sealedColumns {
		all[i] = c.name
	}
	return all
}

// Reseal seals again every value that is not sealed with the ring's newest key, some rows in each transaction, and
// returns how many values that were. It can run while Posthorn runs, be interrupted and be run again: each value is
// readable at every moment under the keys of the ring. A value that no key of the ring opens ends it with an error that
// wraps seal.ErrUnopened and names the row.
func Reseal(ctx context.Context, d *db.DB, ring *seal.Ring) (n int, err error) {
	for _, column := range sealedColumns {
		for some := resealMost; some == resealMost; n += some {
			err := d.Console(ctx, func(q *sql.Queries) error {
				stale, err := column.stale(ctx, q, ring.Head(), resealMost)
				if err != nil {
					return err
				}
				some = len(stale)
				for _, v := range stale {
					plain, err := ring.Open(v.sealed, v.tenant, v.object)
					if err != nil {
						return fmt.Errorf("%s of row %s: %w", column.name, v.row, err)
					}
					v.sealed = ring.Seal(plain, v.tenant, v.object)
					if err := column.put(ctx, q, v); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// SealedSample is a secret as it is stored.
type SealedSample = sql.SealedSamplesRow

// SealedSamples reads stored secrets, at least one of each key that seals any.
func SealedSamples(ctx context.Context, d *db.DB) ([]SealedSample, error) {
	return db.Read(ctx, d.Console, func(q *sql.Queries) ([]SealedSample, error) { return q.SealedSamples(ctx) })
}
