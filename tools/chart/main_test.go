package main

import (
	"maps"
	"os"
	"os/exec"
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
		"env":     map[string]any{"POSTHORN_TRUSTED_PROXIES": "10.0.0.0/8", "POSTHORN_EGRESS_NAT64": "2001:db8::/96", "OTEL_SERVICE_NAME": "hooks"},
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
			"egress": []any{map[string]any{
				"to":    []any{map[string]any{"ipBlock": map[string]any{"cidr": "10.9.8.0/24"}}},
				"ports": []any{map[string]any{"port": 4318}},
			}},
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
	budget := func(part string, replicas int, budget map[string]any) map[string]any {
		return map[string]any{
			"baseURL":        "https://posthorn.example.com",
			"existingSecret": "hooks",
			part:             map[string]any{"replicas": replicas, "podDisruptionBudget": budget},
		}
	}
	for want, values := range map[string]map[string]any{
		"web.podDisruptionBudget.minAvailable is 2 and there are 2":       budget("web", 2, map[string]any{"minAvailable": 2}),
		"worker.podDisruptionBudget.minAvailable is 5 and there are 2":    budget("worker", 2, map[string]any{"minAvailable": 5}),
		"worker.podDisruptionBudget.minAvailable is 51% and there are 2":  budget("worker", 2, map[string]any{"minAvailable": "51%"}),
		"worker.podDisruptionBudget.minAvailable is 100% and there are 9": budget("worker", 9, map[string]any{"minAvailable": "100%"}),
		"web.podDisruptionBudget.maxUnavailable is 0":                     budget("web", 3, map[string]any{"minAvailable": nil, "maxUnavailable": 0}),
		"minAvailable and maxUnavailable":                                 budget("web", 3, map[string]any{"maxUnavailable": 1}),
		"podDisruptionBudget":                                             budget("web", 3, map[string]any{"minAvailable": "x"}),
		"baseURL":                                                         {"existingSecret": "hooks"},
		"Set existingSecret":                                              {"baseURL": "https://posthorn.example.com"},
		"replica":                                                         {"baseURL": "https://posthorn.example.com", "existingSecret": "hooks", "web": map[string]any{"replica": 3}},
		"POSTHORN_":                                                       {"baseURL": "https://posthorn.example.com", "existingSecret": "hooks", "env": map[string]any{"PORT": "1"}},
		"/replicas":                                                       {"baseURL": "https://posthorn.example.com", "existingSecret": "hooks", "web": map[string]any{"replicas": 0}},
	} {
		if _, err := render(c, values, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// A budget is left out where nothing could meet it, and can be turned off.
func TestABudgetLeavesADrainOfANodePossible(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		values map[string]any
		want   map[string]string // minAvailable and maxUnavailable of each part's budget
	}{
		{"as it comes", nil, map[string]string{"web": "1 ", "worker": "1 "}},
		{"one web process", map[string]any{"web": map[string]any{"replicas": 1}}, map[string]string{"worker": "1 "}},
		{"no budget", map[string]any{"web": map[string]any{"podDisruptionBudget": nil}}, map[string]string{"worker": "1 "}},
		{"the other field", map[string]any{"web": map[string]any{"podDisruptionBudget": map[string]any{"minAvailable": nil, "maxUnavailable": "25%"}}}, map[string]string{"web": " 25%", "worker": "1 "}},
		{"an autoscaler's least", map[string]any{"worker": map[string]any{"replicas": 9, "autoscaling": map[string]any{"enabled": true, "minReplicas": 1}}}, map[string]string{"web": "1 "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			values := maps.Clone(least)
			maps.Copy(values, c.values)
			got := map[string]string{}
			for _, each := range objects(t, values, false)["PodDisruptionBudget"] {
				b := each.(*policyv1.PodDisruptionBudget)
				text := " "
				if b.Spec.MinAvailable != nil {
					text = b.Spec.MinAvailable.String() + text
				}
				if b.Spec.MaxUnavailable != nil {
					text += b.Spec.MaxUnavailable.String()
				}
				got[b.Spec.Selector.MatchLabels["app.kubernetes.io/component"]] = text
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("budgets %v, want %v", got, c.want)
			}
		})
	}
}

// A collector, a relay or a provider in the cluster is reachable where the operator says so, from both parts.
func TestTheNetworkPolicyTakesFurtherRules(t *testing.T) {
	t.Parallel()
	for _, each := range objects(t, most, true)["NetworkPolicy"] {
		policy := each.(*networkingv1.NetworkPolicy)
		last := policy.Spec.Egress[len(policy.Spec.Egress)-1]
		if last.To[0].IPBlock.CIDR != "10.9.8.0/24" || last.Ports[0].Port.IntValue() != 4318 {
			t.Errorf("%s ends with %+v", policy.Name, last)
		}
	}
}

// Kubernetes takes a pod out of its services while the pod stops. Connections that arrive until then are accepted.
func TestAStopIsGivenTimeForItsDelayAndItsDeliveries(t *testing.T) {
	t.Parallel()
	values := maps.Clone(least)
	values["web"], values["worker"] = map[string]any{"shutdownDelay": 7}, map[string]any{"shutdownGrace": 90}
	for _, each := range objects(t, values, false)["Deployment"] {
		spec := each.(*appsv1.Deployment).Spec.Template.Spec
		if grace := *spec.TerminationGracePeriodSeconds; grace <= 97 {
			t.Errorf("a pod has %d seconds to stop", grace)
		}
		if !slices.Contains(spec.Containers[0].Env, corev1.EnvVar{Name: "POSTHORN_SHUTDOWN_DELAY", Value: "7s"}) {
			t.Errorf("variables %v", spec.Containers[0].Env)
		}
	}
}

// helm itself is not the engine of these tests: it reads the archive, merges values, and lints.
func TestHelmTakesThePackedChart(t *testing.T) {
	t.Parallel()
	helm, err := exec.LookPath("helm")
	if err != nil {
		t.Skip("SKIPPED: helm is missing. Install it to run this test.")
	}
	archive, err := pack(chartDir, t.TempDir(), "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	values := []string{"--set", "baseURL=https://posthorn.example.com", "--set", "existingSecret=posthorn"}
	run := func(args ...string) (string, error) {
		args = append(args, values...)
		out, err := exec.CommandContext(t.Context(), helm, args...).CombinedOutput()
		return string(out), err
	}
	if said, err := run("lint", "--strict", archive); err != nil {
		t.Errorf("helm lint: %v\n%s", err, said)
	}
	for _, version := range []string{"1.27.0", "1.33.0"} {
		said, err := run("template", "hooks", archive, "--kube-version", version, "--set", "networkPolicy.enabled=true",
			"--set-json", `networkPolicy.egress=[{"to":[{"ipBlock":{"cidr":"10.9.8.0/24"}}]}]`)
		if err != nil || strings.Count(said, "cidr: 10.9.8.0/24") != 2 || !strings.Contains(said, "image: posthorn:v1.2.3") {
			t.Errorf("helm template for %s: %v\n%s", version, err, said)
		}
	}
	if said, err := run("template", "hooks", archive, "--set", "worker.podDisruptionBudget.minAvailable=5"); err == nil || !strings.Contains(said, "no node could be drained") {
		t.Errorf("a budget that blocks every drain: %v\n%s", err, said)
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
