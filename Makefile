# Eight goals for everyone, which `make` lists, then those for developers. Each sets up what it needs.
# Packages and releases are in deploy/Makefile.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# A program that is started hundreds of times compiles its modules once.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test units check format generated acceptance clean
.PHONY: coverage simulation programs lowest pythons with demo boards dashboards docs rules bench figures fuzz

# The longest come first, so that none is left over at the end.
LONGEST := $(addprefix tests.integration.test_,status_page pprof events)
PROGRAMS := $(LONGEST) $(filter-out $(LONGEST),$(subst /,.,$(basename \
	$(wildcard tests/deploy/test_*.py tests/integration/test_*.py))))
# How many of them run at once: they mostly wait.
AT_ONCE ?= 5
UNITS := $(filter-out tests.deploy.% tests.integration.%,$(subst /,.,$(basename \
	$(wildcard $(addsuffix test_*.py,tests/ tests/*/ tests/*/*/)))))
# Whole accounts and services, whose parts have tests of their own, and tests of tools and
# texts: nothing to trace, which takes three times as long.
UNTRACED := $(filter tests.simulation.% tests.company.% $(addprefix tests.,subjects.test_demo \
	reference.test_reference test_live test_roles test_service_secrets test_private_parts \
	test_correctness test_documents test_mutation test_style),$(UNITS))
# What `make lowest` and `make pythons` run.
TESTS ?= $(UNITS) $(PROGRAMS)

# Say what there is to make.
help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

$(VENV)/pip: setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "api-exporter needs Python 3.11 or newer: make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
		|| { echo "no virtual environment: apt install python3-venv" >&2; exit 1; }
	@touch $@

# Editable, in the mode that leaves the tree itself on the path, so that twistd sees the plugin.
$(VENV)/run: $(VENV)/pip setup.py docs/runbooks.md
	@echo "Setting up; this takes a minute, once."
	@$(BIN)/pip install --quiet --disable-pip-version-check \
		--editable . --config-settings editable_mode=compat
	@touch $@

$(VENV)/dev: $(VENV)/run
	@$(BIN)/pip install --quiet --disable-pip-version-check \
		--editable '.[dev]' --config-settings editable_mode=compat
	@touch $@

run: $(VENV)/run ## Show a simulated network on http://localhost:8080/, or another port with PORT=.
	@echo "Open http://localhost:$(or $(PORT),8080)/; Ctrl-C stops. PORT=8081 takes another port."
	@LOG_LEVEL=$${LOG_LEVEL:-warning} $(if $(PORT),LISTEN_ADDRESS=:$(PORT)) $(BIN)/api-exporter --demo || [ $$? -eq 130 ]

test: export TEST_DURATIONS = $(abspath build/durations.txt)
test: check $(VENV)/dev ## Run all checks and tests: four minutes on two processors. Skips what needs root or a missing program, and says so.
	@$(BIN)/coverage erase
	@mkdir -p build && rm -f $(TEST_DURATIONS)
	@COVERAGE_PROCESS_START=pyproject.toml $(BIN)/python -m twisted.trial -j2 \
		$(filter-out $(UNTRACED),$(UNITS))
	@$(BIN)/python -m twisted.trial -j2 $(UNTRACED)
	@$(MAKE) --no-print-directory -j3 coverage simulation programs
	@TEST_DURATIONS= $(BIN)/python -m tools.durations "$(TEST_DURATIONS)"

# Compare what the traced tests reached with the limits.
coverage:
	@nice $(BIN)/coverage combine --quiet
	@nice $(BIN)/coverage report --fail-under=98
	@nice $(BIN)/coverage report --fail-under=100 --include="$$($(BIN)/python -m tools.pure)"

# Two days of a seed that stays, and two of one that each commit has for its own: so the
# same commit fails again.
# Simulate four days of the whole program.
simulation: $(VENV)/dev
	@nice $(BIN)/python -m simulation --seed 55 --days 2 & first=$$!; \
		seed=$$(git rev-parse --short=8 HEAD 2>/dev/null) && seed="--seed $$((0x$$seed))"; \
		nice $(BIN)/python -m simulation $$seed --days 2; second=$$?; \
		wait $$first && exit $$second

# What they run is covered by the others already, so nothing traces them. They mostly wait:
# simulation and coverage run beside them.
# Run the tests that start programs: minutes.
programs: $(VENV)/dev
	@mkdir -p build
	@PATH="$(abspath $(BIN)):$$PATH" MAKEFLAGS= $(BIN)/python -m twisted.trial -j$(AT_ONCE) \
		--temp-directory=build/trial-programs $(PROGRAMS)

units: $(VENV)/dev ## Run the tests that start no programs: a minute.
	@$(BIN)/python3 -m twisted.trial -j2 $(UNITS)

# Run all tests with exactly the oldest dependencies that setup.cfg allows.
lowest:
	@$(MAKE) --no-print-directory with INTO=build/lowest AS===

# Run all tests with each Python from 3.11 to 3.14 that is there.
pythons:
	@for minor in 11 12 13 14; do \
		for python in python3.$$minor \
				"$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.$$minor.*/bin/python; do \
			"$$python" -c '' 2>/dev/null || continue; \
			"$$python" --version; \
			$(MAKE) --no-print-directory with PYTHON="$$python" INTO=build/python3.$$minor \
				AS='>=' || exit; \
			continue 2; \
		done; \
		echo "no Python 3.$$minor here"; \
	done

# Tests in an environment of its own, whose dependencies are as setup.cfg says or older.
with: $(VENV)/run
	@rm -rf $(INTO) && $(PYTHON) -m venv $(INTO)
	@sed -n '/^install_requires/,/^$$/s/^    \(.*\)>=/\1$(AS)/p' setup.cfg >$(INTO)/wanted
	@$(INTO)/bin/pip install --quiet --disable-pip-version-check \
		--requirement $(INTO)/wanted hypothesis jsonschema markdown packaging 'setuptools >= 77'
	@$(INTO)/bin/pip install --quiet --disable-pip-version-check --no-deps \
		--editable . --config-settings editable_mode=compat
	@PATH="$(CURDIR)/$(INTO)/bin:$$PATH" PYTHONPATH="$(CURDIR)" $(INTO)/bin/python -m twisted.trial \
		--temp-directory=$(INTO)/trial -j2 $(TESTS)

check: $(VENV)/dev ## Run the checks that need no tests: style, types, layers.
	@$(BIN)/ruff check --quiet --output-format concise .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --no-error-summary -p api_exporter -p deploy.grafana -p checks -p simulation -p tests -p tools
	@$(BIN)/lint-imports --no-logo >/dev/null || $(BIN)/lint-imports --no-logo

format: $(VENV)/dev ## Format the code.
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .

generated: demo boards rules docs ## Write all that is made from the code: documents, alerts, dashboards, the demo's company.

# Record the simulated company that --demo plays.
demo: $(VENV)/dev
	@$(BIN)/python -m simulation.company

# Make Grafana's dashboards of the program in deploy/grafana.
boards: $(VENV)/dev
	@$(BIN)/python -m deploy.grafana

# Draw all boards in five situations into build/boards. Needs npm, chromium, prometheus; ten minutes.
dashboards: $(VENV)/dev
	@$(BIN)/python -m checks.acceptance boards

# Generate the documents that are made from the code, the manual page, the chart's schema and the golden pages.
docs: $(VENV)/dev
	@$(BIN)/python -m tools.documents
	@$(BIN)/python -m tests.golden
	@$(BIN)/python -m tools.chart

# Make Prometheus' alerts of the findings.
rules: $(VENV)/dev
	@$(BIN)/python -m tools.prometheus
	@$(BIN)/python -m tools.chart

# Measure what is promised; prints a table, writes build/bench.json.
bench: $(VENV)/dev
	@$(BIN)/python -m checks.benchmarks $(BENCH)

# Write the table and the graph of docs/performance.md from build/bench.json.
figures: $(VENV)/dev
	@$(BIN)/python -m tools.figures

# One processor for MINUTES each, where atheris has a wheel: Python 3.11 to 3.13.
# Fuzz TARGETS=, for MINUTES= each; updates docs/develop/correctness.md.
fuzz: $(VENV)/dev
	@$(BIN)/pip install --quiet --disable-pip-version-check 'atheris == 3.0.0'
	@$(BIN)/python -m checks.fuzz $(TARGETS) --minutes $(or $(MINUTES),15)
	@$(MAKE) --no-print-directory docs

acceptance: $(VENV)/dev ## Try what needs other tools, a boot, a container or minutes; ends with a table.
	@$(BIN)/python -m checks.acceptance $(ONLY)

clean: ## Remove what was made.
	rm -rf $(VENV) build dist *.egg-info _trial_temp* .coverage* .mypy_cache .ruff_cache .hypothesis

include deploy/Makefile
