# `make` without a target lists the targets.
.DEFAULT_GOAL := help

BIN := .earshot/bin

# The program, the tests, the image and the releases share one set of flags, so that one
# compile of the libraries serves all of them. Without -trimpath a second checkout compiles
# everything again. Without C the image needs no library. Without the tag nomsgpack, Gin
# includes MessagePack, which costs 38 processor seconds and 9 MB. Without tables for debuggers, packages
# compile and link some 15 % faster. For a debugger, run go build or go test without make.
export GOFLAGS += -trimpath -tags=nomsgpack -gcflags=all=-dwarf=false
export CGO_ENABLED := 0

# Each version of a tool is built once and kept for all checkouts of this user.
CACHE := $(if $(filter Darwin,$(shell uname)),$(HOME)/Library/Caches,$(or $(XDG_CACHE_HOME),$(HOME)/.cache))/earshot
GOVERSION := $(shell go env GOVERSION)
tool = $(CACHE)/$(1)-$(shell cat tools/$(1)/go.mod tools/$(1)/go.sum | cksum | cut -d ' ' -f 1)-$(GOVERSION)
GOTESTSUM = $(call tool,test)
LINTERS = $(call tool,lint)
CHARTTOOLS = $(call tool,helm)
OASDIFF = $(call tool,contract)
PROMTOOL = $(call tool,observe)

# Options for the command line, as in make test PKG=./api/... RUN=TestHealth. They are empty
# here, so that variables of the environment have no effect.
PKG = ./...
RUN =
DETACH =
DEMO =
INSTALL =
YES =
name =
ARGS =

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: build ## start Earshot with its own Postgres and Temporal; DETACH=1 returns when it is ready, DEMO=1 adds a realistic demo product, INSTALL=1 installs Postgres without a question
	@$(BIN)/earshot up $(if $(filter 1,$(DETACH)),--detach) $(if $(filter 1,$(DEMO)),--demo) $(if $(filter 1,$(INSTALL)),--install)

down: build ## stop the stack of `make up DETACH=1`
	@$(BIN)/earshot down

reset: build ## delete the data of `make up`; YES=1 skips the question
	@$(BIN)/earshot reset $(if $(filter 1,$(YES)),--yes)

quickstart: ## run the first five minutes of a customer against the stack of `make up`
	@examples/quickstart.sh

build: ## build .earshot/bin/earshot
	@.ci/build $(BIN)/earshot ./cmd/earshot

# With INSTALL=1, withstack installs the tools once, before the tests that need them.
INSTALLED = $(if $(filter 1,$(INSTALL)),-install)

GOTEST = -vet=off -timeout 20m $(if $(RUN),-run '$(RUN)')
# These start first. Otherwise workflows and worker would run side by side at the end, and they keep Temporal busiest.
LONGEST = ./e2e ./workflows ./worker ./api
# All tests of these packages are slow. Without them make test links two binaries fewer.
SLOW = earshot/bench/seeding|earshot/e2e/faults

# Go runs the tests of a package again when its imports change. Tests of built programs and of documents
# depend on all files. This is the checksum of all files (testkit.DependOnSources).
SOURCES = { git ls-files -co --exclude-standard -z || find . -type f -not -path './.earshot/*' -print0; } 2>/dev/null | xargs -0 cksum 2>/dev/null | cksum

# A new file in .earshot itself would change that directory, and tests that look at it would run again each time.
RESULTS := .earshot/results/test.json

# At the end gotestsum repeats the failed tests and their errors. Go doesn't run tests again if
# it has their results for the same sources.
define TESTS
	@mkdir -p $(dir $(RESULTS)) && rm -f $(RESULTS); code=0; EARSHOT_TEST_SOURCES=$$($(SOURCES)) $(BIN)/withstack $(INSTALLED) -without -- "$(GOTESTSUM)/gotestsum" --jsonfile $(RESULTS) --hide-summary skipped \
		--format pkgname --format-hide-empty-pkg -- $(GOTEST) $(1) || code=$$?; \
	test -f $(RESULTS) || exit $$code; echo && echo "The slowest tests:" && "$(GOTESTSUM)/gotestsum" tool slowest --jsonfile $(RESULTS) --num 10 --threshold 100ms; \
	$(BIN)/notrun $(RESULTS); exit $$code
endef
test: withstack gotestsum ## run the tests during development, with their own Postgres and Temporal; PKG=./api/... RUN=TestHealth selects tests, INSTALL=1 installs the tools that they need
	@$(if $(RUN)$(filter-out ./...,$(PKG)),,go test -C sdk/go -vet=off ./...)
	$(call TESTS,-short $(if $(filter ./...,$(PKG)),$(LONGEST) $$(go list ./... | grep -Evx '$(SLOW)'),$(PKG)))

test-all: withstack gotestsum ## run every test once, including the slow ones: kills, browsers, SDKs, endurance
	@$(if $(RUN)$(filter-out ./...,$(PKG)),,go test -C sdk/go -vet=off ./...)
	$(call TESTS,$(if $(filter true,$(CI)),-count=1) $(if $(filter ./...,$(PKG)),$(LONGEST)) $(PKG))

upgrades: withstack ## run the programs from before the last two migrations beside the current one, upgrade under load, test the last and the current SDKs; needs the git history; BASE=commit selects another release
	@EARSHOT_TEST_UPGRADES=1 $(BIN)/withstack -- go test -count=1 -v -run '^TestTheReleaseBefore' ./e2e

# The part of the fuzz targets, or of the packages that goroutines share, that is tested: 0/1 is all.
SHARE ?= 0/1

# The packages that start goroutines, and those that are called by several goroutines. CI runs a sixth of the
# second list each day (SHARE=1/6), because they take long under the detector. The six slowest come first, so
# that each has its own day.
RACE := ./activities/... ./dispatch/... ./internal/batch/... ./internal/delivery/fairness/... ./internal/inflight/... \
	./internal/keyring/... ./internal/send/... ./web/pagecache/... ./webhook/...
RACE_SHARED := ./api/... ./internal/delivery/... ./mcp/... ./internal/feedback/... ./internal/contacts/... ./web/... \
	./internal/publicactions/... ./internal/webhooks/... ./internal/change/... ./internal/privacy/... ./internal/subscribers/... \
	./internal/backfill/... ./internal/widget/... ./internal/ratelimit/... ./internal/page/... ./internal/memory/... \
	./internal/telemetry/... ./worker/... ./internal/access/... ./internal/postgres/... ./internal/migrate/... ./internal/retention/...
race: export CGO_ENABLED := 1
race: export SHARE := $(SHARE)
race: withstack ## look for data races in packages with goroutines; PKG=./workflows/... selects other packages
	@$(BIN)/withstack $(INSTALLED) -- go test -race -short -vet=off $(if $(RUN),-run '$(RUN)') \
		$(if $(filter ./...,$(PKG)),$(RACE) $$(printf '%s\n' $(RACE_SHARED) | awk "(NR - 1) % $${SHARE#*/} == $${SHARE%/*}"),$(PKG))

# go test fuzzes one target at a time. It writes each failing input to testdata/fuzz
# beside the target, which makes it a test case. The limit is a number of tries, not a
# time: at the end of a time go test sometimes reports its own deadline as a failure.
FUZZTIME ?= 30000x
define FUZZ
grep -rEo '^func Fuzz\w+' --include='*_test.go' . | sed -E 's|/[^/]+:func | |' | sort | awk "(NR - 1) % $${SHARE#*/} == $${SHARE%/*}" | while read -r dir target; do
	echo "== $$dir $$target"
	go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10s "$$dir" || exit
done
endef
fuzz: export SHARE := $(SHARE)
fuzz: export FUZZ := $(FUZZ)
fuzz: withstack ## fuzz decoders and cursors; FUZZTIME=30000x is the number of tries for each target, SHARE=0/4 runs the first of every four targets
	@$(BIN)/withstack $(INSTALLED) -- sh -c "$$FUZZ"

bench: ## measure the stack of `make up` under load, and the floor for comparison; ARGS=-help lists the options
	@set -a; . $${EARSHOT_DIR:-.earshot}/dev.env && go run ./bench $(ARGS)

bench-guard: build withstack ## fail if a change, a delivery or an identify has become slower relative to its floor; ARGS=-write accepts the current figures
	@$(BIN)/withstack -- go run ./bench -guard $(ARGS)

bench-new: build withstack ## fail if the third burst of deliveries on a new database is slower than a burst after ANALYZE; ARGS="-n 5000" sets the size of a burst
	@$(BIN)/withstack -- go run ./bench -new $(ARGS)

bench-seed: ## fill the stack of `make up` with data for bench: 1,000,000 contacts, 200,000 posts, 2,000,000 votes; takes a minute
	@set -a; . $${EARSHOT_DIR:-.earshot}/dev.env && go run ./bench/seed $(ARGS)

faults: ## kill every process at random and at each failpoint, and check that nothing is lost; takes 20 minutes; ARGS=-help lists the options
	@go run ./e2e/faults $(ARGS)

# The short form of the faults, on a stack as in production. ARGS come last and override the options.
production: ## start a stack as in production, restart every process under load, then run the short form of faults; takes 3 minutes; ARGS=-keep leaves the stack running
	@go run ./e2e/faults -production -short -run 'quickstart|rolling|commit|attempt|points|random' -events 5000 -kill-every 4s $(ARGS)

needs: withstack ## install the tools that the tests need (Postgres, Node, Chromium, Python packages) with apt-get, on Debian and Ubuntu
	@$(BIN)/withstack -install

browser: withstack ## test public boards, and the widget on another site, in Chromium; INSTALL=1 installs the tools for it
	@$(BIN)/withstack $(INSTALLED) -- env CI=true go test -count=1 -run 'InABrowser' ./e2e

screenshots: build ## take the pictures of docs/images again, from a demo in Chromium; needs Node and Chromium (make needs)
	@e2e/browser/screenshots.sh

lint: linters ## check the format, go vet, golangci-lint, workflowcheck, and prose that is hard to read
	@wrong=$$(gofmt -l */) && test -z "$$wrong" || { echo "make lint: gofmt -w" $$wrong >&2; exit 1; }
	@go vet ./... && go vet -C sdk/go ./...
	@"$(LINTERS)/golangci-lint" run && cd sdk/go && "$(LINTERS)/golangci-lint" run
	@"$(LINTERS)/workflowcheck" -test=false ./workflows
	@go test -C tools/prose ./... >/dev/null && go run -C tools/prose . $(CURDIR)

image: ## build the container image and its SBOM into .earshot/image, without a container engine; ARGS='--arch arm64' selects the architecture
	@go run -C tools/deploy ./image $(ARGS)

deploy-check: build ## check the image and deploy/ against the sources and the settings
	@$(BIN)/earshot settings --json > $(BIN)/settings.json
	@go vet -C tools/deploy ./...
	@SETTINGS=$(CURDIR)/$(BIN)/settings.json go test -C tools/deploy -count=1 ./...

# Go keeps test results until a file of their module changes. This module's tests read files of the repository.
alerts: promtool ## test the alerts, and check that alerts, dashboards and runbook agree
	@"$(PROMTOOL)/promtool" check config deploy/prometheus/prometheus.yml
	@"$(PROMTOOL)/promtool" test rules deploy/prometheus/alerts_test.yml
	@go test -C tools/observe -count=1 ./...

# The vulnerability database: a URL, or a directory with a copy, as in make vulncheck VULNDB=/srv/vulndb.
VULNDB = https://vuln.go.dev
vulncheck: linters ## look for known vulnerabilities in the code that the program reaches, at vuln.go.dev or in a copy: VULNDB=/srv/vulndb
	@# go mod verify also looks for the Go SDK in the module cache, but the SDK is in this repository.
	@wrong=$$(go mod verify 2>&1 | grep -v -e '^all modules verified$$' -e '^go: downloading' -e '^earshot/sdk/go '); \
		test -z "$$wrong" || { echo "$$wrong" >&2; exit 1; }
	@.ci/vulncheck "$(LINTERS)/govulncheck" '$(VULNDB)'

generate: ## write ent/db, api/gen, the SDKs, parts of the docs and the settings of deployments from ent/schema, api/openapi.yaml, internal/config, internal/problem and internal/architecture
	@go generate ./ent
	@go build -C tools/generate -o $(CURDIR)/$(BIN)/oapi-codegen github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen
	@$(BIN)/oapi-codegen -config api/server.cfg.yaml api/openapi.yaml
	@go run ./sdk/generate
	@go run ./docs/generate

# It compares files and not commits, so that it also works before a commit.
SUMS := find ent/db api/gen sdk/go/*.gen.go sdk/typescript/src/generated sdk/python/src/earshot/_generated_*.py sdk/*/CHANGELOG.md docs/operating.md docs/architecture.md docs/api/versioning.md docs/api/errors.md ent/migrations/triggers.md deploy/compose.yaml deploy/helm/earshot/values.schema.json -type f -exec cksum {} + | LC_ALL=C sort -k 3
generate-check: withstack ## fail if `make generate` or `make triggers` changes anything
	@mkdir -p $(BIN) && $(SUMS) > $(BIN)/generated.sums
	@$(MAKE) --no-print-directory generate triggers
	@$(SUMS) | diff $(BIN)/generated.sums - || { \
		echo "make generate-check: the files above were not what make generate and make triggers write. They are now: commit them." >&2; exit 1; }

contract-check: oasdiff ## fail if the contract breaks clients of the last release and api/breaking-changes.txt doesn't allow it, or if api/CHANGELOG.md is out of date; BASE=commit compares with another commit
	@go test -C tools/contract -count=1 ./...
	@.ci/contract breaking "$(OASDIFF)/oasdiff"
	@.ci/contract current "$(OASDIFF)/oasdiff" $(BIN)/changelog

contract-changelog: oasdiff ## write the changes of the contract since the last release into api/CHANGELOG.md and the SDKs
	@.ci/contract changelog "$(OASDIFF)/oasdiff" $(BIN)/changelog
	@go run ./sdk/generate

migration: withstack ## write the next migration from the changes of ent/schema: name=add_something; without a name, check edited migrations
	@$(BIN)/withstack -- go run ./ent/newmigration "$(name)"

# It is no part of `make generate`, which needs no Postgres.
triggers: withstack ## write ent/migrations/triggers.md, the list of all triggers, from the migrations and internal/migrate/authoring/reasons.go
	@$(BIN)/withstack -- go run ./ent/newmigration -triggers

# The appVersion of the packaged chart, which is also the tag of its image.
CHART_VERSION = $(shell git describe --tags --always --dirty=-changed)
CHART := deploy/helm/earshot
# -count=1, because the cache of go test ignores files outside of a module.
chart: charttools ## lint, render and test the Helm chart, and write its package to .earshot/chart
	@"$(CHARTTOOLS)/helm" lint --strict --quiet $(CHART)
	@"$(CHARTTOOLS)/helm" template feedback $(CHART) >/dev/null
	@"$(CHARTTOOLS)/helm-unittest" --strict $(CHART)
	@go test -C tools/helm -count=1 ./...
	@"$(CHARTTOOLS)/helm" package $(CHART) --app-version $(CHART_VERSION) --destination .earshot/chart

clean: ## remove the built programs, but not the cached tools or any data
	@rm -rf $(BIN)

# Builds notrun, too, because a second call of go build would take half a second.
withstack:
	@go build -o $(BIN)/ ./internal/devstack/withstack ./internal/testkit/tier/notrun

# Builds a directory with all tools of a go.mod below tools/. A failed build leaves no directory.
# Promtool contains only the service discovery of our configuration. That of all clouds doubles the time
# of its build, to four minutes.
define BUILT
	@test -d "$(2)" || { echo "building the tools of tools/$(1) into $(2)" >&2; \
		mkdir -p "$(CACHE)" && new=$$(mktemp -d "$(2).XXXXXX"); \
		go build -C tools/$(1) -tags=remove_all_sd,enable_dns_sd -o "$$new/" tool && { test -d "$(2)" || mv "$$new" "$(2)"; }; }
endef
gotestsum:
	$(call BUILT,test,$(GOTESTSUM))

charttools:
	$(call BUILT,helm,$(CHARTTOOLS))

linters:
	$(call BUILT,lint,$(LINTERS))

oasdiff:
	$(call BUILT,contract,$(OASDIFF))
	@go build -C tools/contract -o $(CURDIR)/$(BIN)/ ./changelog

promtool:
	$(call BUILT,observe,$(PROMTOOL))

.PHONY: needs help up down reset quickstart build test test-all upgrades race fuzz bench bench-guard bench-new bench-seed faults production browser screenshots lint alerts image deploy-check chart vulncheck generate generate-check contract-check contract-changelog migration triggers clean withstack gotestsum linters charttools oasdiff promtool
