# Two commands for a fresh machine that has Python and make:
#   make e2e    the smoke suite: real verl on two simulated NPUs
#   make test   the project's own tests
# And:
#   make docs   the documentation as a site, in build/site
#   make faults each check on a real training made wrong on purpose, about ten minutes
# Both create the environment when it is missing or its package lists changed, and need no network after that.

PYTHON ?= python3
VENV   ?= .venv
RUN    := $(VENV)/bin/python
STAMP  := $(VENV)/.installed
# PyTorch's own index of CPU builds, asked only where pip does not find the pinned CPU build by itself.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

.PHONY: e2e test faults check plan docs clean

e2e: $(STAMP)
	$(RUN) -m pytest tests/e2e_npu --runner sim-2 --junitxml=e2e-runs/junit.xml

faults: $(STAMP)
	$(RUN) -m pytest tests/faults -v

test: $(STAMP) check
	$(RUN) -m pytest -n 2 --dist loadfile tests/unit tests/plugin tests/system tests/docs

check: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

plan: $(STAMP)
	$(RUN) -m pytest tests/e2e_npu --e2e-plan

# In an environment of its own: it needs nothing of the simulation's.
docs: $(STAMP)
	$(RUN) -m tools.reference
	[ -x $(VENV)-docs/bin/mkdocs ] || ( $(PYTHON) -m venv $(VENV)-docs && $(VENV)-docs/bin/pip install --quiet "mkdocs-material>=9.5" )
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --quiet

clean:
	rm -rf $(VENV) $(VENV)-docs

$(STAMP): requirements/sim.txt requirements/dev.txt requirements/megatron.txt pyproject.toml requirements/install.sh
	PYTHON="$(PYTHON)" VENV="$(VENV)" TORCH_INDEX="$(TORCH_INDEX)" sh requirements/install.sh
	touch $@
