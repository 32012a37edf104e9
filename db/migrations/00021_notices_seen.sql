-- Which notices a member has read.

-- +goose Up

-- Up to which notice a member has read them. Who is there already begins now.
ALTER TABLE memberships ADD COLUMN notices_seen uuid NOT NULL DEFAULT posthorn.first_id(now());

-- +goose Down

ALTER TABLE memberships DROP COLUMN notices_seen;
