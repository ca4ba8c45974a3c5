# The developer's manual: each target sets up what it needs.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup demo test chromium recovery peers gpu chaos audit lint types docs golden lock clean

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@echo "Setting up .venv from requirements.lock: a minute or two, the first time only."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "consilience needs Python 3.11 or newer; found: $$($(PYTHON) --version). Try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(READY)

demo: setup  ## fit the bundled example and say where the result lies
	$(BIN)/consilience demo --out out/demo
	@echo "Ask why: $(BIN)/consilience explain out/demo Australia"

test: setup lint types chromium  ## everything that must hold at every commit
	$(BIN)/python -m pytest -n 2 --dist worksteal

chromium:  ## the browser that the tests look at pages with, where it is missing
	@scripts/chromium.sh

recovery: setup  ## planted groups and the real data sets, at full size
	$(BIN)/python -m pytest -m recovery

peers: setup .venv-peers/.ready  ## agreement with independent implementations from PyPI
	$(BIN)/python -m pytest -m peers

.venv-peers/.ready: requirements-peers.lock
	@echo "Setting up .venv-peers from requirements-peers.lock: a minute or two, the first time only."
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-peers.lock
	@touch $@

gpu:  ## the tests of PyTorch's kernel on a CUDA device, by the PyTorch that PYTHON has: nothing is installed
	PYTHONPATH=src $(PYTHON) tests/engines/test_torch.py cuda

chaos: setup  ## kills, faults, fuzzing and calibration: at most 15 minutes, then docs/reliability.md
	$(BIN)/python benchmarks/chaos/run.py
	$(BIN)/python benchmarks/chaos/render.py

audit: setup .venv-audit/.ready  ## known vulnerabilities of everything in the locks; needs the network
	@for lock in requirements.lock requirements-peers.lock; do \
		echo "$$lock:"; \
		.venv-audit/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off -r $$lock \
			|| { echo "The audit of $$lock found something, or could not ask (it needs the network): see above."; exit 1; }; \
	done

.venv-audit/.ready:
	@echo "Setting up .venv-audit with pip-audit: needs the network, the first time only."
	$(PYTHON) -m venv .venv-audit
	@.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit \
		|| { echo "pip-audit could not be installed: is there a network? Nothing was audited."; rm -rf .venv-audit; exit 1; }
	@touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: setup
	$(BIN)/mypy

docs: setup  ## rewrite the generated pages and run the code in all pages
	$(BIN)/python docs/generate.py
	$(BIN)/python -m pytest tests/test_docs.py

golden: setup  ## accept the present answers of every model as the expected ones
	$(BIN)/python -m pytest tests/golden --rewrite-golden

lock: setup  ## resolve the dependencies anew
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --no-emit-index-url --output-file requirements.lock --quiet
	$(BIN)/uv pip compile requirements-peers.in --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --no-emit-index-url --output-file requirements-peers.lock --quiet

clean:
	rm -rf .venv .venv-peers .venv-audit out
