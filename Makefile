# Everything starts here: `make demo` to see it work, `make test` to check it.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
RECORD := build/record

# Tests and studies run side by side; linear-algebra threads of their own would only get in the way.
export OMP_NUM_THREADS := 1
# Many tests start programs: compiled once, not once per program.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo serve test test-fast test-full coverage checks lint check-types check-layers unit tests-of-parts tests-of-whole matrix bench study paper docs comparison wheel lock record clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY)  ## Tell the story on the embedded lender (a minute or two, set-up included)
	@$(BIN)/equipoise demo

serve: $(READY)  ## Open the dashboard on a demonstration audit at http://127.0.0.1:8100
	@mkdir -p .cache
	@$(BIN)/equipoise serve --demo --ledger .cache/demonstration.db

test: $(READY)  ## Run every check
	@$(MAKE) --no-print-directory --jobs 2 --output-sync checks
	@$(MAKE) --no-print-directory unit

test-fast: lint  ## Run what an edit is likely to break (under a minute)
	$(BIN)/pytest -q -m 'not slow' tests/unit tests/recorded --ignore tests/unit/paper --ignore tests/unit/planning

test-full: $(READY)  ## Run every test at full size (an hour)
	EQUIPOISE_TESTS=full $(MAKE) --no-print-directory unit

coverage: $(READY)  ## Lines of the package that the tests do not reach (minutes)
	$(BIN)/pytest -q --cov=equipoise --cov-report=term-missing:skip-covered

checks: lint check-types check-layers

lint: $(READY)  ## Style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

check-types: $(READY)  ## Types
	$(BIN)/mypy

check-layers: $(READY)  ## Imports point one way
	$(BIN)/lint-imports

unit: $(READY)  ## Tests
	@$(PYTHON) tools/need_chromium.py
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=line tests-of-parts tests-of-whole

tests-of-parts: $(READY)
	$(BIN)/pytest -q src paper tests/unit tests/recorded

tests-of-whole: $(READY)  # all that needs a browser or a PostgreSQL, each of which is started once
	$(BIN)/pytest -q tests/acceptance tests/conformance tests/service tests/statistical

bench: $(READY)  ## Measure speed and cost (minutes)
	$(BIN)/python -m bench

matrix: $(READY)  ## Run heavy integrations: Spark (needs Java), PostgreSQL, Dask, MLflow, lowest versions
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[matrix]'
	EQUIPOISE_TESTS=matrix $(BIN)/pytest -q tests/matrix
	$(BIN)/python tools/lowest.py

study: test-full  ## Run the long statistical studies and every test at full size (hours)
	$(BIN)/python -m study

paper: $(READY)  ## Reproduce the paper's experiments in results/ (minutes)
	$(BIN)/python -m paper

docs: $(VENV)/.docs  ## Build the site in build/site, tutorials run, warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site
	@echo "open build/site/index.html"

wheel: $(READY)  ## Build the package that `pip install dist/*.whl` takes (seconds)
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/*.whl

comparison: $(READY)  ## Ask other toolkits the same question, for docs/understand/comparison.md (installs them)
	$(BIN)/python tools/comparison.py

lock: $(READY)  ## Write down the versions of this environment, which the next one will have
	$(BIN)/python -m pip freeze --exclude-editable > tools/dev-lock.txt

record: $(READY)  ## Write down what outsiders see, to compare two revisions (minutes)
	$(BIN)/python tools/record.py write $(RECORD)

clean:  ## Remove what the other commands made
	rm -rf $(VENV) .cache build dist results docs/generated .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml tools/dev-lock.txt
	@$(PYTHON) tools/make_venv.py $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint tools/dev-lock.txt --editable '.[dev]'
	@touch $@

$(VENV)/.docs: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@
