-- Whether this database has the object of a token: a portal link, an invitation, an inbox, or a link in a mail.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.has_token(token_hash bytea) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT EXISTS (SELECT FROM portal_links p WHERE p.hash = token_hash) OR EXISTS (SELECT FROM invitations i WHERE i.hash = token_hash)
		OR EXISTS (SELECT FROM inboxes b WHERE b.hash = token_hash) OR EXISTS (SELECT FROM one_time_links l WHERE l.hash = token_hash)
$$;
REVOKE ALL ON FUNCTION posthorn.has_token(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.has_token(bytea) TO posthorn_ingest;
