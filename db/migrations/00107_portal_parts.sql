-- functions: 080366e4d186720a

-- +goose Up

-- Parts of the dashboard that a portal link can leave out.
ALTER TABLE portal_links
	ADD COLUMN allow_replay boolean NOT NULL DEFAULT true,
	ADD COLUMN allow_event_types boolean NOT NULL DEFAULT true,
	ADD COLUMN allow_payloads boolean NOT NULL DEFAULT true;

-- +goose Down

ALTER TABLE portal_links DROP COLUMN allow_replay, DROP COLUMN allow_event_types, DROP COLUMN allow_payloads;
