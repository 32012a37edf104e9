-- A listener whose program is away is disconnected. The functions are in their folder.
-- functions: 30a58d0afaa7ab67

-- +goose Up

-- +goose Down
