// Command chart lints Posthorn's Helm chart and packs it with a version.
//
//	chart -chart docs/ops/chart -out bin/chart -version 1.4.0
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"regexp"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("chart", "docs/ops/chart", "folder of the chart")
	out := flag.String("out", "bin/chart", "folder of the archive")
	version := flag.String("version", "dev", "version of the image that the chart starts")
	flag.Parse()
	path, err := pack(*dir, *out, *version)
	if err != nil {
		log.Fatal("chart: ", err)
	}
	fmt.Println(path)
}

// pack renders the chart with its least values, so that a chart that cannot be installed is not packed.
func pack(dir, out, version string) (string, error) {
	c, err := loader.LoadDir(dir)
	if err != nil {
		return "", err
	}
	c.Metadata.AppVersion = version
	if semantic := regexp.MustCompile(`^v?(\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?)$`).FindStringSubmatch(version); semantic != nil {
		c.Metadata.Version = semantic[1]
	}
	if err := c.Validate(); err != nil {
		return "", err
	}
	manifests, err := render(c, map[string]any{"baseURL": "https://posthorn.example.com", "existingSecret": "posthorn"}, true)
	if err != nil {
		return "", err
	}
	if len(manifests) == 0 {
		return "", errors.New("the chart renders nothing")
	}
	return chartutil.Save(c, out)
}

// render gives what each template of the chart becomes with the values, as an upgrade or a first install.
func render(c *chart.Chart, values map[string]any, upgrade bool) (map[string]string, error) {
	release := chartutil.ReleaseOptions{Name: "hooks", Namespace: "posthorn", Revision: 1, IsInstall: !upgrade, IsUpgrade: upgrade}
	all, err := chartutil.ToRenderValues(c, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(c, all)
}
