package db_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/domain/id"
)

// Batches of one connection share its buffers. Whatever their sizes, smaller and larger than what a connection keeps,
// in one batch and in the next, each statement's parameters reach the server as they were given.
func TestBatchesOfAnySizeArriveAsTheyWereGiven(t *testing.T) {
	t.Parallel()
	d, _, _, _ := two(t, 2)
	conn, err := d.Pool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	random := rand.New(rand.NewPCG(1, 2))
	sizes := []int{0, 1, 10, 100, 1000, 60_000, 300_000}
	for round := range 60 {
		batch := &pgx.Batch{}
		for statement := range 1 + random.IntN(6) {
			n, size := random.IntN(30), sizes[random.IntN(len(sizes))]
			ids, blobs, texts, times := make([]id.UUID, n), make([][]byte, n), make([]string, n), make([]time.Time, n)
			numbers := make([]int64, n)
			for i := range n {
				ids[i], times[i], numbers[i] = db.NewID(), time.UnixMicro(random.Int64N(1e15)).UTC(), random.Int64()
				blobs[i] = bytes.Repeat([]byte{byte(random.IntN(256))}, random.IntN(size/max(n, 1)+1))
				texts[i] = fmt.Sprintf("%d of %d: %s", i, statement, bytes.Repeat([]byte("x"), random.IntN(size/max(n, 1)+1)))
			}
			one := fmt.Sprintf("statement %d of round %d %s", statement, round, bytes.Repeat([]byte("y"), random.IntN(600)))
			batch.Queue("SELECT $1::uuid[], $2::bytea[], $3::text[], $4::timestamptz[], $5::bigint[], $6::text",
				ids, blobs, texts, times, numbers, one).QueryRow(func(row pgx.Row) error {
				var gotIDs []id.UUID
				var gotBlobs [][]byte
				var gotTexts []string
				var gotTimes []time.Time
				var gotNumbers []int64
				var gotOne string
				if err := row.Scan(&gotIDs, &gotBlobs, &gotTexts, &gotTimes, &gotNumbers, &gotOne); err != nil {
					return err
				}
				if !slices.Equal(gotIDs, ids) || !slices.EqualFunc(gotBlobs, blobs, bytes.Equal) ||
					!slices.Equal(gotTexts, texts) || !slices.EqualFunc(gotTimes, times, time.Time.Equal) ||
					!slices.Equal(gotNumbers, numbers) || gotOne != one {
					t.Errorf("round %d, statement %d with %d rows of %d bytes arrived changed", round, statement, n, size)
				}
				return nil
			})
		}
		if err := db.Send(t.Context(), conn.Conn(), batch); err != nil {
			t.Fatal(err)
		}
	}
}
