-- Operators' views of a tenant's dashboard.

-- +goose Up

-- One view at a time for each session of an operator, for an hour at most. It ends with the session.
CREATE TABLE operator_views (
	session_id  uuid PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
	tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	operator_id uuid NOT NULL REFERENCES operators ON DELETE CASCADE,
	reason      text NOT NULL,
	acting      boolean NOT NULL DEFAULT false, -- may change things too
	began_at    timestamptz NOT NULL DEFAULT now(),
	expires_at  timestamptz NOT NULL,
	CHECK (expires_at <= began_at + interval '60 minutes')
);
SELECT posthorn.guard('operator_views');
GRANT SELECT, INSERT, UPDATE, DELETE ON operator_views TO posthorn_console;

-- +goose Down

DROP TABLE operator_views;
