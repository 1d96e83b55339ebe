# The commands people type. Each installs what it needs, says why, and is at once the second time.
# Tools and the build folder live in ~/.cache/cloister (CLOISTER_CACHE), outside the clone.
SHELL := /bin/bash
export CLOISTER_CACHE ?= $(HOME)/.cache/cloister
export CARGO_TARGET_DIR ?= $(CLOISTER_CACHE)/target
export HTTP WS BLOCK_TIME CLOISTER_HOME VALIDATORS TESTNET_HOME CLOISTER_VECTORS

.DEFAULT_GOAL := help
.PHONY: help run test testnet testnet-stop soak bench-report deny check setup

help: ## this text
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */make \1\t/' | expand -t 22
	@echo
	@echo "settings: HTTP=127.0.0.1:8545 WS=127.0.0.1:8546 BLOCK_TIME=1s (run), VALIDATORS=4 TESTNET_HOME=… (testnet),"
	@echo "          CLOISTER_VECTORS=… public test data (test), CLOISTER_CACHE=… tools and build folder"

run: ## build, start a development chain, send a transfer, a contract and a proof, stay running
	@scripts/run.sh

test: ## every test, with real CometBFT and client suites (about half an hour without the build)
	@scripts/test.sh

testnet: ## four validators with real CometBFT on loopback; stop with make testnet-stop
	@scripts/testnet.sh start

testnet-stop: ## stop the validators of make testnet
	@scripts/testnet.sh stop

soak: ## the full figures: 500 blocks, 1,000 kills, a long chain (hours)
	@CLOISTER_SOAK=1 scripts/test.sh e2e

bench-report: ## every performance figure, for docs/benchmarks.md
	@scripts/bench-report.sh

deny: ## licences, bans and sources of the dependencies
	@scripts/deny.sh

check: ## format, lints, documentation: what CI asks before the tests
	@scripts/setup.sh build
	@cargo fmt --all --check
	@cargo clippy --release --locked --workspace --all-targets --features cloister/fail-points -- -D warnings
	@RUSTDOCFLAGS="-D warnings" cargo doc --release --locked --workspace --no-deps

setup: ## only install what building and running need
	@scripts/setup.sh build cometbft
