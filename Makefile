# Every target sets up what it needs in .venv; a second run starts at once.
PYTHON ?= python3
BIN := .venv/bin
SRC := src tests benchmarks docs

.PHONY: venv demo test check lint bench docs clean clean-compiled

venv: .venv/core.stamp

.venv/pip.stamp:
	$(PYTHON) -c 'import sys; sys.exit("conekg needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; set PYTHON=..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	touch $@

# torch first and by exact version: a looser request may pull a CUDA build of several gigabytes.
.venv/core.stamp: .venv/pip.stamp pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch==$(shell sed -n 's/^torch==//p' constraints.txt)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	touch $@

.venv/dev.stamp: .venv/core.stamp
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: .venv/core.stamp
	$(BIN)/conekg demo

# Two workers with one OpenMP thread each: more threads on two cores would wait for each other.
test: .venv/dev.stamp
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=2 $(BIN)/pytest -n 2 --dist loadgroup

lint: .venv/dev.stamp
	$(BIN)/ruff format --check $(SRC)
	$(BIN)/ruff check $(SRC)
	$(BIN)/mypy

check: lint test

bench: .venv/dev.stamp
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

docs: .venv/dev.stamp
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

# Numba compiles a function again if its own file has changed, but not if that of a callee has.
clean-compiled:
	find src tests benchmarks -name '*.nb[ic]' -delete

clean: clean-compiled
	rm -rf .venv docs/_build build dist
