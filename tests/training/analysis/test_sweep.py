import json
from pathlib import Path

import pytest
from training.saved_runs import evaluation_row, iteration_row

from azjax.training import TrainConfig
from azjax.training.analysis.sweep import SweepRun, is_finished, read_sweep
from azjax.training.run.schedule import new_schedule, write_schedule


@pytest.fixture
def written(tmp_path):
    """Writes a file and reads its runs."""

    def read(text):
        path = tmp_path / "sweep.toml"
        path.write_text(text)
        return read_sweep(path)

    return read


def test_every_combination_is_a_run_named_by_its_values(written):
    runs = written(
        """
        minutes = 5
        trunk = ["dense", "conv"]
        [learner]
        batch_size = [128, 256]
        """
    )
    assert [run.name for run in runs] == [
        "trunk=dense,batch-size=128",
        "trunk=dense,batch-size=256",
        "trunk=conv,batch-size=128",
        "trunk=conv,batch-size=256",
    ]
    assert runs[1].options == (
        "--minutes=5",
        "--trunk=dense",
        "--learner.batch-size=256",
    )


FLAG, NAME = "--exact-lanes=true", "--self-play.num-simulations"


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        (
            "exact_lanes = true\nself_play.num_simulations = [[16, 32], 32]",
            [
                ("num-simulations=16-32", (FLAG, NAME, "16", "32")),
                ("num-simulations=32", (FLAG, f"{NAME}=32")),
            ],
        ),
        # Settings with the same last part have full names.
        (
            "replay.window = [0.5]\nnetwork.trunk.window = [3]",
            [
                (
                    "replay.window=0.5,network.trunk.window=3",
                    ("--replay.window=0.5", "--network.trunk.window=3"),
                )
            ],
        ),
        # Paths are no directories of a name.
        ('from = ["../runs/a"]', [("from=.._runs_a", ("--from=../runs/a",))]),
        ("seed = 3", [("run", ("--seed=3",))]),
    ],
)
def test_a_run_has_a_name_and_options(written, text, runs):
    assert written(text) == [SweepRun(*run) for run in runs]


GRID = "seed = [0, 1, 2, 3]\nminutes = [1, 2, 3, 4]\n"


def test_random_runs_differ_and_more_samples_keep_the_first_ones(written):
    def drawn(samples, seed):
        text = f"samples = {samples}\nsample_seed = {seed}\n{GRID}"
        return [run.name for run in written(text)]

    grid = {run.name for run in written(GRID)}
    assert set(drawn(16, seed=0)) == grid
    assert drawn(16, seed=0)[:5] == drawn(5, seed=0)
    assert len({tuple(drawn(16, seed)) for seed in range(4)}) > 1
    # Of a huge grid as well.
    lines = [f"s{number} = [1, 2, 3, 4, 5, 6, 7]" for number in range(12)]
    runs = written("\n".join(["samples = 9", "sample_seed = 1", *lines]))
    assert len({run.options for run in runs}) == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = [", "is no TOML file"),
        ("", "it has no settings"),
        ("samples = 2\nsample_seed = 1", "it has no settings"),
        ("seed = []", "seed has no values"),
        ("seed = [1, 1]", "two runs would have the name seed=1"),
        ('from = ["a/b", "a_b"]', "two runs would have the name from=a_b"),
        ("seed = 1979-05-27", "seed must be numbers, strings, or true or false"),
        ("seed = [[[1]]]", "seed must be numbers, strings, or true or false"),
        ('notes = "--run-dir"', "a value of notes begins with -"),
        ('run_dir = "x"', "run-dir must not be in the file"),
        ('game = "hex"', "game must not be in the file"),
        ("samples = 2\nseed = [1, 2]", "give sample_seed"),
        ("sample_seed = 2\nseed = [1, 2]", "give samples"),
        (
            "samples = 3\nsample_seed = 2\nseed = [1, 2]",
            "samples must be an int from 1 to 2: 3",
        ),
        (
            "learner.batch_size = 1\nlearner.batch-size = 2",
            "learner.batch-size is given twice",
        ),
        (f"seed = {list(range(1001))}", "1001 runs are more than 1000: give samples"),
        (f'notes = ["{"a" * 300}"]', "the name of a run has more than 200 letters"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(written, text, message):
    with pytest.raises(ValueError, match=message) as error:
        written(text)
    assert "sweep.toml" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_directory_and_settings_with_long_names_are_refused(written, tmp_path):
    with pytest.raises(OSError, match=f"{tmp_path.name} is not a regular file"):
        read_sweep(tmp_path)
    lines = [f"setting_{number} = [1, 2]" for number in range(30)]
    with pytest.raises(ValueError, match="more than 200 letters"):
        written("\n".join(["samples = 9", "sample_seed = 1", *lines]))


def save(run: Path, rows, length=4, checkpoint=4):
    (run / "checkpoints" / str(checkpoint)).mkdir(parents=True)
    write_schedule(run, new_schedule(("iterations", length)))
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


END = [iteration_row(4), evaluation_row(4)]


@pytest.mark.parametrize(
    ("rows", "settings", "is_over"),
    [
        (END, {}, True),
        (END[:1], {}, False),  # stopped in the last evaluation
        ([evaluation_row(2)], {}, False),
        (END, {"checkpoint": 2}, False),  # killed before the last checkpoint
        (END, {"length": 3}, False),  # its length changes
        ([], {}, False),
        (None, {}, False),  # it does not exist
    ],
)
def test_a_run_is_finished_at_its_end(tmp_path, rows, settings, is_over):
    if rows is not None:
        save(tmp_path / "run", rows, **settings)
    config = TrainConfig("tic_tac_toe", iterations=4, run_dir=str(tmp_path / "run"))
    assert is_finished(config) == is_over
