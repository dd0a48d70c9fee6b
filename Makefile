# `make help` lists the targets for users, `make help-all` all of them. SCALE, DEVICE, JOBS and STYLE work on every figure.
SCALE  ?= quick#        smoke, quick, medium or paper
DEVICE ?= auto#         auto, cpu or cuda
JOBS   ?= 2#            runs computed side by side
OUTPUTS ?= outputs#     folder of runs and figures
STYLE  ?= screen#       screen or paper: how figures are drawn
PYTHON ?= python3#      Python 3.11, 3.12 or 3.13, used once to make the virtual environment
FIGURE ?=#              the figure that `make show` shows
# Without a GPU torch's build for CPUs is enough; PyPI's for Linux brings CUDA with it.
TORCH_INDEX ?= $(if $(wildcard /proc/driver/nvidia/version),,https://download.pytorch.org/whl/cpu)

.DEFAULT_GOAL := help
INSTALLED := .venv/.installed
DEVELOPED := .venv/.developed
INSTALL := .venv/bin/python -m pip install --quiet --constraint constraints.txt
RUN := .venv/bin/python -m runner
PYTEST := .venv/bin/python -m pytest -n auto --maxprocesses 4 --dist worksteal
FIGURES := $(basename $(notdir $(wildcard conf/figure/*.yaml)))
LAUNCHER := $(if $(filter-out 1,$(strip $(JOBS))),hydra/launcher=joblib hydra.launcher.n_jobs=$(strip $(JOBS)))

.PHONY: help help-all setup show figures report reference figures-from-reference compare claims gallery docs test test-more test-quick lint bench clean
.PHONY: $(FIGURES)

# A target with "## " is for users; one with "### " is for work on this repository.
help: ### list the targets for users
	@printf 'fig4\t%s\n' 'make a figure: its runs, its drawing, its verdicts; runner show lists all names' | expand -t 24
	@grep -hE '^[a-z-]+:[^#]*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 24
	@echo 'More: make help-all'

help-all: ### list all targets and all figures
	@grep -hE '^[a-z-]+:[^#]*###? ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*###? /\t/' | expand -t 24
	@for f in $(FIGURES); do \
	  printf '%s\t%s\n' $$f "$$(sed -n '2s/^# //p' conf/figure/$$f.yaml)"; done | expand -t 24

setup: $(INSTALLED) ## make the virtual environment .venv and install what running needs

$(INSTALLED): pyproject.toml constraints.txt
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@.venv/bin/python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
	  { echo 'Python 3.11, 3.12 or 3.13 is needed: make setup PYTHON=python3.11'; rm -rf .venv; exit 1; }
	$(if $(strip $(TORCH_INDEX)),.venv/bin/python -m pip install --quiet --retries 1 --no-deps \
	  --constraint constraints.txt --index-url $(strip $(TORCH_INDEX)) torch || echo "taking torch from PyPI")
	$(INSTALL) --editable '.[scale-out]'
	@touch $@

$(DEVELOPED): $(INSTALLED)
	$(INSTALL) --editable '.[dev,docs,scale-out]'
	@touch $@

$(FIGURES): $(INSTALLED)
	$(RUN) figure=$@ scale=$(strip $(SCALE)) device=$(strip $(DEVICE)) outputs=$(strip $(OUTPUTS)) style=$(strip $(STYLE)) $(LAUNCHER)

show: $(INSTALLED) ## show a figure of the reference, FIGURE=fig4, or list what can be shown; compute nothing
	$(RUN) show $(strip $(FIGURE))

figures: $(INSTALLED) ## make all figures, all their runs in one pool, with a summary
	$(RUN) figures scale=$(strip $(SCALE)) device=$(strip $(DEVICE)) outputs=$(strip $(OUTPUTS)) style=$(strip $(STYLE)) $(LAUNCHER)

report: $(INSTALLED) ## write the gallery, outputs/report/index.html: all figures and claims, yours and the reference's
	$(RUN) report outputs=$(strip $(OUTPUTS))

reference: $(INSTALLED) ### keep the tables behind all figures made so far in outputs/reference
	.venv/bin/python scripts/reference.py keep scale=$(strip $(SCALE)) outputs=$(strip $(OUTPUTS))

figures-from-reference: $(INSTALLED) ## draw all figures from outputs/reference, compute nothing
	.venv/bin/python scripts/reference.py draw outputs=$(strip $(OUTPUTS)) style=$(strip $(STYLE))

claims: $(INSTALLED) ## list all statements with their rules and planned numbers, compute nothing
	$(RUN) claims scale=$(strip $(SCALE))

gallery: $(INSTALLED) ### docs/gallery.md, pictures and tables of the documents, from outputs/reference
	.venv/bin/python scripts/gallery.py

docs: $(DEVELOPED) ## build the documentation, with executed notebooks: outputs/site/index.html
	.venv/bin/python scripts/notebooks.py scale=$(strip $(SCALE)) jobs=$(strip $(JOBS)) outputs=$(strip $(OUTPUTS))
	NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --quiet --strict --config-file docs/site/mkdocs.yml \
	  --site-dir '$(abspath $(strip $(OUTPUTS)))/site'
	$(RUN) report outputs=$(strip $(OUTPUTS))/site-report
	cp -r '$(strip $(OUTPUTS))/site-report/report' '$(strip $(OUTPUTS))/site/'

compare: $(INSTALLED) ## say where your results differ from outputs/reference by more than chance
	$(RUN) compare scale=$(strip $(SCALE)) outputs=$(strip $(OUTPUTS))

test: $(DEVELOPED) ## run the tests: every kind of check once
	$(PYTEST) -m 'not more'

test-more: $(DEVELOPED) ### run the tests that repeat a check of `make test` on more samples
	$(PYTEST) -m 'more or hypothesis' --hypothesis-profile many

test-quick: $(DEVELOPED) ### run the quick tests: formulas, engines, claims, wrong input, layers, pages
	$(PYTEST) -m 'not long and not more' $(addprefix tests/,core data networks training theory \
	  papers results compose/test_composing.py commands/test_wrong_input.py test_architecture.py docs/test_words.py)

lint: $(DEVELOPED) ### check style with ruff, types with mypy, and the import layers with import-linter
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

bench: $(INSTALLED) ### measure speed against the baseline, as ratios from one run
	PYTHONPATH=scripts .venv/bin/python -m bench --outputs '$(strip $(OUTPUTS))' $(strip $(STUDY))

clean: ### remove caches, never outputs
	rm -rf .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
