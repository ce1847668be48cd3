# Every target works on a bare machine: it makes .venv first, once.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: demo test lint bench clean

demo: $(INSTALLED) # two models in demo/; a second time nothing is trained again
	$(BIN)/python -m fenchel.demo

test: lint
	$(BIN)/python -m pytest -m "not gpu" -n auto

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv demo dist build .pytest_cache .ruff_cache .hypothesis
