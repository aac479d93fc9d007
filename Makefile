# Everything the book needs, one command each. Without make: see README.md.
PYTHON ?= python3
VENV   ?= .venv
PY     := $(VENV)/bin/python
TORCH  := 2.13.0
# A CPU build of torch is a tenth of the size. It is asked for alone, so that
# a closed network costs one look-up and not one for every package.
CPU_INDEX := https://download.pytorch.org/whl/cpu
WORKERS ?= 2
PORT    ?= 8000
# one thread a process: two busy cores make threaded small work 25 times slower
export OMP_NUM_THREADS ?= 1
export PYTHONHASHSEED  ?= 0

.DEFAULT_GOAL := help
.PHONY: help setup book test execute store lab serve student lint bench lock clean
.PHONY: check-units check-notebooks check-pages

help:       ## this list
	@grep -E '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: $(VENV)/.done
# The stamp is touched last, so that an interrupted set-up starts over.
$(VENV)/.done: requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "Python 3.11 or newer is needed, this is %d.%d: set PYTHON=..." % v[:2])'
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q --retries 1 --no-deps --extra-index-url $(CPU_INDEX) torch==$(TORCH)
	$(PY) -m pip install -q --require-hashes -r requirements.txt
	$(PY) -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@

book: setup ## set up, run what is stale, build the book, print its address
	$(PY) -m tools.execution --workers $(WORKERS)
	$(PY) -m tools.build

test: setup ## set up, then every test: units, notebooks, book, pages, browser
	$(MAKE) --no-print-directory check-units check-notebooks check-pages

check-units:
	$(PY) -m pytest -q -n $(WORKERS) tests --ignore tests/pages
	$(PY) -m pytest -q --doctest-modules helpers

check-notebooks:
	$(PY) -m pytest -q -n $(WORKERS) --dist loadfile -p tools.nbval_plugin --nbval --nbval-current-env --nbval-cell-timeout 120 book

check-pages:
	$(PY) -m tools.build --from-nothing
	$(PY) -m pytest -n $(WORKERS) tests/pages

execute: setup ## run the chapters that are stale, in parallel
	$(PY) -m tools.execution --workers $(WORKERS)

store: setup ## run every chapter and store words and numbers (after a change)
	$(PY) -m tools.store

lab: setup  ## JupyterLab with the book's environment
	$(VENV)/bin/jupyter lab book

serve: book ## build, then serve the pages on this machine
	$(PY) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

student: setup ## the chapters without solutions, in _build/student
	$(PY) -m tools.student

lint: setup ## style of code and cells
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check helpers tools tests benchmarks book/_ext

bench: setup ## kernels against their peers, in one run each
	@for f in benchmarks/[a-z]*.py; do echo "== $$f"; $(PY) $$f || exit 1; done

lock: setup ## pin requirements.in anew into requirements.txt (needs uv)
	uv pip compile --python-version 3.11 --universal --no-header --no-annotate --generate-hashes -q requirements.in -o requirements.txt
	$(PY) -m tools.conda_file

clean:      ## forget executions and pages (the environment stays)
	rm -rf _build
