# A thin front: Meson builds (tools/build knows the variants), tools/ does the rest.

LISTEN ?= 127.0.0.1:8080
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
SIM_SEEDS ?= 100
SIM_HOURS ?= 1
SIM_SCENARIO ?= all
export PREFIX V

.DEFAULT_GOAL := build
SUITES := rules alerts unit fault fuzz e2e e2e-quick tsan

.PHONY: build
build: ## build the release into build/rollcall (V=1 shows the commands' output)
	@tools/install-deps build
	@tools/step build/build.log "building build/rollcall" tools/build release

.PHONY: run
run: build ## build and serve in dev mode (LISTEN=127.0.0.1:8080)
	@exec build/rollcall serve --dev --listen $(LISTEN)

# Whatever stops the tests from running is a failure, and is counted as one.
.PHONY: test
test: ## run every test; ends with "N passed, N failed"
	@tools/install-deps test fuzz || { echo "0 passed, 1 failed"; exit 1; }
	@tools/run-tests

.PHONY: $(SUITES:%=test-%)
$(SUITES:%=test-%): test-%: ## run one suite: rules alerts unit fault fuzz e2e e2e-quick tsan
	@tools/install-deps test fuzz || { echo "0 passed, 1 failed"; exit 1; }
	@tools/run-tests $*

.PHONY: test-cloud
test-cloud: ## test the backends on a real DynamoDB Local and Kafka (needs Java and Maven)
	@tools/install-deps cloud || { echo "0 passed, 1 failed"; exit 1; }
	@tools/run-tests cloud

.PHONY: test-clients
test-clients: ## test the client libraries of every language (needs Go, a JDK, Maven and the registries)
	@tools/install-deps clients || { echo "0 passed, 1 failed"; exit 1; }
	@tools/test-clients

.PHONY: test-failover
test-failover: ## kill brokers of a Kafka of three while users send: minutes (needs Java and Maven)
	@tools/install-deps cloud || { echo "0 passed, 1 failed"; exit 1; }
	@tools/run-tests failover

.PHONY: test-api
test-api: ## send generated requests, compare the answers with docs/openapi.json
	@tools/install-deps test api || { echo "0 passed, 1 failed"; exit 1; }
	@tools/step build-asan/build.log "building build-asan/rollcall" tools/build asan || { echo "0 passed, 1 failed"; exit 1; }
	@tools/test-wire api

.PHONY: test-autobahn
test-autobahn: ## test the WebSocket with the Autobahn suite (PYTHON2=python2.7)
	@tools/install-deps test api || { echo "0 passed, 1 failed"; exit 1; }
	@tools/step build-asan/build.log "building build-asan/rollcall" tools/build asan || { echo "0 passed, 1 failed"; exit 1; }
	@tools/test-wire autobahn

.PHONY: soak
soak: build ## kill the server, cut clients off, stop reading: long (SOAK_ROUNDS, CUTS, CROWD)
	@tools/install-deps test
	@tools/step build/load.log "building the load generators" tools/build release load-generators
	@tools/soak

.PHONY: sim
sim: build ## simulate fleets under faults, on all cores (SIM_SEEDS=100, SIM_HOURS=1, SIM_SCENARIO=all)
	@tools/install-deps test
	@tools/step build/sim.log "building the simulator" tools/build release rollcall-sim
	@build/rollcall sim --seeds 1-$(SIM_SEEDS) --hours $(SIM_HOURS) --scenario $(SIM_SCENARIO) --jobs $$(nproc) --report

.PHONY: bench
bench: build ## measure against the floor server and the peers
	@tools/install-deps bench
	@tools/step build/load.log "building the load generators" tools/build release load-generators
	@tools/npm-install bench/peers
	@bench/run

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZ_SECONDS=60
	@tools/install-deps fuzz
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tools/run-tests fuzz

.PHONY: lint
lint: build ## clang-tidy, layout, folder rules, names, words, shellcheck
	@tools/install-deps lint
	@tools/lint

.PHONY: format
format: ## lay the C sources out with clang-format
	@tools/install-deps lint
	@tools/format

.PHONY: install
install: build ## install under PREFIX=/usr/local, below DESTDIR if given
	@meson install -C build --no-rebuild $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))

.PHONY: clean
clean: ## remove everything that was built
	rm -rf build build-asan build-tsan build-fuzz

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z-]*\|\$$(SUITES:%=test-%)\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | \
	    sed 's/^\$$(SUITES:%=test-%)/test-SUITE/' | while IFS='	' read -r goal what; do \
	    printf '  make %-13s %s\n' "$$goal" "$$what"; done
