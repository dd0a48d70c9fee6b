"""The text of `python -m runner --help`, made from the studies, scales and figures that exist."""

from hydra._internal.utils import get_args_parser

from runner.configs import figure_names, headline
from runner.studies import configs

EXAMPLES = """\
  python -m runner study=bn_only target_width=7 sparsity=0.37 scale=smoke
  python -m runner -m study=bn_only target_width=5,10,15
  python -m runner figure=fig4 scale=smoke"""


def text() -> str:
    """Studies, scales, figures, three examples, then Hydra's own flags."""
    studies = {name: (cls.__doc__ or "").split("\n")[0] for name, cls in configs().items()}
    scales = {name: headline("scale", name) for name in ("smoke", "quick", "paper")}
    figures = {name: headline("figure", name) for name in figure_names()}
    parts = [
        "usage: python -m runner [-m] [study=...] [scale=...] [figure=...] [key=value ...]",
        "Studies (study=...):\n" + _listing(studies),
        "Scales (scale=...):\n" + _listing(scales),
        "Figures (figure=...):\n" + _listing(figures),
        "Examples:\n" + EXAMPLES,
        "A study's parameters and their help: conf/study/<study>.yaml and the study's config.py.\n"
        "All values of a command: python -m runner study=bn_only --cfg job",
        "Hydra's own flags:\n" + _listing(_hydra_flags()),
    ]
    return "\n\n".join(parts)


def _hydra_flags() -> dict[str, str]:
    actions = get_args_parser()._actions
    return {
        ", ".join(action.option_strings): str(action.help).split("\n")[0]
        for action in actions
        if action.option_strings and isinstance(action.help, str)
    }


def _listing(entries: dict[str, str]) -> str:
    width = max(map(len, entries), default=0)
    return "\n".join(f"  {name:<{width}}  {about}" for name, about in entries.items())
