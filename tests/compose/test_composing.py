"""Every file in conf/ composes, and what a file, a word or a grid sets arrives in the jobs."""

from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from in_process import job_of, order_of

from runner.compose.composing import Composer, hydra_ready
from runner.compose.launching import Unchanged, launcher_of
from runner.core import catalogue
from runner.core.catalogue import CONF, configs, figure_study, sizes
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.core.studies import default_of
from runner.results.claims import claims_of
from runner.results.drawing import drawing_of

FIGURES = sorted(path.stem for path in (CONF / "figure").glob("*.yaml"))

CHOSEN_BY_GROUPS = {"study", "scale", "figure", "source"}
"""Settings that the defaults list chooses, each by a group of files."""

OTHER = {
    "device": "cpu",
    "outputs": "elsewhere",
    "force": True,
    "stale": "refuse",
    "fail_fast": True,
    "threads": 2,
    "wait": False,
    "checkpoint_seconds": 3.5,
    "note": "first",
    "data_folder": "images",
    "tracker": "mlflow",
    "keep_weights": True,
    "keep_checkpoint": True,
    "objective": "metrics.parameter_norm",
    "style": "paper",
}
"""Another value than the default for each setting."""

EXPERIMENT = """\
# @package _global_
defaults:
  - override /study: example20
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A user's folder, in which the experiment and the figure `mine` set OTHER and a seed."""
    monkeypatch.setenv(catalogue.FOLDERS, "")
    folder = tmp_path / "a:b c"  # any name
    for group, more in (("experiment", {}), ("figure", {"grids": {"smoke": [{}]}})):
        (folder / group).mkdir(parents=True)
        named = {"figure": "mine"} if more else {}
        text = EXPERIMENT + yaml.safe_dump({**OTHER, **more, **named, "seed": 7})
        (folder / group / "mine.yaml").write_text(text)
    catalogue.add_studies(folder)
    yield folder
    catalogue.forget()


def values_of(path):
    """The keys of a preset with their values, without what is read otherwise."""
    content = yaml.safe_load(path.read_text())
    return {key: value for key, value in content.items() if key not in ("defaults", "grids")}


def is_the_same(arrived, written):
    """Whether a value is that of the file, where a list has `inf` as a text."""
    if isinstance(written, list):
        written = [float(each) if each == "inf" else each for each in written]
    return arrived == written


def value_in(job, key):
    """What a key has in the settings or the parameters of a job."""
    return next(getattr(each, key) for each in (job.settings, job.config) if hasattr(each, key))


@pytest.mark.parametrize("study", sorted(configs()))
def test_a_study_has_its_sizes_at_every_scale_and_else_the_defaults_of_the_code(study):
    assert list(yaml.safe_load((CONF / "study" / f"{study}.yaml").read_text())) == ["defaults"]
    for scale in ("smoke", "paper"):
        job = job_of(f"study={study}", f"scale={scale}")
        assert (job.settings.study, job.settings.scale) == (study, scale)
        for item in fields(job.config):
            expected = sizes(study)[scale].get(item.name, default_of(item))
            assert is_the_same(getattr(job.config, item.name), expected), item.name


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_has_a_drawing_claims_and_a_title(figure):
    assert drawing_of(figure, figure_study(figure))
    assert claims_of(figure, figure_study(figure))
    lines = Path(CONF / "figure" / f"{figure}.yaml").read_text().splitlines()
    assert lines[0] == "# @package _global_"
    assert lines[1].startswith(("# paper ", "# supplementary to paper "))
    assert lines[2].removesuffix(" scale=medium") == f"# runner figure={figure}"


@pytest.mark.parametrize("path", sorted(CONF.glob("data/*.yaml")), ids=lambda p: p.stem)
def test_every_key_of_a_dataset_arrives(path):
    study = ("rank_collapse", "train=false") if path.stem == "gaussian" else ("breaking_bn",)
    job = job_of(f"study={study[0]}", f"data={path.stem}", *study[1:])
    for key, value in values_of(path).items():
        assert is_the_same(value_in(job, key), value), key


def test_every_setting_has_another_value_here():
    assert {item.name for item in fields(Settings)} == set(OTHER) | CHOSEN_BY_GROUPS
    for key, value in OTHER.items():
        assert getattr(Settings(), key) != value


@pytest.mark.parametrize("word", ["experiment=mine", "figure=mine"])
def test_settings_in_a_file_arrive_and_arguments_replace_them(own, word):
    job = job_of(word, "scale=smoke")
    assert {key: getattr(job.settings, key) for key in OTHER} == OTHER
    assert job.config.seed == 7
    job = job_of(word, "scale=smoke", "seed=9", "threads=3")
    assert (job.config.seed, job.settings.threads) == (9, 3)


def points(grids, typed):
    with hydra_ready():
        return Composer().points(grids, typed)


def test_a_union_of_grids_is_the_sum_of_products_without_repetitions():
    grids = [{"seed": "1,2", "depth": "null"}, {"seed": "2", "depth": "null,3"}]
    assert points(grids, ["width=4"]) == [
        ["seed=1", "depth=null", "width=4"],
        ["seed=2", "depth=null", "width=4"],
        ["seed=2", "depth=3", "width=4"],
    ]
    assert points([{"seed": "1,2", "depth": "5"}], ["seed=7,8"]) == [
        ["depth=5", "seed=7"],
        ["depth=5", "seed=8"],
    ]


def test_a_figure_has_another_name_where_its_runs_are_others():
    plain = order_of("figure=rank-fig3b", "scale=smoke").figures[0]
    same = order_of("figure=rank-fig3b", "scale=smoke", f"seed={plain.runs[0].config.seed}")
    assert same.figures[0].is_canonical and same.figures[0].overrides == ()
    other = order_of("figure=rank-fig3b", "scale=smoke", "chains=3").figures[0]
    assert other.name.startswith("rank-fig3b-") and other.overrides == ("chains=3",)
    assert "chains=3" in other.arguments
    style = order_of("figure=rank-fig3b", "scale=smoke", "style=paper", "outputs=x").figures[0]
    assert style.is_canonical and style.style == "paper"


# ------------------------------------------------------------- what is typed arrives as it is


@pytest.mark.parametrize(
    "typed",
    ["2024_05_01", "1e3", "true", "/x/дані", "a=b", "it's", "a,b", "q\\'x", "{a}", "[x]", "~x y"],
)
def test_a_path_arrives_as_typed(typed):
    job = job_of("study=example20", f"outputs=/tmp/{typed}", f"data_folder={typed}")
    assert (job.settings.outputs, job.settings.data_folder) == (f"/tmp/{typed}", typed)


def test_quotes_and_functions_of_hydra_are_left_to_hydra():
    job = job_of("study=example20", "outputs='a b'", "data_folder=null")
    assert (job.settings.outputs, job.settings.data_folder) == ("a b", None)
    for word in ("activation=choice(linear,relu)", "activation='linear',relu"):
        jobs = order_of("study=rank_collapse", word, multirun=True).jobs
        assert [job.config.activation for job in jobs] == ["linear", "relu"]


@pytest.mark.parametrize(
    ("study", "word", "value"),
    [
        ("rank_collapse", "train=${oc.env:T}", False),
        ("rank_collapse", "depth=${oc.env:N}", 7),
        ("rank_collapse", "width=1e3", 1000),
        ("bn_only", "widths=[1e3,5]", [1000, 5]),
        ("bottleneck", "ridge=1", 1.0),
    ],
)
def test_values_have_the_types_of_their_parameters(study, word, value, monkeypatch):
    monkeypatch.setenv("T", "false")
    monkeypatch.setenv("N", "7")
    key = word.partition("=")[0]
    job = job_of(f"study={study}", word)
    assert repr(getattr(job.config, key)) == repr(value)
    with hydra_ready():  # as the launcher does, for callbacks
        again = compose("config", list(job.overrides))[key]
    assert again == value


def test_one_way_of_composing_gives_one_name():
    words = ("scale=smoke", "learning_rate=1")
    figure = order_of("figure=fig4", *words).figures[0]
    run = job_of("study=bn_only", "target_width=3", *words).run
    assert all(each.config.learning_rate == 1.0 for each in figure.runs)
    assert isinstance(run.config.learning_rate, float)
    with pytest.raises(InputError, match="seed"):
        order_of("figure=bottleneck-example20", "seed=true,2")


def test_the_values_of_a_range_have_twelve_digits():
    jobs = order_of("study=bottleneck", "ridge=range(0.1,0.4,0.1)", multirun=True).jobs
    assert [job.config.ridge for job in jobs] == [0.1, 0.2, 0.3]


def test_now_is_one_moment_for_all_jobs_of_a_command():
    words = ("study=example20", "outputs=r_${now:%f}", "seed=range(0,5)")
    assert len({job.settings.outputs for job in order_of(*words, multirun=True).jobs}) == 1


SWEEPING = EXPERIMENT + "hydra: {sweeper: {params: {seed: '1,2,3'}}}\n"


def test_an_experiment_may_sweep_alone_and_not_beside_others(own):
    (own / "experiment" / "sweeps.yaml").write_text(SWEEPING)
    (own / "experiment" / "plain.yaml").write_text(EXPERIMENT)
    assert [job.config.seed for job in order_of("experiment=sweeps").jobs] == [1, 2, 3]
    assert [job.config.seed for job in order_of("experiment=sweeps", "seed=7").jobs] == [7]
    with pytest.raises(InputError, match="run each experiment alone"):
        order_of("experiment=sweeps,plain", multirun=True)


GRIDS = "grids: [{seed: [1, 2]}, {seed: 7, grid: 3}]\n"


def test_a_union_of_grids_is_typed_or_stands_in_an_experiment(own):
    (own / "experiment" / "pairs.yaml").write_text(EXPERIMENT + GRIDS)
    study = EXPERIMENT.partition("/study: ")[2].split()[0]
    typed = order_of(f"study={study}", "grids=[{seed: [1, 2]}, {seed: 7, grid: 3}]").jobs
    for jobs in (typed, order_of("experiment=pairs").jobs):
        assert [job.config.seed for job in jobs] == [1, 2, 7] and jobs[2].config.grid == 3
    assert not any("grids" in str(job.run) for job in typed)
    typed = order_of(f"study={study}", "grids=[{seed: [1, 2], grid: 3}]").jobs
    assert all("grid=3" in str(job.run) for job in typed), "also what all runs share"


def test_a_launcher_of_an_experiment_is_chosen(own):
    text = EXPERIMENT + "  - override /hydra/launcher: joblib\n"
    (own / "experiment" / "joblib.yaml").write_text(text)
    order = order_of("experiment=joblib", "seed=1,2", multirun=True)
    assert order.composed.hydra.runtime.choices["hydra/launcher"] == "joblib"


def test_hydra_is_left_as_it_was_found():
    from hydra import compose, initialize_config_dir

    with initialize_config_dir(str(CONF), version_base="1.3"):
        before = GlobalHydra.instance().hydra
        assert job_of("study=example20").config.study == "example20"
        assert GlobalHydra.instance().hydra is before
        compose(overrides=[])
    job_of("study=example20")
    assert not GlobalHydra.instance().is_initialized()


def test_only_callbacks_have_hydra_compose_each_job():
    counted = "++hydra.callbacks.one._target_=collections.Counter"
    for words, composes in (((), False), ((counted,), True)):
        with hydra_ready():
            composed = compose("config", ["study=example20", *words], return_hydra_config=True)
            launcher = launcher_of(composed, print)
        loader = launcher.hydra_context.config_loader
        assert isinstance(loader, Unchanged) != composes
        if not composes:
            assert loader.load_sweep_config(composed, ["seed=7"]) == composed
