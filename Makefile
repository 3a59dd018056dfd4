# Everything a developer does, one goal each. `make run` and `make test` set up what they need.

# What ships has the system's Python: a Python of pyenv leads to a user's home folder.
SHIPPED_PYTHON := $(or $(PYTHON),/usr/bin/python3)
PYTHON ?= python3
VENV := .venv
BIN := $(abspath $(VENV))/bin
ARCH := $(subst aarch64,arm64,$(subst x86_64,amd64,$(shell uname -m)))

# A program that is started hundreds of times compiles its modules once.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test units simulation programs lowest pythons with check format demo boards dashboards docs rules lock bench figures fuzz acceptance executable directory deb addresses release release-check version clean

# The longest come first, so that none is left over at the end.
LONGEST := $(addprefix tests.integration.test_,operations events doors)
PROGRAMS := $(LONGEST) $(filter-out $(LONGEST),$(subst /,.,$(basename \
	$(wildcard tests/deploy/test_*.py tests/integration/test_*.py))))
# How many of them run at once: they mostly wait.
AT_ONCE ?= 5
UNITS := $(filter-out tests.deploy.% tests.integration.%,$(subst /,.,$(basename \
	$(wildcard $(addsuffix test_*.py,tests/ tests/*/ tests/*/*/)))))
# Whole accounts over hours of simulated time: all that they run has tests of its own, and
# tracing takes three times as long as they do.
UNTRACED := $(addprefix tests.,test_outages test_sharing \
	attention.test_demo reference.test_reference)
# What `make lowest` and `make pythons` run; TESTS=tests is everything.
TESTS ?= $(UNITS)

help: ## Say what there is to make.
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

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
	@$(if $(PORT),LISTEN_ADDRESS=:$(PORT)) $(BIN)/api-exporter --demo

test: export TEST_DURATIONS = $(abspath build/durations.txt)
test: check $(VENV)/dev ## Run all checks and tests: five minutes on two processors. Skips what needs root or a missing program, and says so.
	@$(BIN)/coverage erase
	@mkdir -p build && rm -f $(TEST_DURATIONS)
	@COVERAGE_PROCESS_START=pyproject.toml $(BIN)/python -m twisted.trial -j2 \
		$(filter-out $(UNTRACED),$(UNITS))
	@$(BIN)/python -m twisted.trial -j2 $(UNTRACED)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report --fail-under=90
	@$(BIN)/coverage report --fail-under=100 --include="$$($(BIN)/python -m tools.pure)"
	@$(MAKE) --no-print-directory -j2 simulation programs
	@TEST_DURATIONS= $(BIN)/python -m tools.durations $(TEST_DURATIONS)

# Two days of a seed that stays, and two of one that each commit has for its own: so the
# same commit fails again.
simulation: $(VENV)/dev ## Simulate four days of the whole program.
	@nice $(BIN)/python -m simulation --seed 55 --days 2 & first=$$!; \
		seed=$$(git rev-parse --short=8 HEAD 2>/dev/null) && seed="--seed $$((0x$$seed))"; \
		nice $(BIN)/python -m simulation $$seed --days 2; second=$$?; \
		wait $$first && exit $$second

# What they run is covered by the others already, so nothing traces them. They mostly wait:
# the simulation runs beside them.
programs: $(VENV)/dev ## Run the tests that start programs: minutes.
	@mkdir -p build
	@PATH="$(BIN):$$PATH" MAKEFLAGS= $(BIN)/python -m twisted.trial -j$(AT_ONCE) \
		--temp-directory=build/trial-programs $(PROGRAMS)

units: $(VENV)/dev ## Run the tests that start no programs: a minute.
	@$(BIN)/python3 -m twisted.trial -j2 $(UNITS)

lowest: ## Run the fast tests with exactly the oldest dependencies that setup.cfg allows.
	@$(MAKE) --no-print-directory with INTO=build/lowest AS===

pythons: ## Run the fast tests with each Python from 3.11 to 3.14 that is there.
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
		--requirement $(INTO)/wanted hypothesis jsonschema packaging 'setuptools >= 77'
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

demo: $(VENV)/dev ## Record the simulated company that --demo plays.
	@$(BIN)/python -m simulation.company

boards: $(VENV)/dev ## Make Grafana's dashboards of the program in deploy/grafana.
	@$(BIN)/python -m deploy.grafana

dashboards: $(VENV)/dev ## Draw all boards in five situations into build/boards. Needs npm, chromium, prometheus; ten minutes.
	@$(BIN)/python -m checks.acceptance boards

docs: $(VENV)/dev ## Generate docs/metrics.md, docs/configuration.md, the manual page, the chart's README and the golden pages.
	@$(BIN)/python -m tools.documents
	@$(BIN)/python -m tests.golden
	@$(BIN)/python -m tools.chart

rules: $(VENV)/dev ## Make Prometheus' alerts of the findings.
	@$(BIN)/python -m tools.prometheus
	@$(BIN)/python -m tools.chart

# What is installed into images, packages and executables, to the byte. It changes only where
# setup.cfg requires it: UPGRADE=--upgrade takes the newest of all.
UV := build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--custom-compile-command 'make lock' $(UPGRADE)
lock: ## Write deploy/lock/*.txt, the dependencies that fit setup.cfg, with their hashes.
	@$(PYTHON) -m venv build/lock
	@build/lock/bin/pip install --quiet --disable-pip-version-check 'uv == 0.13.9'
	@$(UV) --extra fast --output-file deploy/lock/run.txt setup.py
	@$(UV) --constraint deploy/lock/run.txt --output-file deploy/lock/build.txt \
		deploy/lock/build.in
	@$(UV) --constraint deploy/lock/build.txt --output-file deploy/lock/release.txt \
		deploy/lock/release.in

bench: $(VENV)/dev ## Measure what is promised; prints a table, writes build/bench.json.
	@$(BIN)/python -m checks.benchmarks $(BENCH)

figures: $(VENV)/dev ## Write the table and the graph of docs/performance.md from build/bench.json.
	@$(BIN)/python -m checks.benchmarks.figures

# One processor for MINUTES each, where atheris has a wheel: Python 3.11 to 3.13.
fuzz: $(VENV)/dev ## Fuzz TARGETS=, for MINUTES= each; updates docs/develop/correctness.md.
	@$(BIN)/pip install --quiet --disable-pip-version-check 'atheris == 3.0.0'
	@$(BIN)/python -m checks.fuzz $(TARGETS) --minutes $(or $(MINUTES),15)
	@$(MAKE) --no-print-directory docs

acceptance: $(VENV)/dev ## Try what needs other tools, a boot, a container or minutes; ends with a table.
	@$(BIN)/python -m checks.acceptance $(ONLY)

# The loader is compiled with its own zlib, so that libc is all it needs. If something that it
# needs is missing, `needs.c` says so in one line. The same commit makes the same bytes.
LOCKED := build/executable/bin/pip install --quiet --disable-pip-version-check --require-hashes
executable deb: export SOURCE_DATE_EPOCH ?= $(shell deploy/commit.sh time)
executable: export PYTHONHASHSEED = 0
executable: export PYTHONNODEBUGRANGES = 1
executable: export ARCH := $(ARCH)
executable: ## Build for libc alone: dist/api-exporter-linux-<arch>, one file, and a directory.
	@rm -rf build/executable build/directory build/lib
	@$(SHIPPED_PYTHON) -m venv build/executable
	@$(LOCKED) --requirement deploy/lock/run.txt
	@$(CC) -c -O2 -Wall -D_GNU_SOURCE -o build/executable/needs.o deploy/executable/needs.c
	@LDFLAGS=$(abspath build/executable/needs.o) PYI_STATIC_ZLIB=1 PYINSTALLER_COMPILE_BOOTLOADER=1 \
		$(LOCKED) --no-binary pyinstaller --requirement deploy/lock/build.txt
	@build/executable/bin/pip install --quiet --disable-pip-version-check --no-deps \
		--no-build-isolation .
	@build/executable/bin/pyinstaller --log-level ERROR --noconfirm \
		--distpath build/directory --workpath build/executable/work \
		deploy/executable/api-exporter.spec
	@! find build/directory -name '*.so*' -exec readelf -d {} + | grep 'R.*PATH.*\[/' || { \
		echo "these paths are of this machine: build with another PYTHON=" >&2; exit 1; }
	@mkdir -p dist
	@mv build/directory/api-exporter-linux-$(ARCH) dist/
	@dist/api-exporter-linux-$(ARCH) --version
	@deploy/executable/pack.sh build/directory/api-exporter dist

# The directory is what packages and the archive hold.
directory: executable ## Build the directory build/directory/api-exporter and its archive in dist.

deb: directory ## Build dist/api-exporter_<version>_<arch>.deb, the Debian package.
	@deploy/debian/build.sh build/directory/api-exporter \
		$$(build/directory/api-exporter/api-exporter --version | cut -d ' ' -f 2) dist

addresses: $(VENV)/dev ## Write FORGE=, IMAGE=, CHART= and MAIL= of whoever publishes into deploy/addresses and all else.
	@FORGE='$(FORGE)' IMAGE='$(IMAGE)' CHART='$(CHART)' MAIL='$(MAIL)' \
		$(BIN)/python deploy/release/addresses.py
	@$(MAKE) --no-print-directory docs

release: directory ## Fill dist/release with all that is released; SIGN= names a key of gpg's.
	@PYTHON='$(PYTHON)' deploy/release/release.sh

version: $(VENV)/dev ## Write VERSION=, such as 1.2.3 or 1.2.3.dev0, into all files that have it.
	@test -n '$(VERSION)' || { echo "set VERSION=, such as 1.2.3 or 1.2.3.dev0" >&2; exit 2; }
	@old=$$($(BIN)/api-exporter --version | cut -d ' ' -f 2) \
		&& $(BIN)/python -m incremental.update api_exporter --newversion '$(VERSION)' \
		&& sed -i "s/$$old/$(VERSION)/" deploy/container/compose.production.yml \
		&& sed -i "/^version:/! s/$$old/$(VERSION)/; s/^version:.*/version: $(subst .dev,-dev,$(VERSION))/" \
			deploy/helm/api-exporter/Chart.yaml

release-check: executable test ## Everything that must hold before a release is tagged.
	@test -z "$$(git status --porcelain)" || { echo "the tree has changes" >&2; exit 1; }
	@$(BIN)/towncrier build --draft >/dev/null
	@$(BIN)/python -m checks.acceptance wheel source

clean: ## Remove what was made.
	rm -rf $(VENV) build dist *.egg-info _trial_temp* .coverage* .mypy_cache .ruff_cache .hypothesis
