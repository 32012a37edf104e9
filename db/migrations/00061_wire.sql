-- What an endpoint changes about its format: body, header names, a signature of its own notation, a second signature. Null is nothing.

-- +goose Up

ALTER TABLE endpoints
	ADD COLUMN wire jsonb,
	ADD COLUMN also_secret bytea; -- sealed; null where the second signature has the endpoint's own secret

-- +goose Down

ALTER TABLE endpoints DROP COLUMN also_secret, DROP COLUMN wire;
