import re
from dataclasses import fields, make_dataclass
from typing import ClassVar

import pytest

from runner.core.catalogue import configs, module_of, paper_folder
from runner.core.errors import InputError
from runner.core.studies import LARGEST_FACTOR, LARGEST_STEP, StudyConfig, parameter
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs.run import run_name


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"target_width": 0}, "target_width=0 must be at least 1"),
        ({"sparsity": 1.5}, "sparsity=1.5 must be above 0 and at most 1"),
        ({"sparsity": 0.0}, "sparsity=0.0 must be above 0"),
        ({"sparsity": float("nan")}, "sparsity=nan must be"),
        ({"methods": []}, r"methods=\[\] is empty"),
        ({"methods": ["sgd", "dens"]}, "did you mean 'dense'"),
        ({"methods": ["sgd", "sgd"]}, "holds sgd twice"),
        ({"seed": -1}, "seed=-1 must be at least 0"),
        ({"test_samples": 10**400}, "test_samples has 1329 bits: it must be at most"),
        ({"seed": 2**63}, "seed has 64 bits: it must be at most 9223372036854775807"),
        ({"replicates": 10**7}, "replicates=10000000 must be at least 1 and at most 1000000"),
    ],
)
def test_a_value_outside_its_range_is_refused(values, message):
    with pytest.raises(InputError, match=message):
        BnOnly(**values)


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


def test_every_study_has_its_module_its_help_and_described_parameters():
    for name, config_class in configs().items():
        assert issubclass(config_class, StudyConfig)
        assert callable(module_of(name).run)
        assert config_class.__doc__.strip()
        for field in config_class.__dataclass_fields__.values():
            if field._field_type.name == "_FIELD":
                assert field.metadata["help"], f"{name}.{field.name} has no help text"


def test_an_unknown_study_is_refused_with_the_nearest_name():
    with pytest.raises(InputError, match="did you mean 'bn_only'"):
        paper_folder("bn_onli")


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
