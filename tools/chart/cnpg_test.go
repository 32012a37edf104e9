package main

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// cnpgModule has the schema of CloudNativePG's objects, as the operator's maintainers publish it.
const cnpgModule = "github.com/cloudnative-pg/cloudnative-pg@v1.28.1"

// clusterSchema is what the operator accepts as a Cluster. Kubernetes drops fields that a schema does not have; here
// they are errors.
func clusterSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	fetch := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", cnpgModule)
	fetch.Dir = t.TempDir()
	out, err := fetch.Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(out, &module) != nil || module.Dir == "" {
		t.Skipf("SKIPPED: %s is missing. Reach Go's module proxy to run this test.", cnpgModule)
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "config/crd/bases/postgresql.cnpg.io_clusters.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Name   string `json:"name"`
				Schema struct {
					Open map[string]any `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &definition); err != nil || len(definition.Spec.Versions) != 1 || definition.Spec.Versions[0].Name != "v1" {
		t.Fatalf("%v, %d versions", err, len(definition.Spec.Versions))
	}
	root := definition.Spec.Versions[0].Schema.Open
	closed(root)
	delete(root["properties"].(map[string]any)["metadata"].(map[string]any), "additionalProperties") // Kubernetes has its fields
	c := jsonschema.NewCompiler()
	if err := c.AddResource("cluster.json", root); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("cluster.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// closed makes each object of a schema reject the fields that it does not name.
func closed(schema map[string]any) {
	if _, named := schema["properties"]; named && schema["additionalProperties"] == nil && schema["x-kubernetes-preserve-unknown-fields"] == nil {
		schema["additionalProperties"] = false
	}
	for _, key := range slices.Collect(maps.Keys(schema)) {
		switch inner := schema[key].(type) {
		case map[string]any:
			if key != "properties" {
				closed(inner)
				continue
			}
			for _, field := range inner {
				closed(field.(map[string]any))
			}
		}
	}
}

// cluster is what the tests read of the file of docs/ops.
type cluster struct {
	Metadata struct{ Name string }
	Spec     struct {
		Instances int
		Bootstrap struct {
			InitDB struct{ Database, Owner string } `json:"initdb"`
		}
		Managed struct {
			Roles []struct {
				Name       string
				CreateRole bool `json:"createrole"`
				Superuser  bool
			}
		}
		PostgreSQL struct {
			Synchronous struct {
				Method         string
				Number         int
				DataDurability string `json:"dataDurability"`
				FailoverQuorum bool   `json:"failoverQuorum"`
			}
		} `json:"postgresql"`
	}
}

func readOps(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chartDir, "..", name))
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheClusterOfCloudNativePGIsOneThatItsOperatorAccepts(t *testing.T) {
	t.Parallel()
	schema := clusterSchema(t)
	var file map[string]any
	readOps(t, "cnpg-cluster.yaml", &file)
	if err := schema.Validate(file); err != nil {
		t.Errorf("%v", err)
	}
	// The check fails where the operator would reject or ignore something.
	for what, change := range map[string]func(spec map[string]any){
		"a field that there is not": func(spec map[string]any) { spec["instanses"] = 3 },
		"a word that there is not": func(spec map[string]any) {
			spec["postgresql"].(map[string]any)["synchronous"].(map[string]any)["dataDurability"] = "always"
		},
		"a number as a parameter": func(spec map[string]any) {
			spec["postgresql"].(map[string]any)["parameters"].(map[string]any)["max_connections"] = 150
		},
	} {
		var wrong map[string]any
		readOps(t, "cnpg-cluster.yaml", &wrong)
		change(wrong["spec"].(map[string]any))
		if err := schema.Validate(wrong); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}

func TestTheClusterOfCloudNativePGAcknowledgesNothingThatIsOnOneInstance(t *testing.T) {
	t.Parallel()
	var c cluster
	readOps(t, "cnpg-cluster.yaml", &c)
	s := c.Spec.PostgreSQL.Synchronous
	if c.Spec.Instances < 3 || s.Method != "any" || s.Number < 1 || s.DataDurability != "required" || !s.FailoverQuorum {
		t.Errorf("%+v", c.Spec)
	}
	owner := c.Spec.Bootstrap.InitDB.Owner
	found := false
	for _, r := range c.Spec.Managed.Roles {
		found = found || r.Name == owner && r.CreateRole && !r.Superuser
	}
	if !found || c.Spec.Bootstrap.InitDB.Database != "posthorn" {
		t.Errorf("the owner %q can't create Posthorn's roles", owner)
	}
}

func TestTheChartTakesTheDatabaseOfCloudNativePG(t *testing.T) {
	t.Parallel()
	var c cluster
	readOps(t, "cnpg-cluster.yaml", &c)
	values := map[string]any{}
	readOps(t, "cnpg-values.yaml", &values)
	found := objects(t, values, false)
	var containers []corev1.Container
	for _, each := range found["Deployment"] {
		containers = append(containers, each.(*appsv1.Deployment).Spec.Template.Spec.Containers...)
	}
	containers = append(containers, found["Job"][0].(*batchv1.Job).Spec.Template.Spec.Containers...)
	if len(containers) != 3 {
		t.Fatalf("%d containers", len(containers))
	}
	for _, container := range containers {
		i := slices.IndexFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == "POSTHORN_DATABASE_URL" })
		if i < 0 || container.Env[i].ValueFrom.SecretKeyRef.Name != c.Metadata.Name+"-app" || container.Env[i].ValueFrom.SecretKeyRef.Key != "uri" {
			t.Errorf("%v: %+v", container.Args, container.Env)
		}
		if container.EnvFrom[0].SecretRef.Name != "posthorn" {
			t.Errorf("%v: the master key is not from a secret of yours", container.Args)
		}
	}
	for _, each := range found["NetworkPolicy"] {
		policy := each.(*networkingv1.NetworkPolicy)
		reached := slices.ContainsFunc(policy.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
			return len(rule.To) == 1 && rule.To[0].PodSelector != nil && rule.To[0].PodSelector.MatchLabels["cnpg.io/cluster"] == c.Metadata.Name
		})
		if !reached {
			t.Errorf("%s does not reach the database", policy.Name)
		}
	}
	// Without the value, the address is from the one secret, as it was.
	for _, each := range objects(t, least, false)["Deployment"] {
		for _, v := range each.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Env {
			if strings.Contains(v.Name, "DATABASE") {
				t.Errorf("%+v", v)
			}
		}
	}
}
