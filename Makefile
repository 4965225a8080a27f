# One environment, .venv, made once and brought up to date whenever what it is made from changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# two test files at a time, the long ones first: most of a session's time is waiting
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=40 --durations-min=5
READY := $(VENV)/.ready

.PHONY: demo test test-fast check format lint types wheel bench schema clean

$(READY): pyproject.toml constraints.txt
	@found=`$(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2]); sys.exit(sys.version_info < (3, 11))' 2>/dev/null` && exit; \
		echo "$(PYTHON) $${found:+is Python }$${found:-cannot be run}, and agentcell needs Python 3.11 or newer:" \
			'make $(MAKECMDGOALS) PYTHON=/path/to/python3.11' >&2; exit 1
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo 'this Python cannot make environments: install its venv package (Debian: apt install python3-venv)' >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(READY)
	@$(BIN)/python -m agentcell.offline.demo

test: $(READY)
	$(PYTEST)

test-fast: $(READY)
	$(PYTEST) -m 'not slow'

check: format lint types test wheel

format: $(READY)
	$(BIN)/ruff format --check .

lint: $(READY)
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy
	$(BIN)/mypy tests benchmarks examples

wheel: $(READY)
	$(BIN)/python tests/meta/check_wheel.py

bench: $(READY)
	$(BIN)/python -m benchmarks dist/figures.json docs/performance.md

schema: $(READY)
	$(BIN)/python -m agentcell_protocol.schema

clean:
	rm -rf $(VENV) dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
