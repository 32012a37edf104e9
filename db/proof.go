package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Proof asks again and again whether the database takes what an emission needs: a write, under the role that writes, in
// a function. It has a connection of its own, so a pool that is in use never delays it. One call at a time.
type Proof struct {
	url  string
	o    Options
	conn *pgx.Conn
	made time.Time
}

// proofConnection is how long the connection is used: a new one shows that the server accepts connections, and loads
// the server's libraries again.
const proofConnection = 10 * time.Second

// Proof returns a check of this database. Close it at the end.
func (d *DB) Proof() *Proof {
	p := ProofOf(d.url)
	p.o.Pooled = d.pooled
	return p
}

// ProofOf is Proof for a URL without a pooler.
func ProofOf(url string) *Proof { return &Proof{url: url, o: Options{Name: "ready"}} }

// Check returns the database's clock if all works. It changes nothing.
func (p *Proof) Check(ctx context.Context) (at time.Time, err error) {
	if p.conn != nil && (p.conn.IsClosed() || time.Since(p.made) > proofConnection) {
		p.Close()
	}
	if p.conn == nil {
		if p.conn, err = Connect(ctx, p.url, p.o); err != nil {
			p.conn = nil
			return at, Translate(err)
		}
		p.made = time.Now()
	}
	b := &pgx.Batch{}
	b.Queue("begin")
	// Each role that a process takes; the last one stays.
	for _, role := range []string{roleTenant, RoleWorker, roleConsole, roleAccount, RoleIngest} {
		b.Queue(setRole, role, "")
	}
	b.Queue("SELECT " + Schema + ".prove_emission()").QueryRow(func(row pgx.Row) error { return row.Scan(&at) })
	b.Queue("rollback")
	if err = p.conn.SendBatch(ctx, b).Close(); err != nil {
		p.Close() // it is in a transaction
	}
	return at, Translate(err)
}

// Close closes the connection.
func (p *Proof) Close() {
	if p.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.conn.Close(ctx)
		p.conn = nil
	}
}
