package main

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the formats register themselves
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// own are files that only packages have: settings, the services' user, and what runs at installation and removal.
//
//go:embed package
var own embed.FS

// packaged is where each file of a package goes: unit files, completions, and pages by their names, others from own.
var packaged = []struct {
	name, to string
	mode     os.FileMode
	kind     string
	format   string // empty: both
}{
	{name: "posthorn", to: "/usr/bin/posthorn", mode: 0o755},
	{name: "posthorn.env", to: "/etc/posthorn.env", mode: 0o600, kind: files.TypeConfigNoReplace},
	{name: "posthorn.sysusers", to: "/usr/lib/sysusers.d/posthorn.conf", mode: 0o644},
	{name: "posthorn-web.service", to: "/usr/lib/systemd/system/posthorn-web.service", mode: 0o644},
	{name: "posthorn-worker.service", to: "/usr/lib/systemd/system/posthorn-worker.service", mode: 0o644},
	{name: "posthorn.bash", to: "/usr/share/bash-completion/completions/posthorn", mode: 0o644},
	{name: "_posthorn", to: "/usr/share/zsh/vendor-completions/_posthorn", mode: 0o644, format: "deb"},
	{name: "_posthorn", to: "/usr/share/zsh/site-functions/_posthorn", mode: 0o644, format: "rpm"},
	{name: "posthorn.fish", to: "/usr/share/fish/vendor_completions.d/posthorn.fish", mode: 0o644},
	{name: "README.md", to: "/usr/share/doc/posthorn/README.md", mode: 0o644},
	{name: "CHANGELOG.md", to: "/usr/share/doc/posthorn/CHANGELOG.md", mode: 0o644},
	{name: "LICENSE", to: "/usr/share/doc/posthorn/LICENSE", mode: 0o644},
}

// packages writes a deb and an rpm of a program for Linux.
func (r release) packages(program string) error {
	arch, linux := strings.CutPrefix(filepath.Base(program), "posthorn-linux-")
	if !linux {
		return nil
	}
	scratch, err := os.MkdirTemp("", "posthorn-package")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	from, err := r.gather(scratch, program)
	if err != nil {
		return err
	}
	for _, format := range []string{"deb", "rpm"} {
		info := nfpm.WithDefaults(&nfpm.Info{
			Name:        "posthorn",
			Arch:        arch,
			Platform:    "linux",
			Version:     packageVersion(r.version),
			Section:     "net",
			Maintainer:  "Posthorn",
			Vendor:      "Posthorn",
			Description: "Multi-tenant webhook delivery over PostgreSQL",
			MTime:       r.at,
			Overridables: nfpm.Overridables{
				RPM: nfpm.RPM{BuildHost: "posthorn", Summary: "Multi-tenant webhook delivery"},
				Scripts: nfpm.Scripts{
					PostInstall: from["postinstall.sh"],
					PreRemove:   from["preremove.sh"],
				},
			},
		})
		for _, f := range packaged {
			if from[f.name] == "" || f.format != "" && f.format != format {
				continue
			}
			info.Contents = append(info.Contents, &files.Content{
				Source:      from[f.name],
				Destination: f.to,
				Type:        f.kind,
				FileInfo:    &files.ContentFileInfo{Mode: f.mode, MTime: r.at, Owner: "root", Group: "root"},
			})
		}
		if err := r.pack(format, info); err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
	}
	return nil
}

// gather writes the files of packages below a folder, and returns where each is by its name.
func (r release) gather(folder, program string) (map[string]string, error) {
	from := map[string]string{"posthorn": program}
	for _, path := range r.beside {
		from[filepath.Base(path)] = path
	}
	for _, path := range slices.Concat(r.systemd, r.completions) {
		from[filepath.Base(path)] = path
	}
	entries, err := own.ReadDir("package")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		content, err := own.ReadFile("package/" + e.Name())
		if err != nil {
			return nil, err
		}
		from[e.Name()] = filepath.Join(folder, e.Name())
		if err := os.WriteFile(from[e.Name()], content, 0o600); err != nil {
			return nil, err
		}
	}
	for _, path := range r.systemd { // the unit files name the place for programs that no package brings
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(path)
		from[name] = filepath.Join(folder, name)
		content = bytes.ReplaceAll(content, []byte("/usr/local/bin/"), []byte("/usr/bin/"))
		if err := os.WriteFile(from[name], content, 0o600); err != nil {
			return nil, err
		}
	}
	return from, nil
}

func (r release) pack(format string, info *nfpm.Info) error {
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := packager.Package(info, &out); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, packager.ConventionalFileName(info)), out.Bytes(), 0o644)
}

var semantic = regexp.MustCompile(`^v?\d+\.\d+\.\d+([-+].*)?$`)

// packageVersion is a version as packages have it. A commit without a tag comes before every version.
func packageVersion(version string) string {
	if semantic.MatchString(version) {
		return version
	}
	name := regexp.MustCompile(`[^0-9A-Za-z.]+`).ReplaceAllString(version, ".")
	return "0.0.0-dev." + cmp.Or(strings.Trim(name, "."), "0")
}
