# `make run` and `make test` set the machine up first (lib/setup.sh): nothing to install by hand.

BIN := .venv/bin
# Jupyter and uv keep their caches in HOME.
ifeq ($(strip $(HOME)),)
export HOME := $(CURDIR)/.tools/home
endif

# Where compiled modules may not be kept, every process of the tests compiles all of them again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup browser azurite run test test-fast test-loaded test-repeat lint types prose docs format house coverage played rehearse faults mutants bench-emulator bench-volumes bench-stats bench-provision bench-choose bench-import bench-reader bench-scale attack fuzz samples lock fresh clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 18

setup: ## install what is missing (part of every target)
	@mkdir -p .tools/home && lib/setup.sh

browser: setup
	@lib/setup.sh browser

azurite: setup
	@lib/azurite.sh

run: setup ## measure zone-redundant disks on the emulator, from nothing to the report (4 minutes)
	@$(BIN)/diskbook run zone-disks --cloud emulator --preset quick

test: browser azurite ## check style and types, and run all tests
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
	@$(BIN)/pytest -n 4 --durations=20

test-fast: setup ## the same, without types, tests that start processes, whole runs and what takes long (2 minutes)
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
	@$(BIN)/pytest -n logical -m "not emulator and not whole and not long"

test-loaded: browser azurite ## run all tests beside two busy loops per core
	@lib/loaded.sh $(MAKE) --no-print-directory test

N ?= 20
test-repeat: setup ## run chosen tests again and again, and count the runs that failed (N=20 K=expression)
	@failed=0; for run in $$(seq $(N)); do \
	    $(BIN)/pytest -n 0 -k "$(K)" || failed=$$((failed + 1)); done; \
	echo "$$failed of $(N) runs failed"; exit $$((failed > 0))

lint: setup ## check style of code and notebooks, spelling, and that packages import only what stands below them
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/typos
	@$(BIN)/lint-imports --no-cache

types: setup ## check types
	@$(BIN)/mypy

format: setup ## put code and notebooks into the project's style, strip notebook outputs, draw the house, list the articles, the points of the protocol, Azure's rules, the keys of --json and of scenarios, the columns of tables, and what a campaign takes
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format .
	@$(BIN)/nbstripout --keep-id --extra-keys "metadata.papermill cell.metadata.papermill" notebooks/*.ipynb
	@$(BIN)/python -m checks.pages

docs: browser ## build the documentation site into docs/_build/html, check its pages in a browser, and run all notebooks in JupyterLab (8 minutes)
	@UV_SYSTEM_CERTS=$${UV_SYSTEM_CERTS:-1} UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=$(CURDIR)/.venv \
	    .tools/uv/bin/uv sync --locked --quiet --inexact --group docs --python $(BIN)/python
	@rm -rf docs/_build && $(BIN)/sphinx-build -b html -j auto -q -W --keep-going docs docs/_build/html
	@DISKBOOK_DOCS_SITE=$(CURDIR)/docs/_build/html DISKBOOK_EVERY_NOTEBOOK=1 \
	    $(BIN)/pytest -n 0 tests/whole/test_docs_site.py tests/whole/test_jupyterlab.py

prose: setup ## measure sentence lengths and phrases of README, docs, help and notebooks; ends with 1 when checks/prose.toml is missed
	@$(BIN)/python -m checks.prose

house: setup ## weigh the code: lines, modules and import chains; ends with 1 when a package exceeds checks/budget.toml
	@$(BIN)/python -m checks.weight

coverage: setup ## check intervals against simulated truth, and plant hidden limits (3 minutes)
	@$(BIN)/python -m checks.coverage --docs docs/explanation/coverage.md
	@$(BIN)/python -m checks.hidden_limits

played: setup ## play hidden limits, drift, stalls and noise, runs with looks and runs to pool, and look for a false verdict (20 minutes)
	@$(BIN)/python -m checks.played
	@$(BIN)/python -m checks.played_runs

rehearse: setup ## run the commands of docs/tutorials/first-azure-run.md, the first day on Azure, on the emulator (10 minutes)
	@$(BIN)/python -m checks.rehearse

faults: azurite ## play some seventy faults, each in a whole run, kill a campaign twice, and see what is left, lost or repeated
	@$(BIN)/python -m checks.faults
	@$(BIN)/pytest -n 0 -m faults

mutants: setup ## change 200 operators, numbers and results, each in a copy, and see whether the tests notice (30 minutes)
	@$(BIN)/python -m checks.mutants

bench-emulator: setup ## measure how closely the emulator plays what it is told
	@$(BIN)/python -m checks.bench_emulator

bench-volumes: setup ## recover truths that a printed seed plants in volumes from a played run (5 minutes)
	@$(BIN)/python -m checks.planted_volumes

bench-stats: setup ## measure how long the statistics take, beside the obvious alternatives; ends with 1 when too long
	@$(BIN)/python -m checks.bench_stats

bench-choose: setup ## compare 2,000 choices of disks with an independent loop, and time an answer (15 minutes)
	@$(BIN)/python -m checks.bench_choose

bench-import: setup ## measure what an import costs as a command, beside pandas and DuckDB; ends with 1 when too much (5 minutes)
	@$(BIN)/python -m checks.bench_import

bench-reader: setup ## measure how long a reader waits for help, reports, figures, comparisons, a site (3 minutes)
	@$(BIN)/python -m checks.bench_reader

# Each ends with 1 by itself; the second is measured whatever the first has shown.
bench-scale: setup ## measure 10,000 runs in the catalogue, and Dask workers; ends with 1 when a limit is missed (10 minutes)
	@$(BIN)/python -m checks.bench_scale; scale=$$?; $(BIN)/python -m checks.bench_workers && exit $$scale

attack: setup ## attack what a user trusts: folders, keys, endpoints, groups, emulators of others (2 minutes)
	@$(BIN)/pytest -n 0 -v tests/whole/test_attacks.py

fuzz: setup ## feed a million damaged results to every parser, and hostile names to pages and figures (30 minutes)
	@$(BIN)/python -m checks.fuzz.run

bench-provision: setup ## measure how long provisioning takes, against its longest chain (emulated, 2 minutes)
	@$(BIN)/python -m checks.bench_provision

samples: setup ## make the sample runs, their figures and posts again
	@$(BIN)/diskbook sample

lock: ## bring uv.lock up to date with pyproject.toml (without it the set-up refuses to go on)
	@test -x .tools/uv/bin/uv || lib/setup.sh
	@UV_SYSTEM_CERTS=$${UV_SYSTEM_CERTS:-1} UV_PYTHON_DOWNLOADS=never .tools/uv/bin/uv lock

fresh: ## try `make run` and `make test` in minimal Debian 12 and 13 systems (root; ONLY=13, GOALS="run test")
	@lib/fresh.sh

clean: ## remove environment, tools and caches; runs stay
	rm -rf .venv .tools .pytest_cache .mypy_cache .ruff_cache
	find lib tests -name __pycache__ -type d -prune -exec rm -rf {} +
