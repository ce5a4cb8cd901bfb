# `make demo` and `make test` need Python 3.11 or newer, pip and make; all else comes from the lock.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
STAMP := $(VENV)/.installed

.PHONY: help demo test test-all bench optima lint types format lock clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 12

demo: $(STAMP)  ## the best possible pendulum swing-up, as a table and a picture
	$(BIN)/tacos optimum pendulum-swing-up --cost 0.1 --out out/demo

test: $(STAMP)  ## the tests of everyday work
	$(BIN)/pytest -n 2 -m "not slow"

test-all: $(STAMP)  ## all tests, those of minutes included
	$(BIN)/pytest -n 2

bench: $(STAMP)  ## speed, as ratios measured in one run
	$(BIN)/python -m benchmarks

optima: $(STAMP)  ## the best known for costs and budgets on both pendulums; 45 minutes
	$(BIN)/python -m benchmarks.optima

lint: $(STAMP)  ## style, format, and which room may know of which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(STAMP)  ## the type checker
	$(BIN)/basedpyright

format: $(STAMP)  ## put the code into its form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(STAMP)  ## renew the exact versions from pyproject.toml
	$(BIN)/pip-compile --quiet --upgrade --all-extras --strip-extras --no-annotate --no-header \
	    --no-emit-index-url --no-emit-trusted-host --no-emit-find-links -o requirements.lock pyproject.toml
	sed -i.bak '/^tacos-rl @/d' requirements.lock && rm requirements.lock.bak

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet -r requirements.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	touch $@

clean:  ## remove the environment and all outputs
	rm -rf $(VENV) out build dist .pytest_cache .ruff_cache .hypothesis
