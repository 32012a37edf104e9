-- An endpoint's changes of its format: body, header names, a signature template, a second signature. Null is none.

-- +goose Up

ALTER TABLE endpoints
	ADD COLUMN wire jsonb,
	ADD COLUMN also_secret bytea; -- sealed; null where the second signature has the endpoint's own secret

-- +goose Down

ALTER TABLE endpoints DROP COLUMN also_secret, DROP COLUMN wire;
