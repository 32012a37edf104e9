# Posthorn's tasks. `make run` and `make test` are all that a newcomer needs, `make check` is the
# quick one before a commit; `make help` lists the rest.
#
# The tools (sqlc, templ, oapi-codegen, gofumpt, govulncheck, golangci-lint) are pinned in modules of their own under
# tools/, so that their dependencies stay out of the product's. Go builds them on first use and caches them.

GO       ?= go
TOOL     := $(GO) tool -modfile=tools/tools.mod
LINT     := $(GO) tool -modfile=tools/golangci-lint.mod golangci-lint
TAGS     := nomsgpack
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# The race detector needs a C compiler; a machine without one still runs every test, and says what it left out.
HAVE_CC  := $(shell command -v $${CC:-cc} 2>/dev/null || command -v gcc 2>/dev/null || command -v clang 2>/dev/null)
RACE     := $(if $(HAVE_CC),-race,)
TESTFLAGS ?=
E2E      ?= ./web/e2e/... ./tools/look/... ./views/emails

.DEFAULT_GOAL := help
.PHONY: help run demo build check test generate module verify format lint vuln bench peers e2e ha ha-tools homes fuzz soak sdks image chart release release-check clean FORCE

help: ## list the tasks
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Deliveries never go to private addresses, save those that are opened by name: in development the example receiver.
run: export POSTHORN_EGRESS_ALLOW ?= 127.0.0.1:9000
run: build bin/receiver ## build and serve on http://127.0.0.1:8080 with a private PostgreSQL
	bin/posthorn serve

demo: export POSTHORN_EGRESS_ALLOW ?= 127.0.0.1:9000
demo: build ## the same with a demo tenant: receivers on 127.0.0.1:9100 (POSTHORN_DEMO_ADDR), and events that keep coming
	bin/posthorn serve --demo

build: bin/posthorn ## build bin/posthorn, static and stripped

bin/versitygw: tools/s3.mod ## build an S3 server for tests, which are skipped without it
	$(GO) build -modfile=tools/s3.mod -o bin/versitygw github.com/versity/versitygw/cmd/versitygw

bin/readers: ## install DuckDB and PyIceberg for the tests of stored history, which are skipped without them
	python3 -m venv --clear bin/readers-part
	bin/readers-part/bin/pip install -q duckdb==2.0.1 pyarrow==26.0.1 pyiceberg==0.12.0
	mv bin/readers-part bin/readers

# Its scripts name the first folder of the virtual environment; only its Python is used.
bin/spark: ## install Spark with Iceberg (500 MB; Java, Maven) for the test of stored history, which is skipped without it
	python3 -m venv --clear bin/spark-part
	bin/spark-part/bin/pip install -q pyspark==4.0.1
	mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -DoutputDirectory=$(CURDIR)/bin/spark-part/jars \
	  -Dartifact=org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0
	mv bin/spark-part bin/spark

# Go decides what is stale, not make. CGO off: the C resolver would read 0x7f.1 as 127.0.0.1 (SECURITY: egress).
bin/posthorn: FORCE
	@[ -e $@ ] || echo 'Building Posthorn. The first build compiles about 700 packages: about two minutes on two cores. Later ones take seconds.'
	@CGO_ENABLED=0 tools/progress 690 $(GO) build -v -trimpath -tags '$(TAGS)' -ldflags '-s -w -X main.version=$(VERSION)' -o $@ ./web

# The receiver of README.md, so that nothing is compiled between its lines.
bin/receiver: FORCE
	@$(GO) build -trimpath -o $@ ./docs/examples/receiver

check: ## format, vet, import rules and the tests of what changed, within two minutes
	@GO='$(GO)' tools/check

# The longest package first. Linking without what only a debugger reads takes a third of the time; -trimpath lets another
# clone use what this one compiled. The garbage collector runs less often than it would in a server.
test: export GOGC ?= 400
test: ## all tests, with the race detector, on a PostgreSQL that they bring up themselves
	@$(if $(HAVE_CC),:,echo 'no C compiler found: running without the race detector')
	cd client && $(GO) test $(RACE) -trimpath -timeout 5m $(TESTFLAGS) ./...
	$(GO) test $(RACE) -trimpath -ldflags '-s -w' -timeout 20m $(TESTFLAGS) ./web ./...

# These tests drive bin/posthorn from outside, so the race detector would see nothing of it. With the flags of the build,
# all packages that it compiled are used again.
e2e: build ## tests that start, kill and restart real processes, and use the dashboard in a browser (Debian: chromium-headless-shell)
	POSTHORN_BIN=$(CURDIR)/bin/posthorn CGO_ENABLED=0 $(GO) test -trimpath -count=1 -timeout 60m -tags '$(TAGS) e2e' $(TESTFLAGS) $(E2E)

# Patroni from its published package, for the system's Python: its servers run as another user, who must reach them.
ha-tools: ## bring Patroni into bin/ha, for the tests of a managed cluster (python3-venv)
	@[ -d bin/ha ] || { python=$$([ -x /usr/bin/python3 ] && echo /usr/bin/python3 || command -v python3); \
	  $$python -m venv bin/ha-venv && bin/ha-venv/bin/pip install -q --target bin/ha-part 'patroni[etcd3]==4.1.5' 'psycopg[binary]' && \
	  rm -rf bin/ha-venv && mv bin/ha-part bin/ha; }

ha: build ha-tools ## a cluster that Patroni manages, and each fault of it, three times (docs/ops/ha.md; root, etcd, haproxy)
	POSTHORN_E2E_FAULTS=all POSTHORN_BIN=$(CURDIR)/bin/posthorn CGO_ENABLED=0 $(GO) test -trimpath -count=3 -timeout 60m -tags '$(TAGS) e2e' -v -run 'TestAManagedClusterLosesNothing' $(TESTFLAGS) ./web/e2e

homes: build ## the suite of homes, three times: two homes, their processes and moves between them (docs/ops/homes.md)
	POSTHORN_MOVE_BATCHES=100 $(GO) test -count=3 -timeout 20m -run 'Home|AMove|MovesThatAre|TenantMoves|HaveMoved|WaitsForAMove|LinksWork|MembersChoice|Vouches|ReplicaIdentity' $(TESTFLAGS) ./domain/home ./db/move ./web
	POSTHORN_BIN=$(CURDIR)/bin/posthorn $(GO) test -count=3 -timeout 20m -tags soak -v -run 'TestATenantMovesThroughKills|TestABrokenOffMoveIsToldAndEnds|TestAMoveSurvivesItsDatabaseServers' $(TESTFLAGS) ./web/e2e
	POSTHORN_BIN=$(CURDIR)/bin/posthorn $(GO) test -count=1 -timeout 20m -tags e2e -v -run 'TestWhatForwardingCosts' $(TESTFLAGS) ./web/e2e

fuzz: ## requests made out of the API's contract, most of them wrong, for longer than the tests send them; FUZZ=10m
	POSTHORN_FUZZ=$(or $(FUZZ),10m) $(GO) test $(RACE) -count=1 -timeout 0 -v -run '^TestNoRequestMakesTheServerFail$$' $(TESTFLAGS) ./handlers/api

soak: build ## the same under faults for hours, and its totals; SOAK=2h
	POSTHORN_BIN=$(CURDIR)/bin/posthorn POSTHORN_SOAK=$(or $(SOAK),1h) CGO_ENABLED=0 $(GO) test -trimpath -count=1 -timeout 0 -v -tags '$(TAGS) soak' $(TESTFLAGS) ./web/e2e/...

bench: build ## the table of docs/performance.md; BENCH='-only one-to-one -n 1' for a part of it
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/bench ./tools/bench
	bin/bench $(BENCH)

peers: ## the same load against products that run already (docs/performance.md); PEERS=peers.txt
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/bench ./tools/bench
	bin/bench peers -file '$(PEERS)'

# Each oapi-codegen*.yaml names an output beside itself; all read the one contract.
generate: ## sqlc, templ, OpenAPI, and what the SDK for Go shares with the server
	tools/sdk-go
	@if [ -f sqlc.yaml ]; then set -x; $(TOOL) sqlc generate; fi
	@if [ -n "$$(find . -name '*.templ' -not -path './.*' -print -quit)" ]; then set -x; $(TOOL) templ generate -log-level warn; fi
	@for config in $(wildcard handlers/api/oapi-codegen*.yaml client/oapi-codegen*.yaml); do \
	  out=$$(dirname $$config)/$$(basename "$$(sed -n 's/^output: *//p' $$config)"); \
	  (set -x; $(TOOL) oapi-codegen -config $$config -o $$out handlers/api/openapi.yaml) || exit 1; done

module: ## name the modules, so that they can be published: make module MODULE=example.com/you/posthorn
	@GO='$(GO)' tools/module '$(MODULE)'

verify: ## fail where generated code, formatting or modules are not what a fresh checkout would give
	GO='$(GO)' tools/verify

format: ## gofumpt over everything written by hand
	$(TOOL) gofumpt -l -w .

lint: ## golangci-lint
	$(LINT) run ./...
	cd client && $(GO) tool -modfile=../tools/golangci-lint.mod golangci-lint run -c ../.golangci.yaml ./...

sdks: ## the SDKs for TypeScript and Python, generated, tested and packed into bin/sdks (Node and Python)
	@tools/sdks

image: ## the container image for linux/amd64 and linux/arm64 into bin/image, reproducible, with Go alone
	@GO='$(GO)' VERSION='$(VERSION)' tools/container

chart: ## the Helm chart, tested against the types of the Kubernetes API and packed into bin/chart
	cd tools/chart && $(GO) test $(if $(CI),-v) . && $(GO) run . -chart ../../docs/ops/chart -out ../../bin/chart -version '$(VERSION)'

release: ## the files of a release into bin/release, the version from the tag: archives, image, chart, SDKs, SBOM, checksums
	@GO='$(GO)' tools/make-release

release-check: ## tests the tool that makes a release, with a small program
	cd tools/release && $(GO) vet . && $(GO) test $(if $(CI),-v) .

vuln: ## known vulnerabilities in what is really called (asks vuln.go.dev)
	$(TOOL) govulncheck -tags '$(TAGS)' ./...

clean: ## remove what the build made (the data directory stays)
	rm -rf bin coverage.out
