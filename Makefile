# Every target makes its own .venv out of nothing but Python 3.11 and pip.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
EXTRAS ?= dev
RUN     = $(VENV)/bin/python
PIP     = $(RUN) -m pip --quiet --disable-pip-version-check

.PHONY: help demo test lint format docs bench fuzz simulate clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "postmortem needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --editable .
	@touch $@

$(VENV)/.installed-$(EXTRAS): pyproject.toml | $(VENV)/bin/python
	$(PIP) install --editable '.[$(EXTRAS)]'
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed ## compare the sample pair; the last line is the path of the report
	$(RUN) -m postmortem demo

test: $(VENV)/.installed-$(EXTRAS) ## the tests; those that need ../shared skip without it
	$(RUN) -m pytest -n 2 --dist loadfile --no-loadscope-reorder

lint: $(VENV)/.installed-$(EXTRAS) ## style, types, import layers, SQL, generated pages
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports
	$(RUN) -m sqlfluff lint queries
	$(RUN) tools/reference.py --check

format: $(VENV)/.installed-$(EXTRAS) ## format the code
	$(RUN) -m ruff format .
	$(RUN) -m ruff check --fix .

docs: $(VENV)/.installed-$(EXTRAS) ## write the generated reference pages
	$(RUN) tools/reference.py

bench: $(VENV)/.installed-$(EXTRAS) ## measure speed and memory
	@for file in $(wildcard benchmarks/bench_*.py); do echo "== $$file"; $(RUN) $$file || exit 1; done

fuzz: $(VENV)/.installed-$(EXTRAS) ## many damaged inputs
	@for file in $(wildcard benchmarks/fuzz_*.py); do echo "== $$file"; $(RUN) $$file || exit 1; done

simulate: $(VENV)/.installed-$(EXTRAS) ## many made-up jobs with known faults
	@for file in $(wildcard benchmarks/simulate_*.py); do echo "== $$file"; $(RUN) $$file || exit 1; done

clean: ## remove what the other targets made
	rm -rf $(VENV) .postmortem demo build dist *.egg-info .*_cache
