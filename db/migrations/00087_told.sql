-- +goose Up
-- Facts for pages about people from elsewhere: whether the provider sent their groups, and whether the mail with an
-- invitation was sent.
ALTER TABLE sso_identities ADD COLUMN role_gap text NOT NULL DEFAULT ''; -- sso.Gap of the last sign-in, if the role was kept because of it
ALTER TABLE invitations ADD COLUMN mail_id uuid;                         -- null: an invitation of an older version
GRANT SELECT (state) ON mails TO posthorn_tenant;

-- +goose Down
REVOKE SELECT (state) ON mails FROM posthorn_tenant;
ALTER TABLE invitations DROP COLUMN mail_id;
ALTER TABLE sso_identities DROP COLUMN role_gap;
