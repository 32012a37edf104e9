package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db/embedded"
)

// The prototype's end-to-end rate in the line that its generator prints.
var prototypeRate = regexp.MustCompile(`e2e=([0-9]+)/s`)

// runPrototype measures the sketch that the design was decided with, on the same PostgreSQL with the same settings, and
// returns its deliveries/s by row name. It lies outside this repository; -prototype names its folder.
func runPrototype(ctx context.Context, o *options) (map[string]float64, error) {
	dir, err := os.MkdirTemp(o.scratch, "bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, err
	}
	dsn, stop, err := prototypeDatabase(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	defer stop()
	binary := filepath.Join(dir, "prototype")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	build.Dir = o.prototype
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the prototype: %w\n%s", err, out)
	}
	log := filepath.Join(dir, "log")
	receiver, err := start(log, os.Environ(), binary, "receiver")
	if err != nil {
		return nil, err
	}
	defer receiver.stop(time.Second)
	rates := map[string]float64{}
	for name, c := range map[string]struct{ serve, load []string }{
		oneToOne: {[]string{"-eps", "50"}, []string{"-n", "30000", "-tenants", "50"}},
		fanOut:   {[]string{"-eps", "50", "-fan", "10"}, []string{"-n", "5000", "-tenants", "50", "-fan", "10"}},
	} {
		server, err := start(log, append(os.Environ(), "PROTOTYPE_DSN="+dsn), binary, append([]string{"serve", "-flushers", "1", "-completers", "1"}, c.serve...)...)
		if err != nil {
			return nil, err
		}
		time.Sleep(3 * time.Second) // it has no sign of readiness; it makes its tables first
		rates[name], err = prototypeMedian(ctx, o, binary, c.load)
		server.stop(time.Second)
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, tail(log))
		}
		o.say("prototype, %s: %.0f deliveries/s", name, rates[name])
	}
	return rates, nil
}

func prototypeMedian(ctx context.Context, o *options, binary string, args []string) (float64, error) {
	var rates []float64
	for range o.repeats {
		out, err := exec.CommandContext(ctx, binary, append([]string{"load"}, args...)...).Output()
		if err != nil {
			return 0, fmt.Errorf("the prototype's generator: %w", err)
		}
		match := prototypeRate.FindSubmatch(out)
		if match == nil {
			return 0, fmt.Errorf("the prototype's generator printed no rate: %s", out)
		}
		rate, err := strconv.ParseFloat(string(match[1]), 64)
		if err != nil {
			return 0, err
		}
		rates = append(rates, rate)
	}
	return middle(rates), nil
}

// prototypeDatabase starts a server like the one that Posthorn is measured on, and returns the keyword form that the
// prototype appends to.
func prototypeDatabase(ctx context.Context, o *options, dir string) (dsn string, stop func(), err error) {
	stop = func() {}
	admin, of := o.databaseURL, func(database string) string { return withDatabase(o.databaseURL, database) }
	if admin == "" {
		cluster, err := embedded.Start(ctx, embedded.Config{DataDir: filepath.Join(dir, "data"), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return "", stop, err
		}
		stop = func() { _ = cluster.Close(context.Background()) }
		admin, of = cluster.AdminURL("postgres"), cluster.AdminURL
	}
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		stop()
		return "", func() {}, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	const name = "posthorn_bench_prototype"
	_, err = conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	if err == nil {
		_, err = conn.Exec(ctx, "CREATE DATABASE "+name)
	}
	if err != nil {
		stop()
		return "", func() {}, err
	}
	cfg, err := pgx.ParseConfig(of(name))
	if err != nil {
		stop()
		return "", func() {}, err
	}
	return fmt.Sprintf("host=%s port=%d user=%s password='%s' dbname=%s sslmode=disable", cfg.Host, cfg.Port, cfg.User, cfg.Password, name), stop, nil
}

// withDatabase is a PostgreSQL URL with another database in it.
func withDatabase(dsn, database string) string {
	named, err := url.Parse(dsn)
	if err != nil {
		return dsn
	}
	named.Path = "/" + database
	return named.String()
}
