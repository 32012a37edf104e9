-- The delivery engine: tenants, keys, endpoints, events, deliveries, attempts, the queue and its lanes, the ledger.
-- docs/design.md defines the words.

-- +goose Up

-- Everything lives in the schema posthorn, so that a product may share its database: the migrator creates the schema and
-- connects with it as the search path.
CREATE SCHEMA IF NOT EXISTS posthorn;

-- One login role owns everything and does nothing with it: every transaction takes one of these roles first.
--   posthorn_tenant   a request of one tenant; sees the rows of the tenant that the transaction names, else none
--   posthorn_ingest   the group commit: writes events of many tenants, reads the routing table
--   posthorn_worker   lanes, sender, recorder, jobs
--   posthorn_console  operators and the command line
--   posthorn_lookup   owns the functions that answer before a tenant is known (which key is this?)
-- The login role must not inherit them, or their policies would apply without SET ROLE.
-- +goose StatementBegin
DO $$
DECLARE
	r text;
	modern boolean := current_setting('server_version_num')::int >= 160000;
BEGIN
	FOREACH r IN ARRAY ARRAY['posthorn_tenant', 'posthorn_ingest', 'posthorn_worker', 'posthorn_console', 'posthorn_lookup'] LOOP
		IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = r) THEN
			BEGIN
				EXECUTE format('CREATE ROLE %I NOLOGIN NOINHERIT', r);
			EXCEPTION WHEN duplicate_object OR unique_violation THEN
				NULL; -- another database of this server is being migrated at the same moment
			END;
		END IF;
		IF modern THEN
			EXECUTE format('GRANT %I TO CURRENT_USER WITH INHERIT FALSE, SET TRUE', r);
		ELSIF NOT pg_has_role(current_user, r, 'MEMBER') THEN
			EXECUTE format('GRANT %I TO CURRENT_USER', r);
		END IF;
		EXECUTE format('GRANT USAGE ON SCHEMA posthorn TO %I', r);
	END LOOP;
	IF NOT modern AND (SELECT rolinherit AND NOT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
		EXECUTE 'ALTER ROLE CURRENT_USER NOINHERIT';
	END IF;
END $$;
-- +goose StatementEnd

-- The tenant of this transaction, or null. Set with set_config('posthorn.tenant', ..., true).
-- +goose StatementBegin
CREATE FUNCTION posthorn.tenant() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
RETURN nullif(current_setting('posthorn.tenant', true), '')::uuid;
-- +goose StatementEnd

-- The creation time in a UUIDv7: its first 48 bits are milliseconds since 1970 (RFC 9562, section 5.7).
-- +goose StatementBegin
CREATE FUNCTION posthorn.created_at(id uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN to_timestamp(('x' || left(translate(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0);
-- +goose StatementEnd

-- The smallest UUIDv7 of a moment: ids before it are older.
-- +goose StatementBegin
CREATE FUNCTION posthorn.first_id(at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid;
-- +goose StatementEnd

-- Puts a table under row-level security: the tenant role sees its own rows, the trusted roles see all, and the owner,
-- who has no policy, sees none.
-- +goose StatementBegin
CREATE FUNCTION posthorn.guard(t regclass, tenant_column name DEFAULT 'tenant_id') RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	r text;
BEGIN
	EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', t);
	EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', t);
	EXECUTE format('CREATE POLICY tenant ON %s TO posthorn_tenant USING (%I = (SELECT posthorn.tenant())) WITH CHECK (%I = (SELECT posthorn.tenant()))',
		t, tenant_column, tenant_column);
	FOREACH r IN ARRAY ARRAY['ingest', 'worker', 'console', 'lookup'] LOOP
		EXECUTE format('CREATE POLICY %I ON %s TO %I USING (true) WITH CHECK (true)', r, t, 'posthorn_' || r);
	END LOOP;
END $$;
-- +goose StatementEnd

CREATE TABLE tenants (
	id              uuid PRIMARY KEY,
	name            text NOT NULL,
	state           text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'suspended')),
	routing_version bigint NOT NULL DEFAULT 1,     -- grows with every change that routes events differently
	strict_types    boolean NOT NULL DEFAULT false, -- refuse events whose type is not in the catalogue
	retention_days  int NOT NULL DEFAULT 90 CHECK (retention_days BETWEEN 1 AND 3650),
	settings        jsonb NOT NULL DEFAULT '{}',
	created_at      timestamptz NOT NULL
);
SELECT posthorn.guard('tenants', 'id');

-- The platform's own settings: one row.
CREATE TABLE platform (
	id       boolean PRIMARY KEY DEFAULT true CHECK (id),
	settings jsonb NOT NULL DEFAULT '{}'
);
INSERT INTO platform DEFAULT VALUES;

-- Counters that caches poll: while the number is unchanged, the cache is current.
CREATE TABLE revisions (
	name text PRIMARY KEY,
	n    bigint NOT NULL DEFAULT 1
);
INSERT INTO revisions (name) VALUES ('keys');

CREATE TABLE api_keys (
	id           uuid PRIMARY KEY,
	tenant_id    uuid REFERENCES tenants ON DELETE CASCADE, -- null: a platform key, which may act for any tenant
	name         text NOT NULL,
	prefix       text NOT NULL,          -- the part that is shown
	hash         bytea NOT NULL UNIQUE,  -- SHA-256 of the whole key
	scopes       text[] NOT NULL,
	created_at   timestamptz NOT NULL,
	expires_at   timestamptz,
	revoked_at   timestamptz,
	last_used_at timestamptz
);
CREATE INDEX ON api_keys (tenant_id, id);
SELECT posthorn.guard('api_keys');

CREATE TABLE operators (
	id          uuid PRIMARY KEY,
	email       text NOT NULL UNIQUE,
	created_at  timestamptz NOT NULL,
	disabled_at timestamptz
);

CREATE TABLE event_types (
	tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	name        text NOT NULL,
	description text NOT NULL DEFAULT '',
	created_at  timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (tenant_id, name)
);
SELECT posthorn.guard('event_types');

CREATE TABLE endpoints (
	tenant_id           uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	id                  uuid NOT NULL UNIQUE,
	url                 text NOT NULL,
	description         text NOT NULL DEFAULT '',
	event_types         text[] NOT NULL,
	filter              text,                        -- JSON as saved: a string is CEL, an object means equality on all
	channels            text[] NOT NULL DEFAULT '{}',
	format              text NOT NULL DEFAULT 'standard',
	prefix              text NOT NULL DEFAULT 'Webhook',
	retry_policy        text NOT NULL DEFAULT 'standard', -- a named schedule, or 'custom'
	retry_delays        int[],                       -- seconds; custom schedules only
	retry_client_errors boolean NOT NULL DEFAULT false,
	timeout_seconds     int NOT NULL DEFAULT 15 CHECK (timeout_seconds BETWEEN 1 AND 30),
	max_in_flight       int NOT NULL DEFAULT 5 CHECK (max_in_flight BETWEEN 1 AND 100),
	rate_limit          int CHECK (rate_limit BETWEEN 1 AND 100000), -- requests a second; null: unlimited
	burst               int CHECK (burst BETWEEN 1 AND 100000),
	ordering            text NOT NULL DEFAULT 'none' CHECK (ordering IN ('none', 'key', 'strict')),
	payload_version     text,
	accept_conflict     boolean NOT NULL DEFAULT false,
	verification        text NOT NULL DEFAULT 'challenge' CHECK (verification IN ('challenge', 'challenge_get', 'simple')),
	metadata            jsonb NOT NULL DEFAULT '{}',
	custom_headers      bytea,                       -- sealed JSON object of strings
	sensitive_headers   text[] NOT NULL DEFAULT '{}', -- names of those whose values are hidden although the name tells nothing
	status              text NOT NULL DEFAULT 'unverified' CHECK (status IN ('unverified', 'active', 'paused', 'disabled')),
	status_reason       text NOT NULL DEFAULT '',
	status_at           timestamptz NOT NULL DEFAULT now(),
	verified_at         timestamptz,
	slot_secret_id      uuid,                        -- the secret that formats with one signature slot sign with
	created_at          timestamptz NOT NULL,
	updated_at          timestamptz NOT NULL DEFAULT now(),
	deleted_at          timestamptz,
	PRIMARY KEY (tenant_id, id)
);
SELECT posthorn.guard('endpoints');

-- The history of routes: an event has the routing version that it was fanned out under, so that its routing can be
-- shown later, without a row per event and endpoint.
CREATE TABLE endpoint_revisions (
	tenant_id       uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	endpoint_id     uuid NOT NULL,
	routing_version bigint NOT NULL,
	event_types     text[] NOT NULL,
	filter          text,
	channels        text[] NOT NULL,
	status          text NOT NULL,
	deleted         boolean NOT NULL DEFAULT false,
	at              timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (tenant_id, endpoint_id, routing_version)
);
SELECT posthorn.guard('endpoint_revisions');

CREATE TABLE endpoint_secrets (
	tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	id          uuid NOT NULL,
	endpoint_id uuid NOT NULL,
	sealed      bytea NOT NULL,  -- AES-256-GCM; associated data: key id, tenant, endpoint
	public_key  text,            -- whpk_ of an ed25519 pair
	hint        text NOT NULL,   -- last characters, to tell secrets apart
	created_at  timestamptz NOT NULL,
	expires_at  timestamptz,     -- end of its overlap; null: current
	PRIMARY KEY (tenant_id, id)
);
CREATE INDEX ON endpoint_secrets (endpoint_id);
SELECT posthorn.guard('endpoint_secrets');

CREATE TABLE verifications (
	tenant_id    uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	id           uuid NOT NULL,
	endpoint_id  uuid NOT NULL,
	challenge    text NOT NULL,
	state        text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'succeeded', 'failed', 'superseded')),
	tries        int NOT NULL DEFAULT 0,
	due_at       timestamptz NOT NULL DEFAULT now(),
	requested_at timestamptz NOT NULL DEFAULT now(),
	done_at      timestamptz,
	last_status  int,
	last_detail  text NOT NULL DEFAULT '', -- in plain words, for the tenant
	PRIMARY KEY (tenant_id, id)
);
CREATE INDEX ON verifications (due_at) WHERE state = 'pending';
CREATE INDEX ON verifications (endpoint_id, id);
SELECT posthorn.guard('verifications');

-- Bulk tables, a partition a day (UTC). created_at is the time in the id. No foreign key leaves them.
CREATE TABLE events (
	tenant_id       uuid NOT NULL,
	created_at      timestamptz NOT NULL,
	id              uuid NOT NULL,
	type            text NOT NULL,
	data            bytea,                -- the exact bytes received; null: expunged
	key             text,
	channels        text[],
	version         text,
	occurred_at     timestamptz,
	deliver_at      timestamptz,
	routing_version bigint NOT NULL,
	PRIMARY KEY (tenant_id, created_at, id)
) PARTITION BY RANGE (created_at);
SELECT posthorn.guard('events');

-- status: 0 pending, 1 retrying, 2 delivered, 3 failed, 4 canceled (domain/delivery). No index may name a column that
-- changes, so that every update stays within its page.
CREATE TABLE deliveries (
	tenant_id    uuid NOT NULL,
	created_at   timestamptz NOT NULL,
	id           uuid NOT NULL,
	event_id     uuid NOT NULL,
	endpoint_id  uuid NOT NULL,
	event_type   text NOT NULL,
	status       smallint NOT NULL DEFAULT 0,
	reason       smallint NOT NULL DEFAULT 0,
	attempts     smallint NOT NULL DEFAULT 0,
	last_status  smallint NOT NULL DEFAULT 0,  -- HTTP; 0: no answer yet
	last_failure smallint NOT NULL DEFAULT 0,
	settled_at   timestamptz,
	archived_at  timestamptz,
	replay_of    uuid,
	PRIMARY KEY (tenant_id, created_at, id)
) PARTITION BY RANGE (created_at);
-- Neither begins with the tenant: on an empty partition the planner would prefer them to the key, and keep the plan.
CREATE INDEX deliveries_endpoint ON deliveries (endpoint_id, created_at, id);
CREATE INDEX deliveries_event ON deliveries (event_id);
SELECT posthorn.guard('deliveries');

CREATE TABLE attempts (
	tenant_id        uuid NOT NULL,
	created_at       timestamptz NOT NULL,  -- when the request began
	id               uuid NOT NULL,
	delivery_id      uuid NOT NULL,
	endpoint_id      uuid NOT NULL,
	number           smallint NOT NULL,
	late             boolean NOT NULL DEFAULT false, -- the result came after the delivery had moved on; it changed nothing
	status           smallint NOT NULL,     -- HTTP; 0: no answer
	failure          smallint NOT NULL,
	dns_us           int NOT NULL,
	connect_us       int NOT NULL,
	tls_us           int NOT NULL,
	wait_us          int NOT NULL,
	read_us          int NOT NULL,
	total_us         int NOT NULL,
	url              text NOT NULL,         -- query values masked
	format           text NOT NULL,
	signature        text NOT NULL,
	response_headers text,
	response_excerpt bytea,
	error            text
) PARTITION BY RANGE (created_at);
-- Attempts are only ever looked up by delivery. A key would be three times as wide, and nothing refers to it.
CREATE INDEX attempts_delivery ON attempts (delivery_id);
SELECT posthorn.guard('attempts');

CREATE TABLE dead_letters (
	tenant_id   uuid NOT NULL,
	delivery_id uuid NOT NULL,
	endpoint_id uuid NOT NULL,
	event_type  text NOT NULL,
	reason      smallint NOT NULL,
	failed_at   timestamptz NOT NULL DEFAULT now(),
	archived    boolean NOT NULL DEFAULT false,
	replayed    boolean NOT NULL DEFAULT false,
	PRIMARY KEY (tenant_id, delivery_id)
);
CREATE INDEX ON dead_letters (tenant_id, endpoint_id, delivery_id);
SELECT posthorn.guard('dead_letters');

CREATE TABLE cancellations (
	tenant_id   uuid NOT NULL,
	delivery_id uuid NOT NULL,
	endpoint_id uuid NOT NULL,
	event_type  text NOT NULL,
	attempted   boolean NOT NULL,
	canceled_at timestamptz NOT NULL DEFAULT now(),
	archived    boolean NOT NULL DEFAULT false,
	PRIMARY KEY (tenant_id, delivery_id)
);
SELECT posthorn.guard('cancellations');

-- One row per waiting delivery. state: 0 ready, 1 scheduled for a retry, 2 blocked by an earlier one of its key, 3
-- deferred (deliver_at; takes its place in the order when due). seq is the order. Both ids carry their partition's
-- day.
CREATE SEQUENCE queue_seq AS bigint CACHE 1;
CREATE TABLE queue (
	seq         bigint NOT NULL DEFAULT nextval('queue_seq'),
	tenant_id   uuid NOT NULL,
	delivery_id uuid NOT NULL,
	event_id    uuid NOT NULL,
	endpoint_id uuid NOT NULL,
	due_at      timestamptz,
	gen         int NOT NULL DEFAULT 0,
	attempts    smallint NOT NULL DEFAULT 0,
	state       smallint NOT NULL DEFAULT 0,
	replay      boolean NOT NULL DEFAULT false,
	order_key   text COLLATE "C",
	PRIMARY KEY (tenant_id, delivery_id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
	autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_threshold = 20000, autovacuum_analyze_scale_factor = 0.5);
CREATE INDEX queue_lane ON queue (state, endpoint_id, seq);
CREATE INDEX queue_due ON queue (due_at) WHERE state IN (1, 3);
CREATE INDEX queue_key ON queue (endpoint_id, order_key, seq) WHERE order_key IS NOT NULL AND state <> 3;
SELECT posthorn.guard('queue');

CREATE TABLE lanes (
	endpoint_id uuid PRIMARY KEY,
	tenant_id   uuid NOT NULL,
	owner       uuid,                              -- the worker that holds it
	held        boolean NOT NULL DEFAULT true,     -- the endpoint receives nothing now
	deleted     boolean NOT NULL DEFAULT false,    -- what is queued is to be failed, then the lane goes
	rev         bigint NOT NULL DEFAULT 1,         -- grows with every change that its owner must know
	tokens      double precision NOT NULL DEFAULT 1e9, -- of the rate limit's bucket when the lane was last given back
	released_at timestamptz NOT NULL DEFAULT now(),
	not_before  timestamptz                        -- Retry-After: the whole lane waits
) WITH (fillfactor = 50);
CREATE INDEX lanes_owner ON lanes (owner) WHERE owner IS NOT NULL;
CREATE INDEX lanes_deleted ON lanes (endpoint_id) WHERE deleted;
SELECT posthorn.guard('lanes');

CREATE TABLE endpoint_health (
	endpoint_id          uuid PRIMARY KEY,
	tenant_id            uuid NOT NULL,
	consecutive_failures int NOT NULL DEFAULT 0,
	auth_streak          int NOT NULL DEFAULT 0,
	unhealthy_since      timestamptz,
	tls_only_since       timestamptz,
	first_failure_at     timestamptz,
	last_failure_at      timestamptz,
	last_success_at      timestamptz
) WITH (fillfactor = 50);
SELECT posthorn.guard('endpoint_health');

CREATE TABLE workers (
	id         uuid PRIMARY KEY,
	name       text NOT NULL,
	beat       bigint NOT NULL DEFAULT 0,
	dead       boolean NOT NULL DEFAULT false,
	started_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 30);

-- Keys outlive midnight: their own table, not the day's partition.
CREATE TABLE idempotency_keys (
	tenant_id  uuid NOT NULL,
	key        text NOT NULL,
	body_hash  bytea NOT NULL,
	event_id   uuid NOT NULL,
	deliveries int NOT NULL,
	expires_at timestamptz NOT NULL,
	PRIMARY KEY (tenant_id, key)
) PARTITION BY HASH (tenant_id, key);
CREATE INDEX ON idempotency_keys (expires_at);
-- +goose StatementBegin
DO $$ BEGIN
	FOR i IN 0..7 LOOP
		EXECUTE format('CREATE TABLE idempotency_keys_%s PARTITION OF idempotency_keys FOR VALUES WITH (MODULUS 8, REMAINDER %s)', i, i);
	END LOOP;
END $$;
-- +goose StatementEnd
SELECT posthorn.guard('idempotency_keys');

-- The totals and roll-ups change in the transaction of every state change, but as one inserted row per transaction:
-- rows that many transactions update would serialize their commits, and collect versions whenever a backup holds a
-- snapshot. A job folds the ledger into books and endpoint_stats every few seconds; a reader adds both.
CREATE TABLE ledger (
	id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	book_tenant   uuid[] NOT NULL DEFAULT '{}',
	book_day      date[] NOT NULL DEFAULT '{}',  -- UTC day of the delivery's creation
	accepted      int[] NOT NULL DEFAULT '{}',
	delivered     int[] NOT NULL DEFAULT '{}',
	failed        int[] NOT NULL DEFAULT '{}',
	canceled      int[] NOT NULL DEFAULT '{}',
	expunged      int[] NOT NULL DEFAULT '{}',
	-- One element for the attempts of an endpoint, type and minute that share a class and a slot of the histogram.
	stat_endpoint uuid[] NOT NULL DEFAULT '{}',
	stat_type     text[] NOT NULL DEFAULT '{}',
	stat_minute   int[] NOT NULL DEFAULT '{}',      -- since 1970
	stat_kind     smallint[] NOT NULL DEFAULT '{}', -- class * 16 + slot; class 0 ok, 1 3xx, 2 4xx, 3 5xx, 4 network, 5 time-out, 6 blocked
	stat_count    int[] NOT NULL DEFAULT '{}',
	stat_us       bigint[] NOT NULL DEFAULT '{}'
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
	toast_tuple_target = 8160); -- rows live for seconds: neither compressed nor moved out of line

CREATE TABLE books (
	tenant_id uuid NOT NULL,
	day       date NOT NULL,
	accepted  bigint NOT NULL DEFAULT 0,
	delivered bigint NOT NULL DEFAULT 0,
	failed    bigint NOT NULL DEFAULT 0,
	canceled  bigint NOT NULL DEFAULT 0,
	expunged  bigint NOT NULL DEFAULT 0,
	PRIMARY KEY (tenant_id, day)
) WITH (fillfactor = 50);
SELECT posthorn.guard('books');

-- Roll-ups of attempts by minute and hour (width 60 or 3600 seconds), a row for each class and slot of the histogram that
-- occurred: kind is as in the ledger, us the sum of durations.
CREATE TABLE endpoint_stats (
	tenant_id   uuid NOT NULL,
	endpoint_id uuid NOT NULL,
	width       int NOT NULL,
	bucket      timestamptz NOT NULL,
	event_type  text NOT NULL,
	kind        smallint NOT NULL,
	n           bigint NOT NULL,
	us          bigint NOT NULL,
	PRIMARY KEY (tenant_id, endpoint_id, width, bucket, event_type, kind)
) WITH (fillfactor = 50);
SELECT posthorn.guard('endpoint_stats');

CREATE TABLE audit_log (
	id          uuid PRIMARY KEY,
	tenant_id   uuid,
	at          timestamptz NOT NULL DEFAULT now(),
	actor_kind  text NOT NULL,   -- key, member, operator, system, command
	actor_id    text NOT NULL DEFAULT '',
	action      text NOT NULL,
	object_kind text NOT NULL DEFAULT '',
	object_id   text NOT NULL DEFAULT '',
	address     text NOT NULL DEFAULT '',
	reason      text NOT NULL DEFAULT '',
	details     jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX ON audit_log (tenant_id, id);
SELECT posthorn.guard('audit_log');

-- When a periodic job was last done, so that its schedule survives restarts and moves between workers.
CREATE TABLE chores (
	name    text PRIMARY KEY,
	done_at timestamptz NOT NULL DEFAULT '-infinity'
);

-- Day partitions. Names are table_yYYYYMMDD; the day is UTC.
-- +goose StatementBegin
CREATE FUNCTION posthorn.make_partitions(first date, last date) RETURNS int LANGUAGE plpgsql SET timezone = 'UTC' SET search_path = posthorn, pg_temp AS $$
DECLARE
	t text;
	d date;
	made int := 0;
	name text;
BEGIN
	FOREACH t IN ARRAY ARRAY['events', 'deliveries', 'attempts'] LOOP
		FOR d IN SELECT g::date FROM generate_series(first::timestamp, last::timestamp, '1 day') g LOOP
			name := t || '_y' || to_char(d, 'YYYYMMDD');
			CONTINUE WHEN to_regclass(name) IS NOT NULL;
			-- A day grows from nothing to millions: by the server's own measure it would be vacuumed and analysed every few
			-- seconds of its first minutes, for rows that are inserted, changed once within their page, and left alone.
			EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS) WITH (fillfactor = %s,
				autovacuum_vacuum_threshold = 200000, autovacuum_vacuum_insert_threshold = 500000,
				autovacuum_analyze_threshold = 50000, autovacuum_analyze_scale_factor = 0.5)', name, t,
				CASE WHEN t = 'deliveries' THEN 45 ELSE 100 END);
			EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', t, name,
				d::timestamptz, (d + 1)::timestamptz);
			made := made + 1;
		END LOOP;
	END LOOP;
	RETURN made;
END $$;
-- +goose StatementEnd

-- The days that have partitions, oldest first.
-- +goose StatementBegin
CREATE FUNCTION posthorn.partition_days() RETURNS SETOF date LANGUAGE sql STABLE SET search_path = posthorn, pg_temp AS $$
	SELECT DISTINCT to_date(right(c.relname, 8), 'YYYYMMDD')
	FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
	WHERE i.inhparent IN ('events'::regclass, 'deliveries'::regclass, 'attempts'::regclass)
	ORDER BY 1
$$;
-- +goose StatementEnd

-- Drops one day of one table. The caller has settled what pointed into it, and sets a lock_timeout.
-- +goose StatementBegin
CREATE FUNCTION posthorn.drop_partition(parent text, day date) RETURNS boolean LANGUAGE plpgsql SET search_path = posthorn, pg_temp AS $$
DECLARE
	name text := parent || '_y' || to_char(day, 'YYYYMMDD');
BEGIN
	IF to_regclass(name) IS NULL THEN
		RETURN false;
	END IF;
	EXECUTE format('DROP TABLE %I', name);
	RETURN true;
END $$;
-- +goose StatementEnd

SELECT posthorn.make_partitions((now() AT TIME ZONE 'UTC')::date - 1, (now() AT TIME ZONE 'UTC')::date + 7);

-- Fails the transaction unless the worker is alive, and keeps it alive until the transaction ends: whoever declares it
-- dead locks its row FOR UPDATE first. Beats do not conflict.
-- +goose StatementBegin
CREATE FUNCTION posthorn.assert_alive(worker uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM workers WHERE id = worker AND NOT dead FOR KEY SHARE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'worker % is dead', worker USING ERRCODE = 'PH002';
	END IF;
END $$;
-- +goose StatementEnd

-- Results that end deliveries take their queue rows away, those that will be tried again put them off; each only where the
-- row is as it was read. Rows are found by key one after the other and then taken by their place: a join would be planned,
-- and a plan that was made while the queue was empty reads all of it when it is not.
-- +goose StatementBegin
CREATE FUNCTION posthorn.settle(tenants uuid[], deliveries uuid[], gens int[]) RETURNS SETOF uuid LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY DELETE FROM queue q
	WHERE q.ctid = ANY(ARRAY(
		SELECT x.place FROM ROWS FROM (unnest(tenants), unnest(deliveries), unnest(gens)) AS u(tenant, delivery, gen)
		CROSS JOIN LATERAL (
			SELECT r.ctid AS place FROM queue r
			WHERE r.tenant_id = u.tenant AND r.delivery_id = u.delivery AND r.gen = u.gen LIMIT 1
		) x))
	RETURNING q.delivery_id;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION posthorn.reschedule(tenants uuid[], deliveries uuid[], gens int[], delays_us bigint[], made smallint[]) RETURNS SETOF uuid LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..cardinality(deliveries) LOOP
		UPDATE queue q SET state = 1, due_at = now() + delays_us[i] * interval '1 microsecond', attempts = made[i]
		WHERE q.tenant_id = tenants[i] AND q.delivery_id = deliveries[i] AND q.gen = gens[i];
		IF FOUND THEN
			RETURN NEXT deliveries[i];
		END IF;
	END LOOP;
END $$;
-- +goose StatementEnd

-- A member's or program's own entry in the books: the tenant is the transaction's, not an argument.
-- +goose StatementBegin
CREATE FUNCTION posthorn.enter_books(days date[], accepted int[], delivered int[], failed int[], canceled int[], expunged int[])
RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	INSERT INTO ledger (book_tenant, book_day, accepted, delivered, failed, canceled, expunged)
	SELECT array_fill(posthorn.tenant(), ARRAY[cardinality(days)]), days, accepted, delivered, failed, canceled, expunged
	WHERE posthorn.tenant() IS NOT NULL AND cardinality(days) > 0
$$;
-- +goose StatementEnd

-- Which key is this? Answers before a tenant is known, and only to who holds the key. A platform key has the zero tenant.
-- +goose StatementBegin
CREATE FUNCTION posthorn.find_key(key_hash bytea)
RETURNS TABLE (id uuid, tenant_id uuid, scopes text[], expires_at timestamptz, revoked boolean, tenant_state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT k.id, coalesce(k.tenant_id, '00000000-0000-0000-0000-000000000000'), k.scopes,
		coalesce(k.expires_at, '9999-12-31Z'), k.revoked_at IS NOT NULL, coalesce(t.state, '')
	FROM api_keys k LEFT JOIN tenants t ON t.id = k.tenant_id
	WHERE k.hash = key_hash
$$;
-- +goose StatementEnd

-- Remembers that keys were used, once a minute for many at a time.
-- +goose StatementBegin
CREATE FUNCTION posthorn.touch_keys(ids uuid[]) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	UPDATE api_keys SET last_used_at = now() WHERE id = ANY(ids)
$$;
-- +goose StatementEnd

-- A platform key names its tenant: does it exist, and may it emit?
-- +goose StatementBegin
CREATE FUNCTION posthorn.tenant_state(tenant uuid) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT state FROM tenants WHERE id = tenant
$$;
-- +goose StatementEnd

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA posthorn FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.tenant(), posthorn.created_at(uuid), posthorn.first_id(timestamptz)
	TO posthorn_tenant, posthorn_ingest, posthorn_worker, posthorn_console, posthorn_lookup;
GRANT EXECUTE ON FUNCTION posthorn.find_key(bytea), posthorn.touch_keys(uuid[]), posthorn.tenant_state(uuid) TO posthorn_ingest;
GRANT EXECUTE ON FUNCTION posthorn.enter_books(date[], int[], int[], int[], int[], int[]) TO posthorn_tenant;
GRANT EXECUTE ON FUNCTION posthorn.assert_alive(uuid), posthorn.settle(uuid[], uuid[], int[]),
	posthorn.reschedule(uuid[], uuid[], int[], bigint[], smallint[]) TO posthorn_worker;

GRANT SELECT ON tenants TO posthorn_tenant, posthorn_ingest, posthorn_worker, posthorn_lookup;
GRANT UPDATE (routing_version, name, settings, strict_types, retention_days) ON tenants TO posthorn_tenant;
GRANT UPDATE (routing_version) ON tenants TO posthorn_worker;
GRANT SELECT ON platform TO posthorn_tenant, posthorn_ingest, posthorn_worker;
GRANT SELECT ON revisions TO posthorn_ingest;
GRANT SELECT, UPDATE ON revisions TO posthorn_tenant;
GRANT SELECT, INSERT, UPDATE ON api_keys TO posthorn_tenant;
GRANT SELECT ON api_keys TO posthorn_lookup;
GRANT UPDATE (last_used_at) ON api_keys TO posthorn_lookup;
GRANT SELECT, INSERT, UPDATE, DELETE ON event_types TO posthorn_tenant;
GRANT SELECT ON event_types TO posthorn_ingest;
GRANT SELECT, INSERT, UPDATE ON endpoints TO posthorn_tenant;
GRANT SELECT ON endpoints TO posthorn_ingest;
GRANT SELECT, UPDATE ON endpoints TO posthorn_worker;
GRANT SELECT, INSERT ON endpoint_revisions TO posthorn_tenant, posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON endpoint_secrets TO posthorn_tenant;
GRANT SELECT, DELETE ON endpoint_secrets TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE ON verifications TO posthorn_tenant, posthorn_worker;
GRANT SELECT ON events TO posthorn_tenant;
GRANT SELECT, INSERT ON events TO posthorn_ingest;
GRANT SELECT, UPDATE ON events TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE ON deliveries TO posthorn_tenant;
GRANT INSERT ON deliveries TO posthorn_ingest;
GRANT SELECT, INSERT, UPDATE ON deliveries TO posthorn_worker;
GRANT SELECT ON attempts TO posthorn_tenant;
GRANT SELECT, INSERT ON attempts TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON dead_letters, cancellations TO posthorn_tenant, posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON queue TO posthorn_tenant, posthorn_worker;
GRANT INSERT ON queue TO posthorn_ingest;
GRANT USAGE, SELECT ON SEQUENCE queue_seq TO posthorn_tenant, posthorn_ingest, posthorn_worker;
GRANT SELECT, INSERT, UPDATE ON lanes TO posthorn_tenant;
GRANT SELECT, INSERT, UPDATE, DELETE ON lanes TO posthorn_worker;
GRANT SELECT ON endpoint_health TO posthorn_tenant;
GRANT SELECT, INSERT, UPDATE, DELETE ON endpoint_health TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON workers TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE ON idempotency_keys TO posthorn_ingest;
GRANT SELECT, DELETE ON idempotency_keys TO posthorn_worker;
GRANT INSERT ON ledger TO posthorn_ingest, posthorn_lookup;
GRANT SELECT, INSERT, DELETE ON ledger TO posthorn_worker;
GRANT SELECT ON books, endpoint_stats TO posthorn_tenant;
GRANT SELECT, INSERT, UPDATE, DELETE ON books, endpoint_stats TO posthorn_worker;
GRANT SELECT, INSERT ON audit_log TO posthorn_tenant, posthorn_worker;
GRANT SELECT, INSERT, UPDATE ON chores TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA posthorn TO posthorn_console;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA posthorn TO posthorn_console;
-- The audit log is append-only for every role, and partitions are reached only through their parents.
REVOKE UPDATE, DELETE ON audit_log FROM posthorn_console;
-- +goose StatementBegin
DO $$
DECLARE
	c regclass;
BEGIN
	FOR c IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent IN
		('events'::regclass, 'deliveries'::regclass, 'attempts'::regclass, 'idempotency_keys'::regclass) LOOP
		EXECUTE format('REVOKE ALL ON %s FROM posthorn_console', c);
	END LOOP;
	EXECUTE 'REVOKE ALL ON goose_db_version FROM posthorn_console';
END $$;
-- +goose StatementEnd

-- The definer functions belong to the look-up role. To hand them over, the owner must be able to become that role, and
-- that role must be able to own things in the schema for the moment.
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
ALTER FUNCTION posthorn.enter_books(date[], int[], int[], int[], int[], int[]) OWNER TO posthorn_lookup;
ALTER FUNCTION posthorn.find_key(bytea) OWNER TO posthorn_lookup;
ALTER FUNCTION posthorn.touch_keys(uuid[]) OWNER TO posthorn_lookup;
ALTER FUNCTION posthorn.tenant_state(uuid) OWNER TO posthorn_lookup;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- +goose Down

DROP TABLE events, deliveries, attempts, dead_letters, cancellations, queue, lanes, endpoint_health, workers, idempotency_keys,
	ledger, books, endpoint_stats, audit_log, chores, verifications, endpoint_secrets, endpoint_revisions, endpoints,
	event_types, api_keys, operators, revisions, platform, tenants;
DROP SEQUENCE queue_seq;
-- +goose StatementBegin
DO $$
DECLARE
	f regprocedure;
BEGIN
	FOR f IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'posthorn'::regnamespace LOOP
		EXECUTE format('DROP FUNCTION %s CASCADE', f);
	END LOOP;
END $$;
-- +goose StatementEnd
-- The roles are the server's, and other databases may use them: they stay.
