# Bare `make` lists the targets.
.DEFAULT_GOAL := help

BIN := .earshot/bin

# One set of flags for the program, the tests, the image and the releases, so that one
# compile of the libraries serves all of them. Without -trimpath a second checkout compiles
# everything again, and without C the image needs no library. Gin takes MessagePack in
# unless it is told not to, which is 38 processor seconds and 9 MB.
export GOFLAGS += -trimpath -tags=nomsgpack
export CGO_ENABLED := 0

# Tools are built once for each version and kept for all checkouts of this user.
CACHE := $(if $(filter Darwin,$(shell uname)),$(HOME)/Library/Caches,$(or $(XDG_CACHE_HOME),$(HOME)/.cache))/earshot
GOVERSION := $(shell go env GOVERSION)
tool = $(CACHE)/$(1)-$(shell cat tools/$(1)/go.mod tools/$(1)/go.sum | cksum | cut -d ' ' -f 1)-$(GOVERSION)
GOTESTSUM = $(call tool,test)
LINTERS = $(call tool,lint)
CHARTTOOLS = $(call tool,helm)
OASDIFF = $(call tool,contract)
PROMTOOL = $(call tool,observe)

# Set on the command line, as in make test PKG=./api/... RUN=TestHealth. They are
# emptied here so that a variable of the environment isn't taken for an answer.
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

up: build ## start Earshot with its own Postgres and Temporal; DETACH=1 returns when it answers, DEMO=1 fills it with a realistic product, INSTALL=1 installs Postgres unasked
	@$(BIN)/earshot up $(if $(filter 1,$(DETACH)),--detach) $(if $(filter 1,$(DEMO)),--demo) $(if $(filter 1,$(INSTALL)),--install)

down: build ## stop what `make up DETACH=1` started
	@$(BIN)/earshot down

reset: build ## throw away the data of `make up`; YES=1 doesn't ask
	@$(BIN)/earshot reset $(if $(filter 1,$(YES)),--yes)

quickstart: ## play the first five minutes of a customer against `make up`
	@examples/quickstart.sh

build: ## build .earshot/bin/earshot
	@.ci/build $(BIN)/earshot ./cmd/earshot

# What was asked for is asked for once: withstack installs it, and the tests find it.
INSTALLED = $(if $(filter 1,$(INSTALL)),-install)

# Alone, a package waits for its own timers; so more tests run at once than there are cores.
GOTEST = -vet=off -timeout 20m $(if $(RUN),-run '$(RUN)') $(PKG)

# Go runs a package again when its imports change. Tests of built programs and of documents depend on
# more: on all files, of which this is the sum (testkit.DependOnSources).
SOURCES = { git ls-files -co --exclude-standard -z || find . -type f -not -path './.earshot/*' -print0; } 2>/dev/null | xargs -0 cksum 2>/dev/null | cksum

# gotestsum says again at the end what failed, and why. What Go knows of an earlier run with
# the same sources isn't run again.
define TESTS
	@mkdir -p $(BIN) && go build -o $(BIN)/notrun ./internal/testkit/tier/notrun
	@rm -f .earshot/test.json; code=0; EARSHOT_TEST_SOURCES=$$($(SOURCES)) $(BIN)/withstack $(INSTALLED) -without -- "$(GOTESTSUM)/gotestsum" --jsonfile .earshot/test.json --hide-summary skipped \
		--format pkgname --format-hide-empty-pkg -- $(1) $(GOTEST) || code=$$?; \
	test -f .earshot/test.json || exit $$code; echo && echo "The slowest tests:" && "$(GOTESTSUM)/gotestsum" tool slowest --jsonfile .earshot/test.json --num 10 --threshold 100ms; \
	$(BIN)/notrun .earshot/test.json; exit $$code
endef
test: withstack gotestsum ## run the tests while you work, beside a Postgres and a Temporal of their own; PKG=./api/... RUN=TestHealth for some, INSTALL=1 installs the tools that they need
	@$(if $(RUN)$(filter-out ./...,$(PKG)),,go test -C sdk/go -vet=off ./...)
	$(call TESTS,-short)

test-all: withstack gotestsum ## run every test once, the slow ones too: kills, browsers, SDKs, endurance
	@$(if $(RUN)$(filter-out ./...,$(PKG)),,go test -C sdk/go -vet=off ./...)
	$(call TESTS,$(if $(filter true,$(CI)),-count=1))

upgrades: withstack ## run the programs of before the last two migrations beside today's, upgrade under load, and try the SDKs of the last release and of today; needs the history; BASE=commit names another release of the SDKs
	@EARSHOT_TEST_UPGRADES=1 $(BIN)/withstack -- go test -count=1 -v -run '^TestTheReleaseBefore' ./e2e

# The packages that have goroutines of their own or are called by several.
RACE := ./activities/... ./api/... ./dispatch/... ./internal/access/... ./internal/batch/... ./internal/fairness/... ./internal/inflight/... ./internal/keyring/... ./internal/send/... ./internal/store/... ./mcp/... ./web/pagecache/... ./webhook/... ./worker/...
race: export CGO_ENABLED := 1
race: withstack ## look for data races in what has goroutines of its own; PKG=./workflows/... for others
	@$(BIN)/withstack $(INSTALLED) -- go test -race -short -vet=off $(if $(RUN),-run '$(RUN)') $(if $(filter ./...,$(PKG)),$(RACE),$(PKG))

# go test fuzzes one target at a time. What breaks one is kept in testdata/fuzz
# beside it, and is a test case from then on.
# A number of tries and not a time: at the end of a time go test sometimes reports its
# own deadline as a failure.
FUZZTIME ?= 30000x
SHARE ?= 0/1
define FUZZ
grep -rEo '^func Fuzz\w+' --include='*_test.go' . | sed -E 's|/[^/]+:func | |' | sort | awk "(NR - 1) % $${SHARE#*/} == $${SHARE%/*}" | while read -r dir target; do
	echo "== $$dir $$target"
	go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10s "$$dir" || exit
done
endef
fuzz: export SHARE := $(SHARE)
fuzz: export FUZZ := $(FUZZ)
fuzz: withstack ## look for what breaks a decoder or a cursor, FUZZTIME=30000x tries for each target; SHARE=0/4 takes the first of each four targets
	@$(BIN)/withstack $(INSTALLED) -- sh -c "$$FUZZ"

bench: ## measure the stack of `make up` under load, beside its floor; ARGS=-help lists the options
	@set -a; . $${EARSHOT_DIR:-.earshot}/dev.env && go run ./bench $(ARGS)

bench-guard: build withstack ## fail if a change, a delivery or an identify has become slower beside its floor; ARGS=-write commits to what it is now
	@$(BIN)/withstack -- go run ./bench -guard $(ARGS)

bench-new: build withstack ## fail if the third burst of deliveries on a new database is slower than after ANALYZE; ARGS="-n 5000" is the size of a burst
	@$(BIN)/withstack -- go run ./bench -new $(ARGS)

bench-seed: ## fill the stack of `make up` with what bench reads: 1,000,000 contacts, 200,000 posts, 2,000,000 votes; takes a minute
	@set -a; . $${EARSHOT_DIR:-.earshot}/dev.env && go run ./bench/seed $(ARGS)

faults: ## kill everything at random and at each failpoint, and prove that nothing is lost; 20 minutes; ARGS=-help lists the options
	@go run ./e2e/faults $(ARGS)

# The short form of the faults, on a stack as it runs in production. What is given last wins.
production: ## start it as in production, restart every process under load, then the short form of faults; 3 minutes; ARGS=-keep leaves it running
	@go run ./e2e/faults -production -short -run 'quickstart|rolling|commit|attempt|points|random' -events 5000 -kill-every 4s $(ARGS)

needs: withstack ## install the tools that tests need: Postgres, Node, Chromium, Python packages; with apt-get, on Debian and Ubuntu
	@$(BIN)/withstack -install

browser: withstack ## play public boards, and the widget on another site, in Chromium; INSTALL=1 installs what that needs
	@$(BIN)/withstack $(INSTALLED) -- env CI=true go test -count=1 -run 'InABrowser' ./e2e

lint: linters ## gofmt, go vet, golangci-lint, workflowcheck
	@wrong=$$(gofmt -l */) && test -z "$$wrong" || { echo "make lint: gofmt -w" $$wrong >&2; exit 1; }
	@go vet ./... && go vet -C sdk/go ./...
	@"$(LINTERS)/golangci-lint" run && cd sdk/go && "$(LINTERS)/golangci-lint" run
	@"$(LINTERS)/workflowcheck" -test=false ./workflows

image: ## build the container image without an engine, with its SBOM, into .earshot/image; ARGS='--arch arm64'
	@go run -C tools/deploy ./image $(ARGS)

deploy-check: build ## hold the image and deploy/ against the sources and the table of settings
	@$(BIN)/earshot settings --json > $(BIN)/settings.json
	@go vet -C tools/deploy ./...
	@SETTINGS=$(CURDIR)/$(BIN)/settings.json go test -C tools/deploy ./...

alerts: promtool ## try the alerts, and hold them, the dashboards and the runbook against each other
	@"$(PROMTOOL)/promtool" check config deploy/prometheus/prometheus.yml
	@"$(PROMTOOL)/promtool" test rules deploy/prometheus/alerts_test.yml
	@go test -C tools/observe ./...

# A copy of the database, or another place that has it: make vulncheck VULNDB=/srv/vulndb
VULNDB = https://vuln.go.dev
vulncheck: linters ## look for known vulnerabilities in the code that the program reaches; asks vuln.go.dev, or a copy in VULNDB=/srv/vulndb
	@# The Go SDK is of this repository and not of the module cache, where go mod verify looks for it, too.
	@wrong=$$(go mod verify 2>&1 | grep -v -e '^all modules verified$$' -e '^go: downloading' -e '^earshot/sdk/go '); \
		test -z "$$wrong" || { echo "$$wrong" >&2; exit 1; }
	@.ci/vulncheck "$(LINTERS)/govulncheck" '$(VULNDB)'

generate: ## write ent/db, api/gen and the SDKs anew, from ent/schema and api/openapi.yaml
	@go generate ./ent
	@go build -C tools/generate -o $(CURDIR)/$(BIN)/oapi-codegen github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen
	@$(BIN)/oapi-codegen -config api/server.cfg.yaml api/openapi.yaml
	@go run ./sdk/generate

# Compares files and not commits, so that it answers before a commit too.
SUMS := find ent/db api/gen sdk/go/*.gen.go sdk/typescript/src/generated sdk/python/src/earshot/_generated_*.py sdk/*/CHANGELOG.md -type f -exec cksum {} + | LC_ALL=C sort -k 3
generate-check: ## fail if `make generate` changes anything
	@mkdir -p $(BIN) && $(SUMS) > $(BIN)/generated.sums
	@$(MAKE) --no-print-directory generate
	@$(SUMS) | diff $(BIN)/generated.sums - || { \
		echo "make generate-check: the files above were not what make generate writes. They are now: commit them." >&2; exit 1; }

contract-check: oasdiff ## fail if the contract breaks clients of the last release, but for what api/breaking-changes.txt names, or if api/CHANGELOG.md doesn't tell the differences; BASE=commit compares with another state
	@go test -C tools/contract -count=1 ./...
	@.ci/contract breaking "$(OASDIFF)/oasdiff"
	@.ci/contract current "$(OASDIFF)/oasdiff" $(BIN)/changelog

contract-changelog: oasdiff ## write what is different in the contract since the last release into api/CHANGELOG.md and the SDKs
	@.ci/contract changelog "$(OASDIFF)/oasdiff" $(BIN)/changelog
	@go run ./sdk/generate

migration: withstack ## write the next migration from what changed in ent/schema: name=add_something; without a name, check those that are edited
	@$(BIN)/withstack -- go run ./ent/newmigration "$(name)"

# What the chart's appVersion is, and the tag of its image, in the package.
CHART_VERSION = $(shell git describe --tags --always --dirty=-changed)
CHART := deploy/helm/earshot
# -count=1, because go test remembers no files outside of a module.
chart: charttools ## lint, render and test the Helm chart, and package it into .earshot/chart
	@"$(CHARTTOOLS)/helm" lint --strict --quiet $(CHART)
	@"$(CHARTTOOLS)/helm" template feedback $(CHART) >/dev/null
	@"$(CHARTTOOLS)/helm-unittest" --strict $(CHART)
	@go test -C tools/helm -count=1 ./...
	@"$(CHARTTOOLS)/helm" package $(CHART) --app-version $(CHART_VERSION) --destination .earshot/chart

clean: ## remove what was built, but not the tools of the cache, nor any data
	@rm -rf $(BIN)

withstack:
	@go build -o $(BIN)/withstack ./internal/devstack/withstack

# A directory with all tools of a go.mod below tools/, or none.
define BUILT
	@test -d "$(2)" || { echo "building the tools of tools/$(1) into $(2)" >&2; \
		mkdir -p "$(CACHE)" && new=$$(mktemp -d "$(2).XXXXXX"); \
		go build -C tools/$(1) -o "$$new/" tool && { test -d "$(2)" || mv "$$new" "$(2)"; }; }
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

.PHONY: needs help up down reset quickstart build test test-all upgrades race fuzz bench bench-guard bench-new bench-seed faults production lint alerts image deploy-check chart vulncheck generate generate-check contract-check contract-changelog migration clean withstack gotestsum linters charttools oasdiff promtool
