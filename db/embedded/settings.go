package embedded

import (
	"context"
	"maps"
	"regexp"
	"slices"

	"posthorn/domain/fault"
)

// serverSettings are Posthorn's own. They go on the command line, where ALTER SYSTEM can't override them.
func (l *layout) serverSettings() map[string]string {
	s := map[string]string{
		// Connections use only the socket, in a folder that belongs to its owner alone. There is no TCP.
		"listen_addresses":        "",
		"port":                    socketPort,
		"unix_socket_directories": l.sockets,
		"unix_socket_permissions": "0700",
		"max_connections":         "100",
		"cluster_name":            l.name,

		// An acknowledged event survives a power cut.
		"fsync":              "on",
		"synchronous_commit": "on",
		"full_page_writes":   "on",

		// Few, spread checkpoints: each one makes the log bigger for a while, since every page is logged in full once
		// after it. 2 GB of log are replayed in seconds, which bounds the pause after a crash.
		"max_wal_size":       "2GB",
		"min_wal_size":       "256MB",
		"checkpoint_timeout": "15min",

		"shared_buffers":   "256MB",
		"random_page_cost": "1.1", // SSD
		"jit":              "off", // compiles longer than these statements run
		// The statements are short. Parallel ones would fail in a container with its 64 MB of /dev/shm.
		"max_parallel_workers_per_gather": "0",
		"autovacuum_naptime":              "5s", // the queue's rows die young

		"timezone": "UTC",

		// A week of logs, one file per weekday. They never contain statements, parameters or row content, which hold
		// customers' data.
		"logging_collector":                 "on",
		"log_destination":                   "stderr",
		"log_directory":                     l.logs,
		"log_filename":                      "postgresql-%a.log",
		"log_rotation_age":                  "1d",
		"log_rotation_size":                 "0",
		"log_truncate_on_rotation":          "on",
		"log_file_mode":                     "0600",
		"log_timezone":                      "UTC",
		"log_line_prefix":                   "%m [%p] %q%u@%d ",
		"log_min_error_statement":           "panic",
		"log_error_verbosity":               "terse",
		"log_parameter_max_length":          "0",
		"log_parameter_max_length_on_error": "0",
	}
	maps.Copy(s, platformSettings())
	return s
}

// Custom settings have a dot in their name (an extension's), others do not.
var settingName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*(\.[a-zA-Z_][a-zA-Z0-9_]*)?$`)

// arguments are the postmaster's: the folder, then the settings in order of their names.
func (l *layout) arguments(ctx context.Context, b binaries, extra map[string]string) ([]string, error) {
	all := l.serverSettings()
	all["wal_compression"] = l.walCompression(ctx, b)
	for name, value := range extra {
		if !settingName.MatchString(name) {
			return nil, fault.New(fault.Invalid, "postgres_setting_refused", "Not the name of a PostgreSQL setting: "+name)
		}
		all[name] = value
	}
	args := []string{"-D", l.data}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		args = append(args, "-c", name+"="+all[name])
	}
	return args, nil
}

// walCompression asks the server which method it was built with: lz4 costs a fraction of pglz, and version 14 knows
// only on and off.
func (l *layout) walCompression(ctx context.Context, b binaries) string {
	if l.command(ctx, b.program("postgres"), "-D", l.data, "-C", "wal_compression", "-c", "wal_compression=lz4").Run() == nil {
		return "lz4"
	}
	return "on"
}
