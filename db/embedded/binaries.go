package embedded

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"posthorn/domain/fault"
)

// binaries is a folder that holds postgres and initdb of one version.
type binaries struct {
	dir     string
	major   int
	version string // "15.18"
}

func (b binaries) program(name string) string { return filepath.Join(b.dir, name) }

// places is where PostgreSQL is searched for.
type places struct {
	path    string   // a search path, as in PATH
	folders []string // patterns of package managers' folders outside the search path
	offline bool     // never fetch
}

// machinePlaces are this machine's: PATH, then the folders of the distributions' packages outside of it.
func machinePlaces() *places {
	return &places{
		path: os.Getenv("PATH"),
		folders: []string{
			"/usr/lib/postgresql/*/bin",                      // Debian, Ubuntu
			"/usr/pgsql-*/bin",                               // the PostgreSQL project's RPMs
			"/usr/libexec/postgresql*",                       // Alpine
			"/usr/lib/postgresql*/bin",                       // SUSE
			"/usr/lib64/postgresql-*/bin",                    // Gentoo
			"/opt/homebrew/opt/postgresql*/bin",              // Homebrew on Apple silicon
			"/usr/local/opt/postgresql*/bin",                 // Homebrew on Intel
			"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin", // Homebrew on Linux
			"/Applications/Postgres.app/Contents/Versions/*/bin",
			"/opt/local/lib/postgresql*/bin", // MacPorts
			"/usr/local/pgsql/bin",           // built from source
			"/usr/local/bin", "/usr/bin",     // where PATH is empty or short
		},
	}
}

// findBinaries searches the machine, then what was installed before, then installs. want is the major version of the
// existing cluster, or 0. Of several folders the newest version wins, but PATH precedes all.
func (l *layout) findBinaries(ctx context.Context, cfg Config, want int) (binaries, error) {
	s := search{layout: l, want: want, seen: map[string]bool{}}
	for _, dir := range filepath.SplitList(cfg.places.path) {
		if b, ok := s.try(ctx, dir); ok {
			return b, nil
		}
	}
	for _, pattern := range append(slices.Clone(cfg.places.folders), filepath.Join(l.binaries, "*")) {
		if b, ok := s.newest(ctx, pattern); ok {
			return b, nil
		}
	}
	if cfg.Archive != "" {
		dir, err := l.installArchive(ctx, cfg)
		if err != nil {
			return binaries{}, err
		}
		if b, ok := s.newest(ctx, dir); ok {
			return b, nil
		}
		return binaries{}, s.failure(fault.New(fault.Invalid, "postgres_archive_refused", "The archive "+cfg.Archive+" holds no PostgreSQL that runs here."))
	}
	if cfg.places.offline || (want != 0 && want != fetchedMajor) {
		return binaries{}, s.failure(nil)
	}
	dir, err := l.fetch(ctx, cfg.Log)
	if err != nil {
		return binaries{}, s.failure(err)
	}
	if b, ok := s.newest(ctx, dir); ok {
		return b, nil
	}
	return binaries{}, s.failure(nil)
}

// search records what was found and why it was not used, for the error message.
type search struct {
	layout  *layout
	want    int
	seen    map[string]bool
	refused []string
}

// newest tries the folders of a pattern, the highest version number in the path first.
func (s *search) newest(ctx context.Context, pattern string) (binaries, bool) {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return binaries{}, false
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(pathVersion(b), pathVersion(a)) })
	for _, dir := range dirs {
		if strings.HasPrefix(dir, s.layout.binaries+string(filepath.Separator)) {
			if dir = programFolder(dir); dir == "" {
				continue
			}
		}
		if b, ok := s.try(ctx, dir); ok {
			return b, true
		}
	}
	return binaries{}, false
}

var digits = regexp.MustCompile(`\d+(\.\d+)?`)

// pathVersion is the last number in a path, 0 without one.
func pathVersion(path string) float64 {
	all := digits.FindAllString(path, -1)
	if len(all) == 0 {
		return 0
	}
	v, err := strconv.ParseFloat(all[len(all)-1], 64)
	if err != nil {
		return 0
	}
	return v
}

// try checks a folder for a usable PostgreSQL. It follows the links that some systems put into PATH, to the folder with
// initdb and the shared files.
func (s *search) try(ctx context.Context, dir string) (binaries, bool) {
	if !filepath.IsAbs(dir) {
		return binaries{}, false // a relative entry of PATH depends on where Posthorn was started
	}
	program, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
	if err != nil {
		return binaries{}, false
	}
	dir = filepath.Dir(program)
	if s.seen[dir] {
		return binaries{}, false
	}
	s.seen[dir] = true
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		s.refuse(dir, "without initdb")
		return binaries{}, false
	}
	b, err := s.layout.probe(ctx, dir)
	switch {
	case err != nil:
		s.refuse(dir, "that does not run here: "+err.Error())
	case b.major < MinMajor:
		s.refuse(dir, fmt.Sprintf("%s, older than %d", b.version, MinMajor))
	case s.want != 0 && b.major != s.want:
		s.refuse(dir, b.version)
	default:
		return b, true
	}
	return binaries{}, false
}

func (s *search) refuse(dir, why string) {
	s.refused = append(s.refused, fmt.Sprintf("PostgreSQL %s in %s", why, dir))
}

var versionLine = regexp.MustCompile(`^postgres \(PostgreSQL\) ((\d+)\S*)`)

// probe runs the program as the server's account, which also shows whether that account can reach it.
func (l *layout) probe(ctx context.Context, dir string) (binaries, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := l.command(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return binaries{}, err
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return binaries{}, fmt.Errorf("%q is not a version", strings.TrimSpace(string(out)))
	}
	major, err := strconv.Atoi(string(m[2]))
	if err != nil {
		return binaries{}, err
	}
	return binaries{dir: dir, major: major, version: string(m[1])}, nil
}

// failure reports what was found instead and what to install.
func (s *search) failure(cause error) error {
	e := &fault.Error{Kind: fault.Unavailable, Code: "postgres_not_found", Cause: cause}
	need := fmt.Sprintf("PostgreSQL %d or newer", MinMajor)
	if s.want != 0 {
		e.Code = "postgres_version_missing"
		need = fmt.Sprintf("PostgreSQL %d, which made the data in %s,", s.want, s.layout.home)
	}
	e.Detail = need + " was not found on this machine"
	if len(s.refused) > 0 {
		e.Detail += " (found " + strings.Join(s.refused, "; ") + ")"
	}
	if cause != nil {
		e.Detail += " and could not be fetched"
	}
	e.Detail += ". " + howToInstall
	return e
}

const howToInstall = "Install it: Debian, Ubuntu: apt-get install postgresql; Fedora, RHEL: dnf install postgresql-server; " +
	"Alpine: apk add postgresql; SUSE: zypper install postgresql-server; Arch: pacman -S postgresql; macOS: brew install postgresql@17. " +
	"Or set POSTHORN_POSTGRES_ARCHIVE and POSTHORN_POSTGRES_ARCHIVE_SHA256 to a PostgreSQL archive, " +
	"or POSTHORN_DATABASE_URL to a PostgreSQL server that runs already."
