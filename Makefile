# Everything from a fresh clone: each target makes .venv by itself.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo serve test lint curve proto clean

demo: $(READY)  ## watch an agent remember, recall, forget, and know that it forgot
	$(BIN)/ebbtide demo

serve: $(READY)  ## run the daemon on http://127.0.0.1:8420
	exec $(BIN)/ebbtide serve

test: $(READY)  ## run every test
	$(BIN)/python -m pytest

lint: $(READY)  ## style, types, directions of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

curve: $(READY)  ## draw the forgetting curve shown in the docs
	$(BIN)/ebbtide curve --out docs/forgetting-curve.png

proto: $(READY)  ## check the schema of the gRPC interface, make its Python stubs anew
	cd proto && $(abspath $(BIN))/buf lint && $(abspath $(BIN))/buf format --diff --exit-code
	cd proto && $(abspath $(BIN))/buf breaking --against baseline.binpb
	$(BIN)/python proto/generate.py

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(READY)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
