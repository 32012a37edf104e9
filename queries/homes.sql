-- Homes: which one this database is, and what it has that another home asks for.

-- name: HomeName :one
-- No row: the installation has no homes.
SELECT name FROM home;

-- name: TakeHome :one
-- The name that the database has: the first that was given to it.
INSERT INTO home (name) VALUES (@name) ON CONFLICT (id) DO UPDATE SET name = home.name RETURNING name;

-- name: HasToken :one
SELECT posthorn.has_token(@hash)::boolean AS found;

-- name: HasPerson :one
SELECT EXISTS (SELECT FROM people WHERE email = @email AND disabled_at IS NULL) AS found;
