-- By how much the database's clock was seen to step, so that several workers that see it agree on one.

-- +goose Up

CREATE TABLE clock (
	id         boolean PRIMARY KEY DEFAULT true CHECK (id),
	shifted    double precision NOT NULL DEFAULT 0, -- seconds, over all steps
	stepped_at timestamptz                          -- the last one, by the clock as it was afterwards
);
INSERT INTO clock DEFAULT VALUES;
GRANT SELECT, UPDATE ON clock TO posthorn_worker;
GRANT SELECT ON clock TO posthorn_console;

-- +goose Down

DROP TABLE clock;
