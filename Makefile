# Bare `make` lists the targets.
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

test: ## run every test, with a Postgres and a Temporal of its own
	@go build -o .earshot/bin/withstack ./internal/devstack/withstack
	@.earshot/bin/withstack -- go test -race ./...
.PHONY: help test
