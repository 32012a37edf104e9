-- Which delivery was sent again as which, so that each names the other, and which deliveries a bulk job made.

-- +goose Up

CREATE TABLE replays (
	tenant_id   uuid NOT NULL,
	replay_of   uuid NOT NULL, -- the delivery that was sent again; zero: the endpoint never had the event
	delivery_id uuid NOT NULL, -- the new delivery; its id carries the time of the replay
	job_id      uuid,          -- the bulk job that made it
	PRIMARY KEY (tenant_id, replay_of, delivery_id)
);
CREATE INDEX replays_job ON replays (tenant_id, job_id, delivery_id) WHERE job_id IS NOT NULL;
SELECT posthorn.guard('replays');
GRANT SELECT, INSERT ON replays TO posthorn_tenant;
GRANT SELECT, INSERT, DELETE ON replays TO posthorn_worker;
GRANT SELECT, DELETE ON replays TO posthorn_console;

-- The replays of older versions. Only dead letters have a mark of them, and they are few: the deliveries themselves
-- are not scanned.
INSERT INTO replays (tenant_id, replay_of, delivery_id, job_id)
SELECT r.tenant_id, o.id, r.id, r.job_id
FROM dead_letters x
JOIN deliveries o ON o.tenant_id = x.tenant_id AND o.created_at = posthorn.created_at(x.delivery_id) AND o.id = x.delivery_id
JOIN deliveries r ON r.event_id = o.event_id AND r.tenant_id = o.tenant_id AND r.replay_of = o.id
WHERE x.replayed
ON CONFLICT DO NOTHING;

-- +goose Down

DROP TABLE replays;
