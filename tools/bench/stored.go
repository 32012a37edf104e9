package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"posthorn/domain/history"
)

// A day that is old enough to leave, and how old a day has to be.
const (
	storedAgo   = 5
	storedAfter = 2
	ndjsonRows  = 10_000 // deliveries in an object of the older form
)

// storedDay is historyDay with what real events have: some hundred bytes of data, and a response.
var storedDay = strings.NewReplacer(
	`convert_to('{"order_id":"' || event_id || '"}', 'UTF8')`,
	`convert_to(format('{"order_id":"%s","customer":{"id":"%s","email":"%s@example.com","country":"DE"},"currency":"EUR","total":%s,"items":[{"sku":"%s","name":"Post horn, brass","quantity":%s,"price":"49.90"},{"sku":"%s","name":"Mouthpiece, silver","quantity":%s,"price":"12.50"}],"shipping":{"method":"parcel","street":"Marktplatz %s","postcode":"%s","city":"Regensburg"},"note":null}',
		event_id, substr(chance, 1, 12), substr(chance, 3, 9), ('x' || substr(chance, 1, 4))::bit(16)::int, substr(chance, 5, 8), i % 7 + 1, substr(chance, 9, 8), i % 3 + 1, i % 90, 10000 + i % 89999), 'UTF8')`,
	`url, format, signature)`, `url, format, signature, response_headers, response_excerpt)`,
	`'base64') FROM ids`, `'base64'), 'Content-Type: text/plain', 'ok'::bytea FROM ids`,
	`SELECT tenant_id, endpoint_id, to_timestamp(ms / 1000.0) AS at,`, `SELECT i, tenant_id, endpoint_id, to_timestamp(ms / 1000.0) AS at,`,
	`SELECT tenant_id, endpoint_id, at,`, `SELECT i, chance, tenant_id, endpoint_id, at,`,
).Replace(historyDay)

// storedHistory measures what a day of history needs in the tables and in storage, how long it takes to store it, and
// how long requests about it take in both.
func storedHistory(ctx context.Context, o *options, rep *report) error {
	return with(ctx, o, "stored", func(s *system) error {
		g, err := s.setUp(ctx, shape{
			name:      "shop",
			tenants:   10,
			endpoints: 5,
			address:   s.receiverAddr,
			fields:    unthrottled,
		})
		if err != nil {
			return err
		}
		day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -storedAgo)
		if err := s.writeStoredDay(ctx, g.tenants, day); err != nil {
			return err
		}
		inTables, asLines, err := s.bytesOf(ctx, day)
		if err != nil {
			return err
		}
		program := &reader{base: "http://" + s.api, key: g.targets[0].Key}
		name := day.Format(time.DateOnly)
		list := "/api/v1/deliveries?limit=50&since=" + name + "T00:00:00Z&until=" + day.AddDate(0, 0, 1).Format(time.DateOnly) + "T00:00:00Z"
		if err := s.readDay(rep, program, list, "in the tables"); err != nil {
			return err
		}
		took, peak, folder, err := s.store(ctx, day)
		if err != nil {
			return err
		}
		if err := s.readDay(rep, program, "/api/v1/deliveries?limit=50&stored_day="+name, inStorage); err != nil {
			return err
		}
		inStorage, err := bytesBelow(folder)
		if err != nil {
			return err
		}
		n := float64(o.storedDeliveries)
		o.say("stored: bytes a delivery: %.0f in PostgreSQL, %.0f as compressed lines, %.0f as Parquet", float64(inTables)/n, float64(asLines)/n, float64(inStorage)/n)
		o.say("stored: a day of %d deliveries of %d tenants left in %.1f s; the process had at most %d MiB", o.storedDeliveries, len(g.tenants), took.Seconds(), peak>>20)
		return nil
	})
}

// writeStoredDay fills the day alone.
func (s *system) writeStoredDay(ctx context.Context, tenants []string, day time.Time) error {
	s.opts.say("stored: writing %d deliveries of %d tenants", s.opts.storedDeliveries, len(tenants))
	if _, err := s.db.owner.Exec(ctx, "SELECT posthorn.make_partitions($1::date, current_date)", day); err != nil {
		return err
	}
	if _, err := s.db.console.Exec(ctx, "UPDATE platform SET days_from = least(days_from, $1::date)", day); err != nil {
		return err
	}
	if _, err := s.db.console.Exec(ctx, storedDay, day, s.opts.storedDeliveries, "stored", tenants); err != nil {
		return err
	}
	return s.db.settle(ctx)
}

// bytesOf is what a day takes in the tables with their indexes, and as compressed lines.
func (s *system) bytesOf(ctx context.Context, day time.Time) (inTables, asLines int64, err error) {
	err = s.db.owner.QueryRow(ctx, `SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent IN ('posthorn.events'::regclass, 'posthorn.deliveries'::regclass, 'posthorn.attempts'::regclass)
			AND pg_get_expr(c.relpartbound, c.oid) LIKE '%(''' || $1::date || '%'`, day).Scan(&inTables)
	if err == nil && inTables == 0 {
		err = errors.New("the day has no partitions")
	}
	if err != nil {
		return 0, 0, err
	}
	var packed bytes.Buffer
	for _, table := range history.Tables[:3] {
		// A table after the other compresses like the objects, which had few thousand rows of each table in turn.
		rows, err := s.db.console.Query(ctx, "SELECT row_to_json(x)::text FROM "+table+" x WHERE created_at >= $1 AND created_at < $2 ORDER BY tenant_id, created_at", day, day.AddDate(0, 0, 1))
		if err != nil {
			return 0, 0, err
		}
		var lines []byte
		n := 0
		flush := func() error {
			w := gzip.NewWriter(&packed)
			_, err := w.Write(lines)
			lines, n = lines[:0], 0
			return errors.Join(err, w.Close())
		}
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				return 0, 0, err
			}
			lines = history.AppendLine(lines, table, line)
			if n++; n == ndjsonRows {
				if err := flush(); err != nil {
					return 0, 0, err
				}
			}
		}
		if err := errors.Join(rows.Err(), flush()); err != nil {
			return 0, 0, err
		}
	}
	return inTables, int64(packed.Len()), nil
}

// store starts Posthorn again with a storage, and waits until the day has left.
func (s *system) store(ctx context.Context, day time.Time) (took time.Duration, peak int64, folder string, err error) {
	folder = filepath.Join(s.dir, "history")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return 0, 0, "", err
	}
	s.server.stop(time.Minute)
	s.env = append(s.env, "POSTHORN_HISTORY_URL=file://"+folder, fmt.Sprintf("POSTHORN_HISTORY_AFTER_DAYS=%d", storedAfter))
	if err := s.startPosthorn(ctx); err != nil {
		return 0, 0, "", err
	}
	var started time.Time
	err = s.server.waitFor(ctx, 30*time.Minute, "the day is stored", func() error {
		var known, stored, published bool
		if err := s.db.console.QueryRow(ctx, `SELECT count(*) > 0, count(*) > 0 AND bool_and(state = 'stored'), (SELECT changes = published FROM history_table)
			FROM history_days WHERE day = $1`, day).Scan(&known, &stored, &published); err != nil {
			return err
		}
		if known && started.IsZero() {
			started = time.Now()
			if err := resetPeak(s.server.cmd.Process.Pid); err != nil {
				return err
			}
		}
		if !stored || !published {
			return errors.New("it is on its way")
		}
		return nil
	})
	if err != nil {
		return 0, 0, "", err
	}
	took = time.Since(started)
	peak, err = peakRSS(s.server.cmd.Process.Pid)
	return took, peak, folder, err
}

// inStorage ends the names of rows for a day that was read in place: no promise of pages is about them.
const inStorage = "in storage"

// readDay lists, reads, explains, and replays deliveries of a day.
func (s *system) readDay(rep *report, program *reader, list, where string) error {
	body, err := program.get(strings.Replace(list, "limit=50", "limit=250", 1))
	if err != nil {
		return err
	}
	var page struct {
		Data []struct {
			ID      string `json:"id"`
			EventID string `json:"event_id"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(body), &page); err != nil || len(page.Data) < pageWarm+pageTimes {
		return fmt.Errorf("the day has %d deliveries %s: %w", len(page.Data), where, err)
	}
	if where == inStorage { // a delivery is replayed once
		slices.Reverse(page.Data)
	}
	for _, part := range []struct {
		name string
		do   func(i int) error
	}{
		{"list 50 deliveries", func(int) error { return program.ask(http.MethodGet, list) }},
		{"get a delivery", func(i int) error { return program.ask(http.MethodGet, "/api/v1/deliveries/"+page.Data[i].ID) }},
		{"explain an event", func(i int) error {
			return program.ask(http.MethodGet, "/api/v1/events/"+page.Data[i].EventID+"/routing")
		}},
		{"replay a delivery", func(i int) error {
			return program.ask(http.MethodPost, "/api/v1/deliveries/"+page.Data[i].ID+"/replay")
		}},
	} {
		r, err := times(part.do)
		if err != nil {
			return err
		}
		rep.add(s.stem, part.name+", "+where, r)
		s.opts.say("stored: %s, %s: p50 %.1f ms, p95 %.1f ms", part.name, where, r.P50, r.P99)
	}
	return nil
}

// ask requests a path and reads the response.
func (r *reader) ask(method, path string) error {
	req, err := http.NewRequest(method, r.base+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.key)
	res, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %d %.300s", method, path, res.StatusCode, text)
	}
	return err
}

// bytesBelow is the size of all files in a folder.
func bytesBelow(folder string) (n int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
