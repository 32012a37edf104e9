-- Viewers read payloads unless their tenant says otherwise. Until now they did not: who has a tenant already decides anew.

-- +goose Up

UPDATE tenants SET settings = settings || '{"viewers_read_payloads": false}' WHERE NOT settings ? 'viewers_read_payloads';

-- +goose Down

UPDATE tenants SET settings = settings - 'viewers_read_payloads' WHERE settings -> 'viewers_read_payloads' = 'false';
