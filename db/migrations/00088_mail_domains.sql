-- +goose Up
-- The domains of addresses are stored in ASCII (RFC 3492), so that both forms of an international domain are one
-- mailbox. Where both forms have a row already, the row in ASCII is the one that is found from now on.
GRANT CREATE ON SCHEMA posthorn TO posthorn_console;
SET LOCAL ROLE posthorn_console;
-- +goose StatementBegin
CREATE FUNCTION posthorn.ascii_label(label text) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path = posthorn, pg_temp AS $$
DECLARE
	points int[] := (SELECT array_agg(ascii(c) ORDER BY n) FROM regexp_split_to_table(normalize(label, NFC), '') WITH ORDINALITY AS s(c, n));
	coded  text := regexp_replace(normalize(label, NFC), '[^\x01-\x7f]', '', 'g');
	basic  int := length(coded);
	done   int := basic;
	n      int := 128;
	delta  int := 0;
	bias   int := 72;
	next   int;
	q      int;
	k      int;
	t      int;
	p      int;
BEGIN
	IF basic = cardinality(points) THEN
		RETURN label;
	END IF;
	IF basic > 0 THEN
		coded := coded || '-';
	END IF;
	WHILE done < cardinality(points) LOOP
		next := (SELECT min(x) FROM unnest(points) AS x WHERE x >= n);
		delta := delta + (next - n) * (done + 1);
		n := next;
		FOREACH p IN ARRAY points LOOP
			IF p < n THEN
				delta := delta + 1;
			ELSIF p = n THEN
				q := delta;
				k := 36;
				LOOP
					t := least(greatest(k - bias, 1), 26);
					EXIT WHEN q < t;
					coded := coded || substr('abcdefghijklmnopqrstuvwxyz0123456789', t + (q - t) % (36 - t) + 1, 1);
					q := (q - t) / (36 - t);
					k := k + 36;
				END LOOP;
				coded := coded || substr('abcdefghijklmnopqrstuvwxyz0123456789', q + 1, 1);
				delta := CASE WHEN done = basic THEN delta / 700 ELSE delta / 2 END;
				delta := delta + delta / (done + 1);
				k := 0;
				WHILE delta > 455 LOOP
					delta := delta / 35;
					k := k + 36;
				END LOOP;
				bias := k + 36 * delta / (delta + 38);
				delta := 0;
				done := done + 1;
			END IF;
		END LOOP;
		delta := delta + 1;
		n := n + 1;
	END LOOP;
	RETURN 'xn--' || coded;
END $$;
-- +goose StatementEnd
CREATE FUNCTION posthorn.ascii_domain(address text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = posthorn, pg_temp AS $$
	SELECT coalesce(substring(address FROM '^.*@'), '')
		|| (SELECT string_agg(posthorn.ascii_label(l), '.' ORDER BY n)
			FROM regexp_split_to_table(regexp_replace(address, '^.*@', ''), '\.') WITH ORDINALITY AS s(l, n))
$$;
UPDATE people p SET email = posthorn.ascii_domain(p.email)
WHERE p.email ~ '@.*[^\x01-\x7f]' AND NOT EXISTS (SELECT FROM people o WHERE o.email = posthorn.ascii_domain(p.email));
UPDATE operators p SET email = posthorn.ascii_domain(p.email)
WHERE p.email ~ '@.*[^\x01-\x7f]' AND NOT EXISTS (SELECT FROM operators o WHERE o.email = posthorn.ascii_domain(p.email));
UPDATE invitations i SET email = posthorn.ascii_domain(i.email)
WHERE i.email ~ '@.*[^\x01-\x7f]'
	AND NOT EXISTS (SELECT FROM invitations o WHERE o.tenant_id = i.tenant_id AND o.email = posthorn.ascii_domain(i.email));
UPDATE sso_domains d SET domain = posthorn.ascii_domain(d.domain)
WHERE d.domain ~ '[^\x01-\x7f]' AND NOT EXISTS (SELECT FROM sso_domains o WHERE o.domain = posthorn.ascii_domain(d.domain));
UPDATE notice_preferences n SET recipient = posthorn.ascii_domain(n.recipient)
WHERE n.recipient ~ '@.*[^\x01-\x7f]'
	AND NOT EXISTS (SELECT FROM notice_preferences o
		WHERE o.tenant_id = n.tenant_id AND o.kind = n.kind AND o.recipient = posthorn.ascii_domain(n.recipient));
UPDATE tenants t SET settings = jsonb_set(t.settings, '{contacts}',
	(SELECT jsonb_agg(posthorn.ascii_domain(c) ORDER BY n) FROM jsonb_array_elements_text(t.settings -> 'contacts') WITH ORDINALITY AS s(c, n)))
WHERE jsonb_typeof(t.settings -> 'contacts') = 'array' AND t.settings ->> 'contacts' ~ '@[^"]*[^\x01-\x7f]';
DROP FUNCTION posthorn.ascii_domain(text);
DROP FUNCTION posthorn.ascii_label(text);
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_console;

-- +goose Down
-- Addresses stay in ASCII: older versions send to them and show them as they are.
SELECT 1;
