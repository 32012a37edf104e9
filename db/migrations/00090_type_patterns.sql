-- Whether an event type matches the filter of a list: a type, all types below a prefix (order.*), or an empty text
-- (all types).

-- +goose Up

CREATE FUNCTION posthorn.matches_type(pattern text, event_type text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT pattern = '' OR event_type = pattern OR right(pattern, 2) = '.*' AND starts_with(event_type, left(pattern, -1)) $$;
REVOKE ALL ON FUNCTION posthorn.matches_type(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.matches_type(text, text) TO posthorn_tenant, posthorn_worker, posthorn_console;

-- +goose Down

DROP FUNCTION posthorn.matches_type(text, text);
