import re
from dataclasses import fields, make_dataclass
from typing import ClassVar

from runner.core.catalogue import configs
from runner.core.studies import LARGEST_FACTOR, LARGEST_STEP, parameter
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs.run import run_name


def test_the_name_holds_the_knobs_and_the_hash_ignores_what_equals_its_default():
    assert run_name(BnOnly()).startswith("defaults-")
    assert run_name(BnOnly(target_width=7)).startswith("target_width=7-")
    assert run_name(BnOnly(target_width=7)) != run_name(BnOnly(target_width=8))
    assert run_name(BnOnly(seed=1)) != run_name(BnOnly())


def test_a_new_field_with_a_default_does_not_move_old_runs():
    extended = make_dataclass(
        "Extended", [("more", int, parameter("new", 3))], bases=(BnOnly,), frozen=True
    )
    assert run_name(extended(target_width=7)) == run_name(BnOnly(target_width=7))
    assert run_name(extended(more=4)) != run_name(BnOnly())


def test_a_new_version_of_a_study_moves_its_runs():
    class Changed(BnOnly):
        version: ClassVar[int] = BnOnly.version + 1

    assert run_name(Changed()) != run_name(BnOnly())


FACTOR = re.compile("ridges?|weight_decays?|gains?|step_size|noise|input_noise")
STEP = re.compile("(dense_)?learning_rates?|plain_rate")


def test_what_a_loss_or_a_step_is_multiplied_by_has_a_largest_value():
    """With more, Adam takes no step at all in float32, and a network stays as it started."""
    found = {
        (study, item.name): item.metadata["maximum"]
        for study, config in configs().items()
        for item in fields(config)
        if FACTOR.fullmatch(item.name) or STEP.fullmatch(item.name)
    }
    assert len(found) >= 20
    for (study, name), maximum in found.items():
        expected = LARGEST_FACTOR if FACTOR.fullmatch(name) else LARGEST_STEP
        assert maximum == expected, f"{study} {name}"
