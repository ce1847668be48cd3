# Every target works on a bare machine: it makes .venv first, once.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
FUZZ_SECONDS ?= 60

.PHONY: demo test lint fuzz bench tables clean

demo: $(INSTALLED) # two models in demo/; a second time nothing is trained again
	$(BIN)/python -m fenchel.demo

test: lint
	$(BIN)/python -m pytest -m "not gpu" -n auto

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright

fuzz: $(INSTALLED) # the drawn tests on new examples, for FUZZ_SECONDS
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

tables: $(INSTALLED) # what `fenchel reproduce` has measured, into the pages of docs
	$(BIN)/python -m benchmarks.paper_tables

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv demo dist build .pytest_cache .ruff_cache .hypothesis
