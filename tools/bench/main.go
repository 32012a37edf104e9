// Command bench measures Posthorn and prints the table of docs/performance.md. It starts everything itself:
// PostgreSQL, `posthorn serve`, a receiver and a load generator, each a process of its own on loopback. `make bench`
// builds and runs it.
//
// Every arrival is counted by webhook-id and endpoint, so each row also says how many deliveries came twice and how
// many were lost; the run fails unless both are none.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the flags. The defaults are what the table is made with.
type options struct {
	self, binary, scratch, profiles, databaseURL string

	only          []string
	env           []string
	repeats       int
	connections   int
	profile, keep bool

	events, lightEvents, fanOutEvents, backlog, historyDeliveries, storedDeliveries int64
	recoveryBacklog                                                                 int64
	coldEndpoints, historyDays, snapshotRate, recoveryRate, busyEndpoints           int
	historyTenants                                                                  int
	snapshot                                                                        time.Duration
}

// say prints progress to stderr. The table goes to stdout.
func (o *options) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

func main() {
	var err error
	switch role := append(os.Args, "")[1]; role {
	case "receiver":
		err = runReceiver(os.Args[2:])
	case "load":
		err = runLoad(os.Args[2:])
	case "peers":
		err = runPeers(os.Args[2:])
	default:
		err = run(os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	o, jsonFile, err := parse(args)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	rep := &report{Machine: machine(), Began: time.Now()}
	var failed []error
	for _, s := range scenarios() {
		if ctx.Err() != nil || !o.selected(s.name) {
			continue
		}
		o.say("== %s: %s", s.name, s.what)
		if err := s.run(ctx, o, rep); err != nil {
			// The other scenarios are worth their time all the same.
			o.say("%s failed: %v", s.name, err)
			failed = append(failed, err)
		}
	}
	if err := rep.write(os.Stdout); err != nil {
		return err
	}
	if jsonFile != "" {
		if err := rep.writeJSON(jsonFile); err != nil {
			return err
		}
	}
	if rep.faulty() {
		failed = append(failed, errors.New("deliveries were lost or came twice"))
	}
	return errors.Join(failed...)
}

func parse(args []string) (o *options, jsonFile string, err error) {
	o = &options{}
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: bench [flags]\n       bench peers [flags]: the same load against products that run already\n\nscenarios:")
		for _, s := range scenarios() {
			fmt.Fprintf(flags.Output(), "  %-11s %s\n", s.name, s.what)
		}
		fmt.Fprintln(flags.Output(), "\nflags:")
		flags.PrintDefaults()
	}
	only := flags.String("only", "", "scenarios to run, separated by commas; default: all")
	env := flags.String("env", "", "further variables for posthorn, NAME=value separated by commas")
	flags.StringVar(&o.binary, "posthorn", "bin/posthorn", "the binary to measure")
	flags.StringVar(&o.databaseURL, "database-url", "", "measure on this server, in databases of its own, instead of the embedded one; the role must be a superuser")
	flags.StringVar(&o.scratch, "scratch", "", "where data directories are made; default: the system's folder for temporary files")
	flags.StringVar(&o.profiles, "profiles", ".", "where -profile puts its files")
	flags.StringVar(&jsonFile, "json", "", "write the report to this file too")
	flags.IntVar(&o.repeats, "n", 3, "measurements of each row, of which the median is shown")
	flags.IntVar(&o.connections, "c", 32, "connections of the load generator")
	flags.BoolVar(&o.profile, "profile", false, "keep CPU and heap profiles and the dearest statements of each scenario (costs speed)")
	flags.BoolVar(&o.keep, "keep", false, "keep the scratch folders with their logs")
	flags.Int64Var(&o.events, "events", 30000, "events of a one to one measurement")
	flags.Int64Var(&o.lightEvents, "light-events", 500, "events of a measurement at light load")
	flags.Int64Var(&o.fanOutEvents, "fan-out-events", 5000, "events of a fan-out measurement")
	flags.Int64Var(&o.recoveryBacklog, "recovery-backlog", 100_000, "deliveries that an endpoint missed in a week")
	flags.IntVar(&o.recoveryRate, "recovery-rate", 200, "deliveries a second that it takes when it is back")
	flags.Int64Var(&o.backlog, "backlog", 100_000, "deliveries that wait for the stuck endpoints, or for those of the busy tenant")
	flags.IntVar(&o.coldEndpoints, "cold-endpoints", 10_000, "cold endpoints")
	flags.IntVar(&o.busyEndpoints, "busy-endpoints", 5000, "endpoints of the busy tenant")
	flags.IntVar(&o.historyDays, "history-days", 92, "days of history; with those made ahead 100 partitions")
	flags.Int64Var(&o.historyDeliveries, "history-deliveries", 5_000_000, "deliveries of history")
	flags.Int64Var(&o.storedDeliveries, "stored-deliveries", 100_000, "deliveries of the day that is stored")
	flags.IntVar(&o.historyTenants, "history-tenants", 200, "tenants with a history, beside the one that has half of the deliveries")
	flags.DurationVar(&o.snapshot, "snapshot", 10*time.Minute, "how long the snapshot is held before the measurement")
	flags.IntVar(&o.snapshotRate, "snapshot-rate", 300, "events a second while it is held")
	if err := flags.Parse(args); err != nil {
		return nil, "", err
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	if *env != "" {
		o.env = strings.Split(*env, ",")
	}
	for _, name := range o.only {
		if !slices.ContainsFunc(scenarios(), func(s scenario) bool { return s.name == name }) {
			return nil, "", fmt.Errorf("there is no scenario %q; bench -help lists them", name)
		}
	}
	if o.repeats < 1 {
		return nil, "", errors.New("-n must be at least 1")
	}
	o.self, err = os.Executable()
	return o, jsonFile, err
}

func (o *options) selected(scenario string) bool {
	return len(o.only) == 0 || slices.Contains(o.only, scenario)
}

// machine describes the machine of the measurements.
func machine() string {
	model := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d CPUs, %s, %s", model, runtime.NumCPU(), runtime.GOOS, runtime.Version())
}
