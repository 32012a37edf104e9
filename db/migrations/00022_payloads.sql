-- Viewers read payloads unless their tenant decides otherwise. Until now they did not: each existing tenant decides
-- again.

-- +goose Up

UPDATE tenants SET settings = settings || '{"viewers_read_payloads": false}' WHERE NOT settings ? 'viewers_read_payloads';

-- +goose Down

UPDATE tenants SET settings = settings - 'viewers_read_payloads' WHERE settings -> 'viewers_read_payloads' = 'false';
