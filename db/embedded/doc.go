// Package embedded runs a private PostgreSQL for Posthorn, so that a fresh machine needs no database set up by hand.
//
// One process owns the server of a data directory: it holds an exclusive file lock while it runs, starts the postmaster
// as its child, restarts it when it dies, and stops it at the end. Every other process adopts: it uses the running
// server over its socket, and (Start only) takes over when the owner exits. The kernel drops the lock with its holder,
// so no crash leaves a state that a person has to repair.
//
// The folders, below the data directory:
//
//	postgres/lock        the owner's lock and process id
//	postgres/data        the cluster (PGDATA)
//	postgres/run         the unix socket, mode 0700; the only way in, there is no TCP port
//	postgres/log         the server's log, one file per weekday
//	postgres/start.log   what the server said before its log began
//	postgres/binaries    PostgreSQL itself, where the machine had none
//
// PostgreSQL refuses to run as root. When Posthorn is root, the server runs as an unprivileged account that owns data,
// run and log alone; everything that root writes lies beside these, so the server's account can't trick it with links.
//
// Durability is never traded: fsync, synchronous_commit and full_page_writes are passed on the command line, where
// neither postgresql.conf nor ALTER SYSTEM can override them.
package embedded
