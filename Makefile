# kafka_sla: everything a developer or a CI runs. Bare `make` prints the targets.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv --quiet
DEPENDENCIES := $(VENV)/.dependencies
EDITABLE := $(VENV)/.editable
TYPED := plugins/kafka_sla demo
SOURCES := plugins spark_jobs expectations demo dags tests benchmarks

# Containers often forbid Python to keep bytecode. Every process of Airflow and Spark would compile thousands of modules
# anew then: importing Great Expectations takes 11 seconds instead of 3.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: alerts help setup check format docs site test slow wheel release demo compatibility order truth checkpoint speed browser pictures pages faults damage lifetime mutate audit constraints simulate planted matrix kerberos fab warehouses trino engines clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(DEPENDENCIES) ## install everything into .venv and fetch Kafka's jars (once)
	@$(AT_ONCE) installed

AT_ONCE := $(MAKE) --no-print-directory --jobs 2
.PHONY: installed jars kafka-classes spark-classes
installed: $(EDITABLE) kafka-classes spark-classes
jars: $(EDITABLE)
	@$(BIN)/python -m demo.jars
kafka-classes: jars
	@$(BIN)/python -c "from demo.broker import archive_classes; archive_classes()"
spark-classes: $(EDITABLE)
	@$(BIN)/python -m kafka_sla.spark.class_archive

check: $(EDITABLE) ## format, lint and types, as CI checks them
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy $(TYPED)

format: $(EDITABLE) ## format the code and repair what the linter can
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format .

docs: $(EDITABLE) ## write docs/reference/tables.md, webhook.schema.json and stories.md from the code
	$(BIN)/python -m kafka_sla.validation.table_docs > docs/reference/tables.md
	$(BIN)/python -m kafka_sla.notifications.webhooks.event > docs/reference/webhook.schema.json
	$(BIN)/python -m tests.stories.describe > docs/reference/stories.md

site: $(EDITABLE) ## the documentation as a site, in dist/site
	@$(UV) pip install --python $(BIN)/python --constraint constraints.txt mkdocs-material
	@rm -rf .work/site && mkdir -p .work/site && cp -r README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs .work/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo dist/site/index.html

alerts: ## test the alerting rules with Prometheus' own promtool, which must be on the PATH
	promtool test rules tests/prometheus/kafka-sla-alerts.test.yml

wheel: $(EDITABLE) ## build the wheel into dist/
	@rm -rf dist build
	@$(UV) build --wheel --no-build-isolation --python $(BIN)/python --out-dir dist

# The wheel replaces the editable install while the tests run, so that they prove what people install. The processes
# share the tests as tests/shares.py says; four on two cores, because many tests wait.
PROCESSES ?= 4
define against_the_wheel
	@rm -f $(EDITABLE)
	@$(UV) pip install --python $(BIN)/python --no-deps --reinstall --compile-bytecode dist/*.whl
	$(BIN)/pytest --numprocesses $(PROCESSES) --no-loadscope-reorder -m $(1) $(PYTEST); status=$$?; $(MAKE) --no-print-directory $(EDITABLE); exit $$status
endef

test: $(DEPENDENCIES) ## all checks, then the tests against the built wheel, but for the slow ones
	@$(AT_ONCE) check installed wheel
	$(call against_the_wheel,"not slow")

slow: setup wheel ## the tests that are marked as slow: whole installations, kills, hundreds of worlds
	$(call against_the_wheel,slow)

release: setup ## build and check what would be released: sdist and wheel of the last commit, each installed alone
	@$(BIN)/python -m benchmarks.release

# The jars are fetched while Python compiles and Airflow starts; whoever needs them first waits for them.
demo: $(EDITABLE) ## Kafka, consumers, Airflow and a mailbox on this machine; ONCE=1 ends after one round
	@$(MAKE) --silent --no-print-directory jars & ONCE=$(ONCE) exec $(BIN)/python -m demo

HOURS ?= 24
RUNS ?= 288
KILLS ?= 100
order: setup ## one day in one run, in 288, backwards, four at once, twice, killed: the same rows? (hours)
	@$(BIN)/python -m benchmarks.order $(HOURS) $(RUNS) $(KILLS) $(ONLY)

truth: setup ## what real clients did against what is measured, and incidents against their verdicts, as tables (12 minutes)
	@$(BIN)/python -m benchmarks.truth && $(BIN)/python -m benchmarks.truth_estate

compatibility: setup ## which releases of Kafka, and brokers that can do less, can be measured, as tables (about 10 minutes)
	@$(BIN)/python -m benchmarks.compatibility $(ONLY)

faults: setup ## break brokers, database, disk and mail server while the steps run, as a table; ONLY=kafka or store
	@$(BIN)/python -m benchmarks.faults $(ONLY)

FLIPS ?= 100
damage: setup ## damage a store in every way: what is seen, said, repaired and lost, as tables (about 20 minutes)
	@$(BIN)/python -m benchmarks.damage $(FLIPS)

mutate: $(EDITABLE) ## would the tests notice a wrong line, as a table (hours); ONLY=evaluate SAMPLE=60 SEED=1 for less
	@$(BIN)/python -m benchmarks.mutation $(if $(ONLY),--only '$(ONLY)') $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED))

SEEDS ?= 1000
FIRST ?= 0
simulate: setup ## worlds made of one number each: does the truth lie in the bounds? SEEDS=10000, or SEED=7 to replay and draw one
	@$(BIN)/python -m benchmarks.simulation $(if $(SEED),--seed $(SEED),$(SEEDS) --first $(FIRST))

planted: setup ## which of the bugs of benchmarks/simulation/planted.toml are found, by which seed (SEEDS at most)
	@$(BIN)/python -m benchmarks.simulation $(SEEDS) --planted

LIFE ?= 2016 1000
lifetime: setup ## a week of runs on one store, with kills and nightly tidying: what grows, what is lost? (hours); LIFE='60 100' is small, FOLDER=… goes on after an interruption
	@$(BIN)/python -m benchmarks.lifetime $(LIFE) $(FOLDER)

checkpoint: setup ## the checkpoint folder of a real Kafka query of Spark, as the tests keep it (about 1 minute)
	@$(BIN)/python -m benchmarks.checkpoint tests/kafka_sla/sources/checkpoint

speed: setup ## how fast it is, beside what, into docs/reference (many hours); ONLY=merge for one table
	@$(BIN)/python -m benchmarks.speed $(ONLY)

browser: chromium ## every page and mail in a real browser; needs Chromium (apt-get install chromium, or CHROMIUM=path)
	$(BIN)/pytest tests/browser/pages_in_chromium.py tests/browser/mails_in_chromium.py $(PYTEST)

pictures: chromium ## draw the pictures of README and docs anew, into docs/pictures (about 10 minutes)
	@$(BIN)/python -m tests.browser.pictures

.PHONY: chromium
chromium: setup
	@command -v "$${CHROMIUM:-chromium}" >/dev/null || { echo "Chromium is needed: apt-get install chromium, or make $(MAKECMDGOALS) CHROMIUM=/path/to/chromium"; exit 1; }
	@$(UV) pip install --python $(BIN)/python --constraint constraints.txt playwright axe-playwright-python

matrix: setup wheel ## the wheel under each Airflow, Python and Spark, as a table (10 minutes, Python 3.11 to 3.13 on the PATH); ONLY=3.1.8 for one Airflow
	@$(BIN)/python -m benchmarks.matrix $(ONLY)

kerberos: setup ## Kerberos logins at a real broker, with a real KDC (1 minute); needs a compiler, Kerberos' headers and its KDC
	@command -v krb5-config >/dev/null && PATH="$$PATH:/usr/sbin" command -v krb5kdc >/dev/null || { echo "Kerberos is needed: apt-get install gcc libkrb5-dev krb5-kdc krb5-admin-server krb5-user"; exit 1; }
	@$(UV) pip install --python $(BIN)/python --constraint constraints.txt gssapi k5test
	PATH="$$PATH:/usr/sbin" $(BIN)/pytest tests/kafka_sla/sources/kafka/login/logins_by_kerberos.py $(PYTEST)

fab: setup ## logins, roles and a public role of Airflow's FAB auth manager, at a real web server (5 minutes)
	@$(UV) pip install --python $(BIN)/python --constraint constraints.txt apache-airflow-providers-fab
	$(BIN)/pytest tests/kafka_sla/web/logins_by_fab.py $(PYTEST)

AZURITE ?= azurite-blob
warehouses: setup ## warehouses in the emulators of Azure's and Google's stores (15 minutes); needs Azurite
	@command -v "$(AZURITE)" >/dev/null || { echo "Azurite is needed: npm install --global azurite, or make warehouses AZURITE=/path/to/azurite-blob"; exit 1; }
	@$(UV) pip install --python $(BIN)/python --constraint constraints.txt gcp-storage-emulator
	AZURITE="$(AZURITE)" $(BIN)/pytest tests/kafka_sla/warehouses_elsewhere.py $(PYTEST)

trino: setup ## a Trino that is unpacked already reads the tables; TRINO=/path/to/trino-server-476 TRINO_JAVA=/path/to/java
	@test -d "$(TRINO)/plugin/iceberg" || { echo "Trino is needed: unpack io.trino:trino-server from Maven Central (0.8 GB), then make trino TRINO=/path/to/it; TRINO_JAVA names the Java that it wants"; exit 1; }
	$(BIN)/pytest tests/kafka_sla/lake/tables_in_trino.py $(PYTEST)

engines: $(EDITABLE) ## DuckDB's iceberg_scan and Polars read the tables, each in an environment of its own (1 minute)
	$(BIN)/pytest tests/kafka_sla/lake/tables_elsewhere.py $(PYTEST)

pages: setup ## how fast the pages answer with a year published (about 10 minutes, 10 GB of disk)
	@$(BIN)/python -m benchmarks.pages

constraints: $(BIN)/uv ## the newest releases that setup.cfg and constraints-held.txt allow, into constraints.txt
	@echo setuptools | $(UV) pip compile --upgrade --all-extras --no-annotate --no-header --python-version 3.11 \
		--constraint constraints-held.txt --output-file constraints.txt setup.cfg -

ADVISORIES ?= pypi
audit: $(BIN)/uv ## known advisories against constraints.txt; ADVISORIES=osv asks there and not the package index
	@$(UV) tool run pip-audit --strict --no-deps --disable-pip --vulnerability-service $(ADVISORIES) \
		--requirement constraints.txt

clean: ## remove everything that make made, except what all clones of this user share (Kafka's jars)
	rm -rf $(VENV) .work dist build *.egg-info plugins/*.egg-info .mypy_cache .pytest_cache .ruff_cache
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/uv: constraints.txt
	@command -v java >/dev/null || test -x "$$JAVA_HOME/bin/java" || { echo "Java 17 is needed: install it, or set JAVA_HOME"; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is needed; another name: make setup PYTHON=/path/to/python3.11"; exit 1; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@touch $@

$(DEPENDENCIES): $(BIN)/uv setup.cfg constraints.txt
	@echo "installing dependencies (about a minute, once)"
	@$(UV) pip install --python $(BIN)/python --constraint constraints.txt setuptools
	@$(UV) pip install --python $(BIN)/python --constraint constraints.txt --no-build-isolation --editable '.[test]'
	@touch $@ && touch $(EDITABLE)

$(EDITABLE): $(DEPENDENCIES) pyproject.toml
	@$(UV) pip install --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@
