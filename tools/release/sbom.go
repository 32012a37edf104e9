package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// document is an SPDX 2.3 document, with what Posthorn has to say: https://spdx.github.io/spdx-spec/v2.3/.
type document struct {
	Version       string         `json:"spdxVersion"`
	License       string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []spdxPackage  `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID        string     `json:"SPDXID"`
	Name      string     `json:"name"`
	Version   string     `json:"versionInfo"`
	Download  string     `json:"downloadLocation"`
	Analyzed  bool       `json:"filesAnalyzed"`
	Concluded string     `json:"licenseConcluded"`
	Declared  string     `json:"licenseDeclared"`
	Copyright string     `json:"copyrightText"`
	Comment   string     `json:"comment,omitempty"`
	Purpose   string     `json:"primaryPackagePurpose,omitempty"`
	Refs      []external `json:"externalRefs,omitempty"`
}

type external struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const unknown = "NOASSERTION"

// sbom lists the modules that are built into the programs, as the programs themselves say, and the toolchain.
func (r release) sbom(programs []string) ([]byte, error) {
	modules, in := map[string]*debug.Module{}, map[string][]string{}
	toolchain := ""
	for _, path := range programs {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return nil, err
		}
		toolchain = strings.TrimPrefix(info.GoVersion, "go")
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if strings.HasPrefix(m.Path, ".") {
				continue // the SDK: a folder of the same commit
			}
			key := m.Path + "@" + m.Version
			modules[key] = m
			in[key] = append(in[key], filepath.Base(path))
		}
	}
	doc := document{
		Version:       "SPDX-2.3",
		License:       "CC0-1.0",
		ID:            "SPDXRef-DOCUMENT",
		Name:          "posthorn-" + r.version,
		Creation:      creation{Created: r.at.Format(time.RFC3339), Creators: []string{"Tool: posthorn-release"}},
		Packages:      []spdxPackage{{ID: "SPDXRef-posthorn", Name: "posthorn", Version: r.version, Purpose: "APPLICATION"}},
		Relationships: []relationship{{"SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-posthorn"}},
	}
	add := func(p spdxPackage) {
		doc.Packages = append(doc.Packages, p)
		doc.Relationships = append(doc.Relationships, relationship{"SPDXRef-posthorn", "DEPENDS_ON", p.ID})
	}
	add(spdxPackage{ID: "SPDXRef-go", Name: "stdlib", Version: toolchain, Refs: purl("stdlib", toolchain)})
	for _, key := range slices.Sorted(maps.Keys(modules)) {
		m := modules[key]
		p := spdxPackage{ID: reference(key), Name: m.Path, Version: m.Version, Purpose: "LIBRARY", Refs: purl(m.Path, m.Version)}
		if m.Sum != "" {
			p.Comment = "go.sum " + m.Sum
		}
		if len(in[key]) < len(programs) {
			p.Comment = strings.TrimSpace(p.Comment + "; only in " + strings.Join(in[key], ", "))
		}
		add(p)
	}
	for i := range doc.Packages {
		p := &doc.Packages[i]
		p.Download, p.Concluded, p.Declared, p.Copyright = unknown, unknown, unknown, unknown
	}
	content, err := json.Marshal(doc.Packages)
	if err != nil {
		return nil, err
	}
	doc.Namespace = fmt.Sprintf("https://spdx.org/spdxdocs/posthorn-%s-%x", r.version, sha256.Sum256(content))
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(doc)
	return out.Bytes(), err
}

func purl(path, version string) []external {
	return []external{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")}}
}

// reference is an id that SPDX allows: letters, digits, dots and hyphens.
func reference(key string) string {
	plain := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' {
			return c
		}
		return '-'
	}, key)
	sum := sha256.Sum256([]byte(key))
	return fmt.Sprintf("SPDXRef-%x-%s", sum[:4], plain)
}
