# make run    serves Citu at http://127.0.0.1:8084 (HOST, PORT, DATA_DIR … : docs/configuration.md); the first time it
#             makes .venv and installs into it. make PYTHON=python3.12 run: with that Python.
# make test   the tests            make lint     ruff and mypy
# make test-slow  the tests that take long: rare events, and further variants of what `make test` tries
# make coverage  how much of the lines of some rooms their own tests run, as a figure
# CITU_TEST_EXPLORE=1 make test    tries properties with many random examples, where it usually takes the same few
# make bench  the measurements     make postman  the Postman collection against a server of its own
# make etl    installs dbt into .venv-etl, by which drafts of transformations are built and tested
# make lock   the lock files of all requirements, after a change of them   make licences  docs/licences.md
# make sbom   sbom.json, the list of what is shipped, in CycloneDX's format
# make wheelhouse  the packages as files in ./wheelhouse, for machines of this kind without a network
# make telemetry  installs what TRACES needs
# make pictures  the pictures of the page in docs/images, by an installed Chromium
# make clean  removes .venv and caches; never the data (DATA_DIR, ./var by default)

PYTHON = python3
VENV_PYTHON = .venv/bin/python
# Of `make test`. More than there are cores, since most tests wait for servers; a file's tests share theirs.
TEST_PROCESSES = 4

# Of `make coverage`: rooms whose tests run mostly in their own process, where each line is seen. All
# rooms would take twice as long as `make test`, and the rules, traced, don't keep to their 50 ms a step.
COVERED = common sqltree guard llm store
comma = ,

# All paths are relative, so that the folder may have any name. `exec` lets Ctrl-C reach the program itself.
INSTALL = @command -v "$(PYTHON)" >/dev/null || { echo "Citu needs Python 3.11 or newer, and there is no '$(PYTHON)': \
	install it, or name yours with 'make PYTHON=...'." >&2; exit 1; }; "$(PYTHON)" install.py

LOCK = $(VENV_PYTHON) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-strip-extras
EXTRAS = requirements-analysis.txt requirements-charts.txt requirements-telemetry.txt requirements-dev.txt

.PHONY: run install install-dev telemetry etl test test-slow coverage lint postman bench pictures clean lock licences sbom wheelhouse

run: install
	@exec $(VENV_PYTHON) unified_api.py

install:
	$(INSTALL) requirements.txt

install-dev:
	$(INSTALL) requirements-dev.txt

telemetry:
	$(INSTALL) requirements-telemetry.txt

etl: export CITU_ENVIRONMENT = .venv-etl
etl:
	$(INSTALL) requirements-etl.txt

# Even where Python is told to keep no compiled files: else every process of the tests would compile all of them again.
test: SELECTED = not slow
test-slow: SELECTED = slow
test test-slow: install-dev
	@unset PYTHONDONTWRITEBYTECODE; \
		exec $(VENV_PYTHON) -m pytest -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder -m "$(SELECTED)"

coverage: install-dev
	@unset PYTHONDONTWRITEBYTECODE; \
		$(VENV_PYTHON) -m coverage run --source=$(subst $() ,$(comma),$(COVERED)) -m pytest \
			-n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder -m "not slow" \
			$(addprefix tests/,$(COVERED)); status=$$?; \
		$(VENV_PYTHON) -m coverage combine -q && \
		echo "coverage of $(COVERED): $$($(VENV_PYTHON) -m coverage report --format=total) % of the lines"; \
		exit $$status

lint: install-dev
	@$(VENV_PYTHON) -m ruff check . && $(VENV_PYTHON) -m ruff format --check . && $(VENV_PYTHON) -m mypy

postman: install
	@PYTHON="$(CURDIR)/$(VENV_PYTHON)" exec sh postman/run.sh

bench: install-dev
	@exec $(VENV_PYTHON) -m benchmarks

pictures: install-dev
	@exec $(VENV_PYTHON) -m tests.page.pictures

# Versions stay as they are locked, unless requirements ask for others; `make lock UPGRADE=--upgrade` takes the newest.
# The tool comes from the environment as it is, because the files by which it is installed are being made.
lock:
	@$(LOCK) $(UPGRADE) requirements.txt -o locks/requirements.txt
	@$(LOCK) $(UPGRADE) requirements-etl.txt -o locks/requirements-etl.txt
	@for file in $(EXTRAS); do $(LOCK) $(UPGRADE) $$file -c locks/requirements.txt -o locks/$$file || exit 1; done

licences: install-dev
	@exec $(VENV_PYTHON) docs/make_licences.py

sbom: install-dev
	@exec $(VENV_PYTHON) -m cyclonedx_py requirements --output-reproducible --of JSON -o sbom.json locks/requirements.txt

wheelhouse: install
	@exec $(VENV_PYTHON) -m pip download --disable-pip-version-check --quiet --only-binary :all: \
		--require-hashes -r locks/requirements.txt -d wheelhouse

clean:
	@rm -rf .venv .venv-etl .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
