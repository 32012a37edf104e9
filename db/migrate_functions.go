package db

import (
	"context"
	"database/sql"

	"posthorn/db/migrations"
)

// replayFunctions creates the functions of this version, unless the database has them already. If the database has a
// migration that this version does not know, its functions are a newer version's: they stay.
func replayFunctions(ctx context.Context, conn *sql.DB) error {
	statements, digest := migrations.Functions()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	// The row is also the lock: of several processes that start, one replays, and the others wait.
	var present, newest int64
	if err := tx.QueryRowContext(ctx, "SELECT n FROM revisions WHERE name = 'functions' FOR UPDATE").Scan(&present); err != nil {
		return err
	}
	if err := tx.QueryRowContext(ctx, "SELECT max(version_id) FROM goose_db_version WHERE is_applied").Scan(&newest); err != nil {
		return err
	}
	if present == digest || newest > migrations.Newest() {
		return nil
	}
	// Bodies are not checked, so that functions can call each other in any order. A file can take the role that owns
	// its function, which needs CREATE for it.
	if _, err := tx.ExecContext(ctx, "SET LOCAL check_function_bodies = off; GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup"); err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement+"; RESET ROLE"); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, "REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup"); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE revisions SET n = $1 WHERE name = 'functions'", digest); err != nil {
		return err
	}
	return tx.Commit()
}

// forgetFunctions makes the next migration up replay the functions. The way down of a migration can restore an older
// text of one.
func forgetFunctions(ctx context.Context, conn *sql.DB) error {
	_, err := conn.ExecContext(ctx, `DO $$ BEGIN
		IF to_regclass('posthorn.revisions') IS NOT NULL THEN
			UPDATE posthorn.revisions SET n = 0 WHERE name = 'functions';
		END IF;
	END $$`)
	return err
}
