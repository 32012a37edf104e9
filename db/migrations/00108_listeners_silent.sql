-- A listener whose program is away is disconnected. The functions are in their folder.
-- functions: 62ba7c9906f8b3c1

-- +goose Up

-- +goose Down
