package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// proofs say, for the examples of each page by language, how many there are and which test runs them.
var proofs = map[string]struct {
	blocks int
	test   string // of a file, from the top of the house; or, after a hyphen, why none runs them
}{
	"docs/authentication.md sh":             {1, "handlers/api/typed_docs_test.go TestTheCommandsOfTheGuidesCanBeTyped"},
	"docs/quickstart.md sh":                 {7, "docs/snippets_test.go TestTheQuickstartIsTheWalkOfTheREADME"},
	"README.md sh":                          {7, "web/e2e/readme_test.go TestTheQuickStartOfTheREADMEEndsWithAVerifiedWebhook"},
	"docs/cli.md sh":                        {3, "web/cli_page_test.go TestTheCommandsOfThePageAreOnesThatThereAre"},
	"docs/cli.md go":                        {1, "docs/verify_test.go TestTheExampleOfTheSDKCompiles"},
	"docs/errors.md http":                   {28, "handlers/api/errors_page_test.go TestTheExamplesOfErrorsGetTheirCodes"},
	"docs/errors.md json":                   {1, "handlers/errors_test.go TestTheExampleOfARefusalIsOne"},
	"docs/feeds.md sh":                      {1, "web/cli_page_test.go TestTheCommandsOfThePageAreOnesThatThereAre"},
	"docs/feeds.md http":                    {2, "handlers/api/feeds_test.go TestTheExamplesOfTheFeedsPageWork"},
	"docs/feeds.md json":                    {1, "handlers/api/feeds_test.go TestTheExamplesOfTheFeedsPageWork"},
	"docs/kafka.md sh":                      {1, "web/cli_page_test.go TestTheCommandsOfThePageAreOnesThatThereAre"},
	"docs/kafka.md json":                    {1, "handlers/api/endpoint_kafka_test.go TestTheExampleOfTheKafkaPageMakesAnEndpoint"},
	"docs/rabbitmq.md sh":                   {1, "web/cli_page_test.go TestTheCommandsOfThePageAreOnesThatThereAre"},
	"docs/rabbitmq.md json":                 {1, "handlers/api/endpoint_rabbitmq_test.go TestTheExampleOfTheRabbitMQPageMakesAnEndpoint"},
	"docs/sqs.md sh":                        {2, "web/cli_page_test.go TestTheCommandsOfThePageAreOnesThatThereAre"},
	"docs/s3.md sh":                         {2, "web/cli_page_test.go TestTheCommandsOfThePageAreOnesThatThereAre"},
	"docs/s3.md json":                       {2, "handlers/api/endpoint_s3_test.go TestTheExampleOfTheS3PageMakesAnEndpoint"},
	"docs/sqs.md json":                      {1, "handlers/api/endpoint_sqs_test.go TestTheExampleOfTheSQSPageMakesAnEndpoint"},
	"docs/kafka.md go":                      {1, "docs/snippets_test.go TestTheConsumerOfTheKafkaPageIsTheExamples"},
	"docs/receiver-auth.md sh":              {3, "web/cli_page_test.go TestTheCommandsOfThePageAreOnesThatThereAre"},
	"docs/receiver-auth.md json":            {4, "handlers/api/endpoint_auth_test.go TestTheExamplesOfThePageAuthenticateAnEndpoint"},
	"docs/mcp.md json":                      {1, "web/cli/mcp_events_test.go TestTheExamplesOfTheMCPPageWork"},
	"docs/mcp.md http":                      {2, "web/cli/mcp_events_test.go TestTheExamplesOfTheMCPPageWork"},
	"docs/mtls.md sh":                       {3, "web/cli_page_test.go TestTheCommandsOfThePageAreOnesThatThereAre"},
	"docs/mtls.md json":                     {1, "- the shape of a change, with a certificate and a key of one's own; TestNobodySeesWhatAnEndpointAuthenticatesWith sends one"},
	"docs/migrate.md json":                  {1, "web/import_test.go TestTheExampleOfTheMigrationPageCanBeBroughtIn"},
	"docs/migrate.md python":                {1, "- two lines of a product's own code; TestAReceiverSeesOneIDFromSvixAndFromPosthorn makes these calls"},
	"docs/migrate.md sh":                    {1, "handlers/api/typed_docs_test.go TestTheCommandsOfTheGuidesCanBeTyped"},
	"docs/outbox.md sh":                     {1, "handlers/api/typed_docs_test.go TestTheCommandsOfTheGuidesCanBeTyped"},
	"docs/outbox.md sql":                    {3, "db/queue/outbox_page_test.go TestTheStatementsOfTheOutboxPageRun"},
	"docs/portal.md sh":                     {2, "web/portal_page_test.go TestTheSnippetsOfThePortalPageGiveLinks"},
	"docs/portal.md go":                     {1, "web/portal_page_test.go TestTheSnippetsOfThePortalPageGiveLinks"},
	"docs/portal.md js":                     {2, "web/portal_page_test.go TestTheSnippetsOfThePortalPageGiveLinks"},
	"docs/portal.md python":                 {1, "web/portal_page_test.go TestTheSnippetsOfThePortalPageGiveLinks"},
	"docs/portal.md html":                   {2, "web/e2e/portal_test.go TestThePortalsComponentRenewsItself"},
	"docs/program.md go":                    {1, "web/program_example_test.go TestASecondProgramWrittenFromTheDocsEmitsListsReplaysAndVerifies"},
	"docs/program.md python":                {1, "web/program_example_test.go TestASecondProgramWrittenFromTheDocsEmitsListsReplaysAndVerifies"},
	"docs/program.md js":                    {1, "web/program_example_test.go TestASecondProgramWrittenFromTheDocsEmitsListsReplaysAndVerifies"},
	"docs/replay.md sh":                     {11, "handlers/api/replay_guide_test.go TestTheRecoveryGuideCanBeTyped"},
	"docs/svix.md go":                       {1, "- a line of a product's own code; web/e2e/svix_test.go makes such clients"},
	"docs/verify.md go":                     {6, "docs/verify_test.go TestTheGoExamplesVerify"},
	"docs/verify.md js":                     {6, "docs/verify_test.go TestTheNodeExamplesVerify"},
	"docs/verify.md python":                 {6, "docs/verify_test.go TestThePythonExamplesVerify"},
	"docs/performance.md text":              {1, "tools/bench/peers_test.go TestAPeerIsNamedWithItsAddressKeyAndProcesses"},
	"docs/performance.md sh":                {2, "- it measures for an hour, or products that run elsewhere"},
	"docs/status.md json":                   {1, "- the shape of an answer, whose fields are words about this platform"},
	"docs/filters.md json":                  {1, "docs/filters_test.go TestTheFiltersOfThePageCanBeUsed"},
	"docs/transformations.md json":          {1, "docs/transformations_test.go TestTheTransformationsOfThePageCanBeUsed"},
	"docs/batches.md json":                  {3, "docs/batches_test.go TestTheExamplesOfTheBatchesPageAreWhatIsReadAndSent"},
	"docs/transformations.md cel":           {1, "docs/transformations_test.go TestTheTransformationsOfThePageCanBeUsed"},
	"docs/alerts.md json":                   {2, "- the shape of an alert, whose fields domain/notice/alert_test.go TestEveryKindMakesAWholeAlertThatIsAskedForByName checks"},
	"docs/ops/cnpg-cluster.yaml whole":      {1, "tools/chart/cnpg_test.go TestTheClusterOfCloudNativePGIsOneThatItsOperatorAccepts"},
	"docs/ops/cnpg-values.yaml whole":       {1, "tools/chart/cnpg_test.go TestTheChartTakesTheDatabaseOfCloudNativePG"},
	"docs/ops/ha.md sh":                     {2, "- addresses of an installation; web/e2e/ha_linux_test.go names such servers, and tools/chart/cnpg_test.go renders the files"},
	"docs/ops/scale.md sh":                  {4, "- addresses of an installation, as on the pages that each step links to"},
	"docs/ops/patroni.yml whole":            {1, "web/e2e/ha_linux_test.go TestAManagedClusterLosesNothing"},
	"docs/ops/haproxy-postgresql.cfg whole": {1, "web/e2e/ha_linux_test.go TestAManagedClusterLosesNothing"},
	"docs/sources.md sh":                    {2, "web/cli_page_test.go TestTheCommandsOfThePageAreOnesThatThereAre"},
	"docs/sources.md cel":                   {1, "docs/sources_test.go TestTheMappingsOfThePageCanBeUsed"},
	"docs/filters.md cel":                   {1, "docs/filters_test.go TestTheFiltersOfThePageCanBeUsed"},

	"docs/declarative.md sh":                 {1, "web/cli_page_test.go TestTheCommandsOfThePageAreOnesThatThereAre"},
	"docs/declarative.md yaml":               {1, "web/cli/apply/decode_test.go TestTheFileOfThePageIsRead"},
	"docs/ops/backup.md sh":                  {2, "web/e2e/restore_test.go TestABackupIsRestoredOnAnotherServerAsThePageSays"},
	"docs/ops/console.md sh":                 {1, "web/ops_page_test.go TestTheCommandsOfTheOperationsPagesCanBeTyped"},
	"docs/ops/deploy.md sh":                  {2, "web/ops_page_test.go TestTheCommandsOfTheOperationsPagesCanBeTyped"},
	"docs/ops/deploy.md sql":                 {1, "web/owner_test.go TestASchemaOfAnotherRoleIsNamedAndTransferredAsThePageSays"},
	"docs/ops/deploy.md ini":                 {1, "web/e2e/pooler_test.go TestEverythingWorksBehindAPooler"},
	"docs/ops/deploy.md nginx":               {1, "web/ops_page_test.go TestTheProxyOfThePagePassesOnWhatPosthornNeeds"},
	"docs/ops/egress.md sh":                  {1, "web/ops_page_test.go TestTheCommandsOfTheOperationsPagesCanBeTyped"},
	"docs/ops/history.md text":               {1, "worker/history_readers_test.go TestOtherProgramsReadStoredHistory"},
	"docs/ops/history.md sh":                 {1, "web/history_test.go TestTheSettingsOfTheHistoryPageAreTaken"},
	"docs/ops/homes.md sh":                   {2, "web/homes_test.go TestTheSettingsOfTheHomesPageAreTaken"},
	"docs/ops/homes.md haproxy":              {1, "web/homes_proxies_test.go TestOneHostNameLeadsToTheHomeOfTheKey"},
	"docs/ops/homes.md nginx":                {1, "web/homes_proxies_test.go TestOneHostNameLeadsToTheHomeOfTheKey"},
	"docs/ops/keys.md sh":                    {2, "web/ops_page_test.go TestTheCommandsOfTheOperationsPagesCanBeTyped"},
	"docs/ops/monitoring.md yaml":            {1, "- the configuration of a Prometheus server, with addresses of an installation"},
	"docs/ops/upgrade.md sh":                 {1, "web/ops_page_test.go TestTheCommandsOfTheOperationsPagesCanBeTyped"},
	"docs/ops/alerts.yml whole":              {1, "web/ops_test.go TestEveryAlertSaysWhatToDo"},
	"docs/ops/grafana.json whole":            {1, "web/ops_test.go TestOperationsNameMetricsThatExist"},
	"docs/ops/posthorn-web.service whole":    {1, "web/ops_page_test.go TestTheUnitsAreOnesThatSystemdTakes"},
	"docs/ops/posthorn-worker.service whole": {1, "web/ops_page_test.go TestTheUnitsAreOnesThatSystemdTakes"},
	"docs/ops/chart whole":                   {1, "tools/chart/main_test.go TestEveryValueGivesObjectsThatKubernetesKnows"},
	"docs/ops/compose.yaml whole":            {1, "web/ops_files_test.go TestTheComposeFileNamesWhatThereIs"},
	// its server is made by it
	"docs/ops/postgres-init.sh whole": {1, "web/e2e/pooler_test.go TestEverythingWorksBehindAPooler"},
}

// TestEveryExampleIsRunByATest counts the examples of the pages, and the files of ops/ that are no pages. Who adds
// one says here which test runs it, or why none does.
func TestEveryExampleIsRunByATest(t *testing.T) {
	t.Parallel()
	fence := regexp.MustCompile("(?m)^ *```([a-z]+)")
	counts := map[string]int{}
	for _, pattern := range []string{"../README.md", "*.md", "adr/*.md", "ops/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name := strings.TrimPrefix(filepath.ToSlash(filepath.Join("docs", file)), "/")
			if !strings.HasSuffix(name, ".md") {
				counts[name+" whole"]++
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
				counts[name+" "+m[1]]++
			}
		}
	}
	for what, n := range counts {
		if proofs[what].blocks != n {
			t.Errorf("%s: %d examples, %d of them are known to be run by a test", what, n, proofs[what].blocks)
		}
	}
	for what, p := range proofs {
		if counts[what] == 0 {
			t.Errorf("%s: there is no such example any more", what)
		}
		if strings.HasPrefix(p.test, "- ") {
			continue
		}
		file, name, _ := strings.Cut(p.test, " ")
		text, err := os.ReadFile(filepath.Join("..", file))
		if err != nil || !strings.Contains(string(text), "func "+name+"(t *testing.T)") {
			t.Errorf("%s: there is no %s: %v", what, p.test, err)
		}
	}
}

func TestTheConsumerOfTheKafkaPageIsTheExamples(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("examples/kafka/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if shown := snippetsOf(t, "kafka.md", "go", false); !strings.Contains(string(program), strings.TrimSpace(shown)) {
		t.Errorf("the example holds no\n%s", shown)
	}
}

// The quickstart of the site and README.md are the same walk, which an end-to-end test types.
func TestTheQuickstartIsTheWalkOfTheREADME(t *testing.T) {
	t.Parallel()
	blocks := func(file string) []string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile("(?s)\n```[a-z]*\n.*?\n```\n").FindAllString(string(text), -1)
	}
	readme := strings.Join(blocks("../README.md"), "")
	for _, block := range blocks("quickstart.md") {
		if !strings.Contains(readme, block) {
			t.Errorf("README.md does not have this block of the quickstart:%s", block)
		}
	}
}
