-- The audit log keeps the e-mail address of the operator who did something: a tenant cannot read the table of operators.
-- Members and API keys have their names in tables that the tenant reads, so they are not copied here.

-- +goose Up

ALTER TABLE audit_log ADD COLUMN actor_name text NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE audit_log DROP COLUMN actor_name;
