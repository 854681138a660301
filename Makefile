# Everything from a bare Debian 12 with git, make, gcc and python3: `make demo`, `make test`.
# What is there already is left alone, so every target can be run again at any time.

PYTHON ?= /usr/bin/python3
RUNS ?= runs
BEGIN ?= 0
TARGET ?= dpdk-c
# Tests often wait for other processes: one worker more than there are CPUs, up to four.
WORKERS ?= $(shell n=$$(nproc); echo $$((n < 4 ? n + 1 : 4)))

VENV := .venv
BIN := $(VENV)/bin
# What `make demo` and every other use needs, and what the tests need besides.
USABLE := $(VENV)/.installed
TESTABLE := $(VENV)/.installed-tests
SYSTEM_PACKAGES := gcc libc6-dev make pkg-config python3 python3-dev python3-venv \
                   dpdk libdpdk-dev libpcap-dev dpkg-dev valgrind clang llvm libbpf-dev libelf-dev bpftool
TEST_PACKAGES := luajit chromium
EXTENSIONS := $(wildcard p4perf/evaluation/fitting/engine/*.[ch] p4perf/models/queue/*.[ch])
SOURCES = $(wildcard p4perf tests benchmarks setup.py)
ON_PATH = echo "p4perf is in $(BIN); 'source $(BIN)/activate' puts it on the PATH of this shell"
BENCHMARKS = $(filter-out benchmarks/_%,$(wildcard benchmarks/*.py))

export LC_ALL := C.UTF-8
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Modules are compiled once, not in every process of the tests.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install system test-system demo test test-all tests lint collected bench fuzz soak clean

help: ## show this help
	@echo "p4perf: what will this data-plane program cost on that target?"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "PYTHON=$(PYTHON) is the interpreter, RUNS=$(RUNS) the folder of the demo's results, TARGET=$(TARGET) its target."

install: $(USABLE) ## install what is missing: system packages, then p4perf in .venv
	@$(ON_PATH)

demo: $(USABLE) ## generate, build and measure the demo experiment on this machine; print its table and plot
	$(BIN)/p4perf run demo/exact-entries --target $(TARGET) -o $(RUNS)
	@$(ON_PATH)

test: MARKED = not thorough
test: tests ## install the tools of the tests, lint, then run the tests that a change has to pass

test-all: MARKED =
test-all: tests ## lint, then run all tests, as a release needs

tests: $(TESTABLE)
	@$(MAKE) --no-print-directory --jobs 2 lint collected
	@sh tools/fetch-sshd.sh build/sshd
	@echo "== tests"
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "$(MARKED)"

# Linters leave a processor idle: meanwhile, what the tests import is compiled for all their workers.
collected: $(TESTABLE)
	@$(BIN)/python -m compileall -q p4perf
	@$(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1 || :

lint: $(TESTABLE) ## check style, types and which packages import which
	@echo "== style (ruff)"
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)
	@echo "== types (mypy)"
	@$(BIN)/mypy
	@echo "== floors (import-linter)"
	@$(BIN)/lint-imports --no-logo

bench: $(TESTABLE) ## measure the speed of p4perf itself
	@$(if $(BENCHMARKS),:,echo "There are no benchmarks yet.")
	@set -e; for script in $(BENCHMARKS); do echo "== $$script"; $(BIN)/python "$$script"; done

fuzz: $(TESTABLE) ## give N damaged files, with seeds from BEGIN on, to all readers; fuzz.jsonl keeps what was tried
	@$(BIN)/python tools/fuzz.py $(or $(N),100000) --begin $(BEGIN) --jobs $$(nproc) --record fuzz.jsonl

soak: $(TESTABLE) ## kill p4perf N times in sweeps, and less often in what else it does; soak.jsonl keeps what was tried
	@$(BIN)/python tools/soak.py $(or $(N),1000) --begin $(BEGIN) --jobs $$(nproc) --record soak.jsonl

clean: ## remove what was installed or built here, not the results
	rm -rf $(VENV) build dist p4perf/evaluation/fitting/engine/*.so p4perf/models/queue/*.so *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find p4perf tests $(wildcard benchmarks) -name __pycache__ -type d -prune -exec rm -rf {} +
	@if [ -d $(RUNS) ]; then echo "Results in $(RUNS)/ are kept."; fi

system:
	@[ -e $(USABLE) ] || echo "== installing what is missing of: system packages (apt-get, may ask for a password), two headers of DPDK, p4perf in $(VENV); from 30 s to 4 minutes, depending on the network"
	@sh tools/install-system-packages.sh $(SYSTEM_PACKAGES)

test-system:
	@[ -e $(TESTABLE) ] || echo "== installing what is missing of: $(TEST_PACKAGES) (apt-get, may ask for a password), the tools of the tests in $(VENV); up to 2 minutes, depending on the network"
	@sh tools/install-system-packages.sh $(TEST_PACKAGES)

$(USABLE): pyproject.toml setup.py constraints.txt $(EXTENSIONS) | system
	@sh tools/fetch-dpdk-headers.sh
	@sh tools/make-environment.sh $(PYTHON) $(VENV)
	@touch $@

$(TESTABLE): $(USABLE) | test-system
	@sh tools/make-environment.sh $(PYTHON) $(VENV) dev
	@touch $@
