package embedded

import (
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"posthorn/domain/fault"
)

// Names of the roles and the database. The superuser is used for setup only. Posthorn works as the application role,
// which owns the database, can create the roles that migrations need, and inherits nothing from them: each transaction
// says SET LOCAL ROLE.
const (
	AppRole   = "posthorn"
	AdminRole = "posthorn_admin"
	Database  = "posthorn"
)

// MinMajor is the oldest major version of PostgreSQL that Posthorn runs on.
const MinMajor = 14

// Environment variables that replace empty fields of Config.
const (
	envArchive    = "POSTHORN_POSTGRES_ARCHIVE"
	envArchiveSum = "POSTHORN_POSTGRES_ARCHIVE_SHA256"
)

// Time limits. Only the context limits a start: crash recovery takes as long as there is log to replay.
const (
	lockRetry     = 30 * time.Second       // how long "another server is running" is treated as a predecessor that is about to exit
	remnantGrace  = time.Second            // before processes of a dead postmaster are killed
	stopGrace     = 60 * time.Second       // for a clean stop, if the context has no deadline
	quitGrace     = 5 * time.Second        // for a stop without a checkpoint, before SIGKILL
	pollInterval  = 10 * time.Millisecond  // while waiting for readiness
	adoptInterval = 200 * time.Millisecond // how often an adopter checks whether the owner has exited
	progressEvery = 5 * time.Second        // between two log lines while waiting
	maxBackoff    = 5 * time.Second        // between two restarts
	steadyAfter   = 30 * time.Second       // a server that ran this long is restarted without a pause
)

// Config says where the cluster is and where PostgreSQL comes from. The zero value works.
type Config struct {
	// DataDir is the folder of this installation; empty means defaultDataDir.
	DataDir string
	// Archive names a PostgreSQL to install when the machine has none: a local file or an https URL of a .tar.gz,
	// .tar.xz or a jar of io.zonky.test.postgres. Empty means the environment's POSTHORN_POSTGRES_ARCHIVE.
	Archive string
	// ArchiveSHA256 is the archive's checksum in hexadecimal; required for a URL. Empty means the environment's
	// POSTHORN_POSTGRES_ARCHIVE_SHA256.
	ArchiveSHA256 string
	// Log receives starts, restarts and stops; nil means slog.Default.
	Log *slog.Logger
	// Settings are further server settings (name to value) that override Posthorn's own. For tests and benchmarks.
	Settings map[string]string

	// places replaces the folders that are searched, for tests that must not find the machine's own PostgreSQL.
	places *places
	// quiet replaces filesQuiet, for tests.
	quiet time.Duration
}

// defaultDataDir is the folder that works without configuration: /var/lib/posthorn for root (the server's unprivileged
// account could not reach a folder below /root), else $XDG_DATA_HOME/posthorn or ~/.local/share/posthorn. It is not
// created. If no home directory is known, the error says what to set.
func defaultDataDir() (string, error) {
	if isRoot() {
		return "/var/lib/posthorn", nil
	}
	// The XDG base directory specification: a relative path there is invalid and must be ignored.
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "posthorn"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		u, err := user.Current()
		if err != nil || !filepath.IsAbs(u.HomeDir) {
			return "", &fault.Error{
				Kind:   fault.Invalid,
				Code:   "data_dir_unknown",
				Cause:  err,
				Detail: "No home directory is known to keep the data in. Set POSTHORN_DATA_DIR to a folder that this user can write to.",
			}
		}
		home = u.HomeDir
	}
	return filepath.Join(home, ".local", "share", "posthorn"), nil
}

// withDefaults fills in empty fields.
func (cfg Config) withDefaults() (Config, error) {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Archive == "" {
		cfg.Archive = os.Getenv(envArchive)
	}
	if cfg.ArchiveSHA256 == "" {
		cfg.ArchiveSHA256 = os.Getenv(envArchiveSum)
	}
	if cfg.places == nil {
		cfg.places = machinePlaces()
	}
	if cfg.quiet == 0 {
		cfg.quiet = filesQuiet
	}
	if cfg.DataDir == "" {
		dir, err := defaultDataDir()
		if err != nil {
			return cfg, err
		}
		cfg.DataDir = dir
	}
	dir, err := filepath.Abs(cfg.DataDir)
	if err != nil {
		return cfg, dirFault(cfg.DataDir, "can't be resolved", err)
	}
	cfg.DataDir = dir
	return cfg, nil
}

// dirFault is the error for a data directory that can't be used.
func dirFault(dir, what string, cause error) error {
	return &fault.Error{
		Kind:   fault.Invalid,
		Code:   "data_dir_unusable",
		Cause:  cause,
		Detail: "The data directory " + dir + " " + what + ". Set POSTHORN_DATA_DIR to a folder that works, or POSTHORN_DATABASE_URL to use a PostgreSQL of your own.",
	}
}
