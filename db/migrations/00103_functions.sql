-- Functions are in the folder functions/ from here on. Every start compares a digest of the folder with the row.
-- functions: 027946f709d1a42e

-- +goose Up

INSERT INTO revisions (name, n) VALUES ('functions', 0);

-- +goose Down

DELETE FROM revisions WHERE name = 'functions';
