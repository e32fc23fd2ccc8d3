# Two commands do everything: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Tests and benchmarks parallelise over processes; one BLAS thread each keeps the pools apart.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
export MPLBACKEND ?= Agg

.PHONY: help demo test test-all lint types imports pytest bench bench-real docs lock wheel clean

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "outlearn needs Python >= 3.11; set PYTHON=python3.x"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "could not make $(VENV): on Debian, apt install python3-venv"; exit 1; }

$(VENV)/.run: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing outlearn into $(VENV) ..."
	@$(PIP) --editable '.[plot,parquet]'
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "installing the test tools ..."
	@$(PIP) --editable '.[dev]'
	@touch $@

demo: $(VENV)/.run  ## install, learn from 80 % garbage, draw what was found
	@$(BIN)/outlearn demo

test: lint types imports pytest  ## every check that CI makes

lint: $(VENV)/.dev  ## ruff: style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev  ## mypy
	$(BIN)/mypy

imports: $(VENV)/.dev  ## the one-way imports between rooms
	$(BIN)/lint-imports

pytest: $(VENV)/.dev
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-all: lint types imports  ## the default suite and the long agreement runs
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal

bench: $(VENV)/.dev  ## side-by-side measurements, as ratios of one run
	$(ONE_THREAD) $(BIN)/python -m benchmarks

bench-real: $(VENV)/.dev  ## real data, real rivals: docs/benchmarks.md
	@$(PIP) --requirement benchmarks/real/requirements.txt
	$(ONE_THREAD) $(BIN)/python -m benchmarks.real $(ARGS)

docs: $(VENV)/.dev  ## the documents as HTML, in docs/_build/html
	@$(PIP) --editable '.[docs]'
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

lock:  ## write constraints.txt from what a fresh install of today gives
	rm -rf build/lock && $(PYTHON) -m venv build/lock && build/lock/bin/pip install --quiet '.[dev,docs]'
	build/lock/bin/pip freeze --exclude outlearn > constraints.txt

wheel: $(VENV)/.dev  ## build the wheel and the source archive into dist/
	$(BIN)/python -m build

clean:  ## forget the environment and everything built
	rm -rf $(VENV) build dist out
