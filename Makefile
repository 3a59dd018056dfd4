# Everything a developer does, one goal each. `make run` and `make test` set up what they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := api_exporter tests

.DEFAULT_GOAL := help
.PHONY: help run test check format docs bench clean

help: ## Say what there is to make.
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

$(VENV)/pip: setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "api-exporter needs Python 3.11 or newer: make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
		|| { echo "no virtual environment: apt install python3-venv" >&2; exit 1; }
	@touch $@

# Editable, in the mode that leaves the tree itself on the path, so that twistd sees the plugin.
$(VENV)/run: $(VENV)/pip
	@echo "Setting up; this takes a minute, once."
	@$(BIN)/pip install --quiet --disable-pip-version-check \
		--editable . --config-settings editable_mode=compat
	@touch $@

$(VENV)/dev: $(VENV)/run
	@$(BIN)/pip install --quiet --disable-pip-version-check \
		--editable '.[dev]' --config-settings editable_mode=compat
	@touch $@

run: $(VENV)/run ## Show a simulated network on http://localhost:8080/
	@$(BIN)/api-exporter --demo

test: check $(VENV)/dev ## Run all checks and all tests.
	@$(BIN)/coverage erase
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/coverage run -m twisted.trial $(TRIAL) tests
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report --fail-under=90
	@$(BIN)/coverage report --fail-under=100 --include="$$($(BIN)/python -m tests.pure)"

check: $(VENV)/dev ## Run the checks that need no tests: style, types, layers.
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --no-error-summary -p api_exporter -p tests
	@$(BIN)/lint-imports --no-logo >/dev/null || $(BIN)/lint-imports --no-logo

format: $(VENV)/dev ## Format the code.
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .

clean: ## Remove what was made.
	rm -rf $(VENV) build dist *.egg-info _trial_temp* .coverage* .mypy_cache .ruff_cache .hypothesis
