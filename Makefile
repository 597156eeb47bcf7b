# The two commands a fresh machine needs: `make test` and `make demo`. Both make their own virtual environment here.

PYTHON ?= python3
CLAUDE ?=

.PHONY: test demo clean

test: .venv/.dev
	.venv/bin/python -m pytest -q -n 3 --dist loadgroup -m 'not real and not alone'
	.venv/bin/python -m pytest -q -m 'real or alone'

demo: .venv-demo/.cli
	.venv-demo/bin/python -m ccc_hookspecs.host.demo $(if $(CLAUDE),--claude "$(CLAUDE)")

.venv/.dev: pyproject.toml setup.cfg
	$(call install,.venv,.[dev])

.venv-demo/.cli: pyproject.toml setup.cfg
	$(call install,.venv-demo,.[cli])

clean:
	rm -rf .venv .venv-demo .venv-oldest .venv-3.12 .venv-3.13 .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info

define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(1)
	$(1)/bin/python -m pip install --quiet --disable-pip-version-check --editable "$(2)"
	@touch $@
endef
