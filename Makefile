# Every target sets up what it needs; `make help` lists them. Nothing here depends on where the clone lies.
.DEFAULT_GOAL := help
.PHONY: help setup up down reset demo test check bench bench-peers proof lock

PY := .venv/bin/python
READY := .venv/.ready
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Figures for `make bench`, separated by commas; all of them when empty.
FIGURES ?=
# What `make bench-peers` measures, and of which peers: the real job of the fastest one when empty.
WORK ?=

# Run a command and show what it says only if it fails.
quietly = said=$$($(1) 2>&1) || { printf '%s\n' "$$said"; exit 1; }

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1 | \2/p' Makefile | sed 's/|/\t/' | expand -t 20

setup: $(READY) ## Python packages into .venv, pinned and hashed
	@:

$(READY): requirements.lock pyproject.toml
	@python=$$(sh deploy/local/preflight.sh) || exit 1; \
	echo 'setting up .venv'; \
	[ -x $(PY) ] && $(PY) -c '' 2>/dev/null || "$$python" -m venv --clear .venv || exit 1; \
	$(call quietly,$(PY) -m pip install -q --require-hashes -r requirements.lock); \
	$(call quietly,$(PY) -m pip install -q --no-deps --no-build-isolation -e .)
	@touch $(READY)

up: $(READY) ## start PostgreSQL, Kafka and Connect, and leave them running
	@.venv/bin/tellonce up

down: $(READY) ## stop them; data stays
	@.venv/bin/tellonce down

reset: $(READY) ## stop them and delete their data
	@.venv/bin/tellonce reset

demo: $(READY) ## the article's storm, told on the terminal
	@.venv/bin/tellonce demo

test: check ## check, then every test but the proofs
	@$(PY) -m pytest -m 'not proof' -n 2

check: $(READY) ## style, types and layers
	@echo 'checking style, types and layers'
	@$(call quietly,$(PY) -m ruff check)
	@$(call quietly,$(PY) -m ruff format --check)
	@$(call quietly,$(PY) -m mypy)
	@$(call quietly,$(PY) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()')

bench: $(READY) ## figures into build/bench.json (FIGURES=a,b for some)
	@$(PY) -m tests.bench $(FIGURES)

bench-peers: $(READY) ## job queues beside ours, where ../shared/peers is there (WORK=w3,pgqueuer for more)
	@$(PY) -m tests.bench.peers $(WORK)

proof: $(READY) ## the long tests: whole logs, kills
	@$(PY) -m pytest -m proof

lock: $(READY) ## renew the three lock files: Python, the image, the engines
	@$(call quietly,$(PY) -m pip install -q uv)
	@$(PY) -m uv pip compile -q pyproject.toml --extra dev --generate-hashes --universal \
	  --python-version 3.11 -o requirements.lock --custom-compile-command 'make lock'
	@$(PY) -m uv pip compile -q pyproject.toml deploy/docker/build.in -c requirements.lock --generate-hashes \
	  --universal --python-version 3.11 -o deploy/docker/runtime.lock --custom-compile-command 'make lock'
	@$(PY) -m deploy.local.jars
