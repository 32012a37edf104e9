package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db/embedded"
)

// system is what one scenario measures: an empty database, a Posthorn on it, and the receivers that it may reach.
type system struct {
	opts      *options
	dir       string // scratch: data directory, logs, plans
	hold      func() // gives the database back
	db        *database
	server    *process
	deliverer *process // where the worker is a process of its own
	receiver  *process
	hanging   *process
	slow      *process // nil: no scenario needs one
	env       []string
	stem      string // scenario's name, for files

	platformKey string // makes tenants

	api, metrics, receiverAddr, hangingAddr, slowAddr string
}

// boot starts a system. An error stops everything that was started before it.
func boot(ctx context.Context, o *options, stem string) (s *system, err error) {
	s = &system{opts: o, stem: stem}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.dir, err = os.MkdirTemp(o.scratch, "bench-"); err != nil {
		return s, err
	}
	// PostgreSQL's account must be able to pass when this runs as root.
	if err = os.Chmod(s.dir, 0o711); err != nil {
		return s, err
	}
	for _, address := range []*string{&s.api, &s.metrics, &s.receiverAddr, &s.hangingAddr, &s.slowAddr} {
		if *address, err = freeAddress(); err != nil {
			return s, err
		}
	}
	if s.receiver, err = s.startReceiver(ctx, s.receiverAddr); err != nil {
		return s, err
	}
	if s.hanging, err = s.startReceiver(ctx, s.hangingAddr, "-hang"); err != nil {
		return s, err
	}
	dsn, admin, err := s.openServer(ctx)
	if err != nil {
		return s, err
	}
	s.env = append(s.env,
		"POSTHORN_ADDR="+s.api, "POSTHORN_METRICS_ADDR="+s.metrics, "POSTHORN_DATA_DIR="+filepath.Join(s.dir, "data"),
		"POSTHORN_EGRESS_ALLOW="+s.receiverAddr+","+s.hangingAddr+","+s.slowAddr)
	if err = s.startPosthorn(ctx); err != nil {
		return s, err
	}
	s.db, err = openDatabase(ctx, dsn, admin)
	return s, err
}

func (s *system) close() {
	s.db.close()
	s.deliverer.stop(time.Minute)
	s.server.stop(time.Minute)
	s.receiver.stop(time.Second)
	s.hanging.stop(time.Second)
	s.slow.stop(time.Second)
	if s.hold != nil {
		s.hold()
	}
	if s.dir != "" && !s.opts.keep {
		_ = os.RemoveAll(s.dir)
	}
}

// openServer brings up PostgreSQL as `posthorn serve` itself would, so that Posthorn adopts it; or makes a database of
// its own on the server that was named.
func (s *system) openServer(ctx context.Context) (dsn, admin string, err error) {
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "POSTHORN_") {
			s.env = append(s.env, entry)
		}
	}
	s.env = append(s.env, s.opts.env...)
	if s.opts.databaseURL != "" {
		return s.makeDatabase(ctx)
	}
	settings := map[string]string{}
	if s.opts.profile {
		settings["shared_preload_libraries"] = "pg_stat_statements"
		settings["track_io_timing"] = "on"
	}
	cluster, err := embedded.Start(ctx, embedded.Config{
		DataDir:  filepath.Join(s.dir, "data"),
		Settings: settings,
		Log:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return "", "", err
	}
	s.hold = func() { _ = cluster.Close(context.Background()) }
	return cluster.URL(), cluster.AdminURL(embedded.Database), nil
}

func (s *system) makeDatabase(ctx context.Context) (dsn, admin string, err error) {
	conn, err := pgx.Connect(ctx, s.opts.databaseURL)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	name := fmt.Sprintf("posthorn_bench_%d", time.Now().UnixNano())
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", "", err
	}
	s.hold = func() {
		if conn, err := pgx.Connect(context.Background(), s.opts.databaseURL); err == nil {
			_, _ = conn.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)")
			_ = conn.Close(context.Background())
		}
	}
	dsn = withDatabase(s.opts.databaseURL, name)
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	s.env = append(s.env, "POSTHORN_DATABASE_URL="+dsn, "POSTHORN_MASTER_KEY="+base64.StdEncoding.EncodeToString(key))
	return dsn, dsn, nil
}

func (s *system) startReceiver(ctx context.Context, address string, more ...string) (*process, error) {
	p, err := start(filepath.Join(s.dir, "receiver.log"), os.Environ(), s.opts.self, append([]string{"receiver", "-addr", address}, more...)...)
	if err != nil {
		return nil, err
	}
	return p, p.waitFor(ctx, 10*time.Second, "the receiver listens", func() error { return get("http://"+address+"/count", nil) })
}

func (s *system) startPosthorn(ctx context.Context) (err error) {
	command := "serve"
	if s.stem == partsStem {
		command = "web"
	}
	s.server, err = start(filepath.Join(s.dir, "posthorn.log"), s.env, s.opts.binary, command)
	if err != nil {
		return err
	}
	err = s.server.waitFor(ctx, time.Minute, "posthorn is ready", func() error { return get("http://"+s.api+"/readyz", nil) })
	if err == nil && s.stem == partsStem {
		err = s.startDeliverer(ctx)
	}
	if err != nil {
		return err
	}
	var made struct {
		Key string `json:"api_key"`
	}
	err = s.command(ctx, &made, "key", "create", "--platform", "--scopes", "all", "--json")
	s.platformKey = made.Key
	return err
}

// command runs one of Posthorn's commands and decodes the JSON that it prints.
func (s *system) command(ctx context.Context, into any, args ...string) error {
	cmd := exec.CommandContext(ctx, s.opts.binary, args...)
	cmd.Env = s.env
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("posthorn %s: %w\n%s", strings.Join(args, " "), err, problems.String())
	}
	return json.Unmarshal(out, into)
}

// profile saves the profiles of pprof and the statistics of PostgreSQL for a measurement.
func (s *system) profile(row string, seconds int) {
	stem := s.profileStem(row)
	for name, path := range map[string]string{
		"cpu":    fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds),
		"heap":   "/debug/pprof/heap",
		"allocs": fmt.Sprintf("/debug/pprof/allocs?seconds=%d", seconds), // those of this time, not of the start
	} {
		go func() {
			response, err := http.Get("http://" + s.metrics + path)
			if err != nil {
				return
			}
			defer response.Body.Close()
			out, err := os.Create(stem + "." + name + ".pprof")
			if err != nil {
				return
			}
			defer out.Close()
			_, _ = io.Copy(out, response.Body)
		}()
	}
}

// profileStem names the files of one row.
func (s *system) profileStem(row string) string {
	word := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(row))
	return filepath.Join(s.opts.profiles, "bench."+s.stem+"."+word)
}

// get reads a URL, decodes its JSON where somewhere to put it is given, and makes anything but a 200 an error.
func get(address string, into any) error {
	response, err := http.Get(address)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %d: %s", address, response.StatusCode, body)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body, into)
}
