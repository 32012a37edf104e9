package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const chartDir = "../../docs/ops/chart"

// monitor is the part of the Prometheus operator's ServiceMonitor that the chart uses.
type monitor struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		Selector  map[string]any `json:"selector"`
		Endpoints []struct {
			Port     string `json:"port"`
			Interval string `json:"interval"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// objects renders the chart and decodes each manifest into its type of the Kubernetes API. A field that the type does
// not have is an error.
func objects(t *testing.T, values map[string]any, upgrade bool) map[string][]any {
	t.Helper()
	c, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := render(c, values, upgrade)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]any{}
	for file, text := range manifests {
		if strings.HasSuffix(file, "NOTES.txt") {
			continue
		}
		for _, document := range regexp.MustCompile(`(?m)^---\s*$`).Split(text, -1) {
			if strings.TrimSpace(document) == "" {
				continue
			}
			var kind struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
				t.Fatalf("%s: %v\n%s", file, err, document)
			}
			into := map[string]any{
				"apps/v1 Deployment":                      &appsv1.Deployment{},
				"v1 Service":                              &corev1.Service{},
				"v1 Secret":                               &corev1.Secret{},
				"v1 ServiceAccount":                       &corev1.ServiceAccount{},
				"batch/v1 Job":                            &batchv1.Job{},
				"policy/v1 PodDisruptionBudget":           &policyv1.PodDisruptionBudget{},
				"networking.k8s.io/v1 Ingress":            &networkingv1.Ingress{},
				"networking.k8s.io/v1 NetworkPolicy":      &networkingv1.NetworkPolicy{},
				"autoscaling/v2 HorizontalPodAutoscaler":  &autoscalingv2.HorizontalPodAutoscaler{},
				"monitoring.coreos.com/v1 ServiceMonitor": &monitor{},
			}[kind.APIVersion+" "+kind.Kind]
			if into == nil {
				t.Fatalf("%s has a %s %s, which this test does not know", file, kind.APIVersion, kind.Kind)
			}
			if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
				t.Errorf("%s: %v\n%s", file, err, document)
			}
			found[kind.Kind] = append(found[kind.Kind], into)
		}
	}
	return found
}

var (
	least = map[string]any{"baseURL": "https://posthorn.example.com", "existingSecret": "hooks"}
	most  = map[string]any{
		"baseURL": "https://posthorn.example.com",
		"secret":  map[string]any{"POSTHORN_DATABASE_URL": "postgres://x", "POSTHORN_MASTER_KEY": "k"},
		"env":     map[string]any{"POSTHORN_TRUSTED_PROXIES": "10.0.0.0/8"},
		"worker":  map[string]any{"autoscaling": map[string]any{"enabled": true}},
		"ingress": map[string]any{
			"enabled":     true,
			"className":   "nginx",
			"tlsSecret":   "tls",
			"annotations": map[string]any{"a": "b"},
		},
		"serviceMonitor": map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}},
		"networkPolicy": map[string]any{
			"enabled":     true,
			"metricsFrom": []any{map[string]any{"namespaceSelector": map[string]any{}}},
			"databaseTo":  []any{map[string]any{"ipBlock": map[string]any{"cidr": "10.1.2.3/32"}}},
		},
		"podAnnotations":   map[string]any{"c": "d"},
		"imagePullSecrets": []any{map[string]any{"name": "pull"}},
	}
)

func TestTheLeastValuesGiveWebProcessesWorkersAndAMigration(t *testing.T) {
	t.Parallel()
	found := objects(t, least, false)
	if len(found["Deployment"]) != 2 || len(found["PodDisruptionBudget"]) != 2 || len(found["Job"]) != 1 || len(found["Secret"]) != 0 || len(found["Ingress"]) != 0 {
		t.Fatalf("the chart renders %v", found)
	}
	for _, each := range found["Deployment"] {
		spec := each.(*appsv1.Deployment).Spec.Template.Spec
		c := spec.Containers[0]
		s := c.SecurityContext
		if !*s.RunAsNonRoot || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || *s.RunAsUser != 65532 ||
			!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("%v runs with %+v", c.Args, s)
		}
		if *spec.AutomountServiceAccountToken || *spec.EnableServiceLinks || *spec.TerminationGracePeriodSeconds <= 20 {
			t.Errorf("%v: %+v", c.Args, spec)
		}
		if c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Path != "/healthz" || c.EnvFrom[0].SecretRef.Name != "hooks" {
			t.Errorf("%v: %+v", c.Args, c)
		}
	}
	job := found["Job"][0].(*batchv1.Job)
	if got := job.Annotations["helm.sh/hook"]; got != "pre-install,pre-upgrade" || !slices.Equal(job.Spec.Template.Spec.Containers[0].Args, []string{"migrate", "up"}) {
		t.Errorf("the migration runs at %s: %+v", got, job.Spec)
	}
}

func TestEveryValueGivesObjectsThatKubernetesKnows(t *testing.T) {
	t.Parallel()
	found := objects(t, most, true)
	for kind, n := range map[string]int{
		"Deployment":              2,
		"Service":                 3,
		"Secret":                  1,
		"ServiceAccount":          1,
		"Job":                     1,
		"PodDisruptionBudget":     2,
		"Ingress":                 1,
		"NetworkPolicy":           2,
		"HorizontalPodAutoscaler": 1,
		"ServiceMonitor":          1,
	} {
		if len(found[kind]) != n {
			t.Errorf("%d objects of kind %s, want %d", len(found[kind]), kind, n)
		}
	}
	if host := found["Ingress"][0].(*networkingv1.Ingress).Spec.Rules[0].Host; host != "posthorn.example.com" {
		t.Errorf("the ingress has the host %q", host)
	}
	for _, each := range found["Deployment"] {
		d := each.(*appsv1.Deployment)
		if scaled := strings.HasSuffix(d.Name, "-worker"); scaled != (d.Spec.Replicas == nil) {
			t.Errorf("%s has %v replicas beside an autoscaler of the workers", d.Name, d.Spec.Replicas)
		}
	}
	metric := found["HorizontalPodAutoscaler"][0].(*autoscalingv2.HorizontalPodAutoscaler).Spec.Metrics[0].Pods.Metric.Name
	if page, err := os.ReadFile(filepath.Join(chartDir, "..", "monitoring.md")); err != nil || !strings.Contains(string(page), "`"+metric+"`") {
		t.Errorf("the page on monitoring does not name the metric %s: %v", metric, err)
	}
}

func TestValuesThatCannotWorkAreRejectedWithWhatToDo(t *testing.T) {
	t.Parallel()
	c, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	for want, values := range map[string]map[string]any{
		"baseURL":            {"existingSecret": "hooks"},
		"Set existingSecret": {"baseURL": "https://posthorn.example.com"},
		"replica":            {"baseURL": "https://posthorn.example.com", "existingSecret": "hooks", "web": map[string]any{"replica": 3}},
		"POSTHORN_":          {"baseURL": "https://posthorn.example.com", "existingSecret": "hooks", "env": map[string]any{"PORT": "1"}},
		"/replicas":          {"baseURL": "https://posthorn.example.com", "existingSecret": "hooks", "web": map[string]any{"replicas": 0}},
	} {
		if _, err := render(c, values, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func TestEveryVariableOfTheChartIsOneThatPosthornReads(t *testing.T) {
	t.Parallel()
	config, err := os.ReadFile("../../web/config.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range objects(t, most, true)["Deployment"] {
		for _, v := range each.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Env {
			if !strings.Contains(string(config), `env:"`+v.Name+`"`) {
				t.Errorf("nothing reads %s", v.Name)
			}
		}
	}
}
