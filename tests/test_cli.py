import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from unittest import mock

import pytest
from commands.refusal import assert_refused, refusal
from play.front_end import answers_to
from shared_programs import shared_programs

from azjax import __main__ as program
from azjax import cli, games
from azjax import program as azjax_program
from azjax.commands import train as train_module
from azjax.settings import FORMAT
from azjax.training import TrainConfig
from azjax.training.config import QConfig
from azjax.training.loop import AlphaZero
from azjax.training.run.directory import open_run_directory
from azjax.training.run.display import Reporter
from azjax.training.run.optimizer_identity import DEFAULT

# The settings of `training.tiny_runs.config`, whose programs these runs share.
TINY_TEXT = """
    --network.trunk.width 16 --network.trunk.num-blocks 1
    --network.trunk.stem-channels 8 --network.trunk.window 3
    --network.line-length 0 --num-lanes 2
    --self-play.num-games 8 --self-play.moves-per-chunk 4
    --self-play.num-simulations 2 --self-play.temperature-moves 2
    --replay.capacity 128 --replay.min-window 104 --replay.min-positions 64
    --learner.batch-size 16 --learner.replay-ratio 1
    --evaluation.num-evaluations 2 --evaluation.num-positions 32
    --evaluation.num-simulations 2
    --evaluation.num-games 4 --checkpoint.every-minutes 0
"""
TINY = TINY_TEXT.split()
HEADER = "moves,q0,q1,q2,q3,q4,q5,q6,q7,q8"


def training(run_dir, *args):
    """Returns the command of a tiny run."""
    length = [] if "--iterations" in args else ["--iterations", "2"]
    return "train", "tic_tac_toe", "--run-dir", str(run_dir), *TINY, *args, *length


@pytest.fixture(scope="module", autouse=True)
def quick_runs():
    """Makes all runs compile once."""
    with shared_programs():
        yield


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Returns the directory of a finished run, and its output."""
    directory = tmp_path_factory.mktemp("runs") / "tiny"
    with contextlib.redirect_stdout(io.StringIO()) as out:
        cli.main(training(directory))
    return directory, out.getvalue()


@pytest.fixture(scope="module")
def run(trained):
    return trained[0]


def content(directory):
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_games_are_listed_with_their_sizes(capsys):
    cli.main(["games"])
    out = capsys.readouterr().out
    for name in games.available():
        assert name in out
    assert "3×3×2" in out  # noqa: RUF001
    assert "42 moves" in out


def test_training_prints_results_and_commands(trained):
    directory, out = trained
    assert "train tic_tac_toe for 2 iterations" in out
    assert "azjax play tic_tac_toe" in out
    assert (directory / "player" / "player.safetensors").exists()


@pytest.fixture(scope="module")
def evaluated(run, tmp_path_factory):
    """Evaluates a run on a file of positions; returns the JSON object and the table."""
    path = tmp_path_factory.mktemp("positions") / "positions.csv"
    path.write_text(
        f"set,{HEADER}\nopening,,0,0,0,0,0,0,0,0,0\n"
        "\x1bend,1245,,,1,,,0,0,0,0\n\x1bend,12453,,,,,,-1,1,-1,-1\n"
    )
    options = ["--positions", str(path), "--simulations", "2", "--games", "0"]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        cli.main(["evaluate", str(run), *options, "--json"])
        cli.main(["evaluate", str(run), *options])
    return out.getvalue().split("\n", 1)


def test_evaluate_accepts_a_file_of_positions(evaluated):
    found = json.loads(evaluated[0])
    for player in ("network", "search"):
        groups = found[player]["groups"]
        counts = {name: group["positions"] for name, group in groups.items()}
        assert counts == {"opening": 1, "\x1bend": 2}
        assert 0 <= found[player]["mean"] <= 1
        assert all(0 <= group["mistake_rate"] <= 1 for group in groups.values())
    assert found["search"]["groups"]["opening"]["mistake_rate"] == 0
    assert found["matches"] == []
    assert "mistakes against perfect play" in evaluated[1]
    assert "?end" in evaluated[1]
    assert "\x1bend" not in evaluated[1]


def test_the_player_of_a_run_plays(run):
    command = ("play", "tic_tac_toe", "--opponent", f"network:{run}")
    status, output = answers_to(b"b2\nquit\n", *command)
    assert status == 0
    assert f"network:{run} plays" in output.decode()


def test_a_finished_run_can_be_started_again(run, capsys):
    before = content(run / "checkpoints")
    cli.main(training(run))
    assert "finished after iteration 2" in capsys.readouterr().out
    assert content(run / "checkpoints") == before


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["train", "nim"], "unknown game 'nim'; known games: breakthrough, chess"),
        (["train", "tic_tac_toe:3"], "tic_tac_toe has no option '3'; it has none"),
        (
            ["train", "tic_tac_toe", "--minutes", "0"],
            "minutes must be a number > 0 and <= 1000000000: 0.0",
        ),
        (
            ["train", "tic_tac_toe", "--minutes", "1", "--iterations", "1"],
            "exactly one of minutes and iterations",
        ),
        (
            ["train", "--minutes", "3", "tic_tac_toe"],
            "the game must come first: azjax train GAME [OPTIONS]",
        ),
        (["play", "nim"], "unknown game 'nim'"),
        (["play", "tic_tac_toe", "--opponent", "god"], "unknown player 'god'; players"),
        (["play", "tic_tac_toe", "--seed", "-1"], "--seed must be an int from 0"),
        (["evaluate", "nowhere"], "no player in nowhere, which does not exist"),
        (["evaluate", "pretrained"], "requires a game: --game NAME"),
        (["evaluate", "x", "--games", "3"], "--games must be even, from 0 to"),
        (
            ["evaluate", "x", "--simulations", "0"],
            "--simulations must be an int",
        ),
        (
            ["evaluate", "x", "--seed", str(2**32)],
            "an int from 0 to 2**32 - 1: 4294",
        ),
        (["train", "tic_tac_toe", "--preset", "gpu"], "('auto', 'cpu', 'accelerator')"),
        (["train", "tic_tac_toe", "--minuts", "3"], "did you mean --minutes?"),
        (
            ["train", "tic_tac_toe", "--self-play.num-games", "0"],
            "games must be an int >= 1: 0",
        ),
        (
            ["train", "tic_tac_toe", "--learner.replay-ratio", "many"],
            "--learner.replay-ratio FLOAT",
        ),
        (
            ["solve"],
            "train-q, evaluate, compare, data, import-games, reanalyze, arena, play, "
            "review, gtp, uci, export, push, pull, serve",
        ),
        (["trian", "tic_tac_toe"], "did you mean train?"),
        (["evaluate"], "missing: RUN; see azjax evaluate --help"),
        (["train-q"], "missing: GAME; see azjax train-q --help"),
        (["play", "--oponent", "random", "hex"], "did you mean --opponent?"),
        (["play", "hex", "go"], "Unrecognized options: go; see azjax play --help"),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line(capsys, args, says):
    assert_refused(capsys, says, *args)


@pytest.mark.parametrize(
    ("command", "kind"), [("train", TrainConfig), ("train-q", QConfig)]
)
def test_help_has_the_defaults_of_the_game_not_those_of_a_run_in_its_folder(
    command, kind, tmp_path, monkeypatch, capsys
):
    def help_text(*args):
        with pytest.raises(SystemExit) as error:
            cli.main([command, "tic_tac_toe", *args, "--help"])
        assert error.value.code in (0, None)
        return capsys.readouterr().out

    monkeypatch.chdir(tmp_path)
    defaults = help_text()
    config = kind("tic_tac_toe", minutes=4.75)
    with open_run_directory(config, DEFAULT) as directory:
        (directory / "checkpoints" / "4").mkdir(parents=True)
    assert help_text() == defaults
    assert "4.75" in help_text("--run-dir", str(config.directory))


def test_another_configuration_is_refused_with_the_differences(run, capsys):
    before = content(run)
    message, _ = refusal(capsys, *training(run, "--seed", "3"))
    assert "seed was 0, is 3" in message
    assert "give the same one to continue it, or another --run-dir" in message
    assert content(run) == before


@pytest.mark.parametrize(
    "name",
    [
        "file/run",
        "file",
        pytest.param(
            "/proc/run",
            marks=pytest.mark.skipif(
                not os.path.isdir("/proc/self"), reason="no Linux"
            ),
        ),
    ],
)
def test_a_run_directory_that_cannot_be_made_is_refused(tmp_path, capsys, name):
    (tmp_path / "file").write_text("in the way")
    message, _ = refusal(capsys, *training(tmp_path / name))
    assert str(tmp_path / name) in message
    assert "give another --run-dir" in message
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_wrong_or_missing_file_of_positions_is_refused(run, tmp_path, capsys):
    path = tmp_path / "positions.csv"
    path.write_text(f"{HEADER}\n11,,0,0,0,0,0,0,0,0\n")
    for file, says in (
        (path, f"azjax: {path}, line 2: move 2, 1, is illegal"),
        ("nowhere.csv", "nowhere.csv: No such file or directory"),
    ):
        assert_refused(capsys, says, "evaluate", run, "--positions", file)


def test_a_checkpoint_of_another_version_is_refused_and_kept(run, tmp_path, capsys):
    directory = tmp_path / "run"
    shutil.copytree(run, directory)
    for path in directory.glob("checkpoints/*/progress/metadata"):
        values = json.loads(path.read_text())
        path.write_text(json.dumps(values | {"format": AlphaZero.state_version + 1}))
    before = content(directory / "checkpoints")
    message, _ = refusal(capsys, *training(directory))
    newer = f"has format {AlphaZero.state_version + 1}"
    assert (
        f"{newer}; this version of azjax reads format {AlphaZero.state_version}:"
        in message
    )
    assert "or start a new run in another directory" in message
    assert content(directory / "checkpoints") == before


@pytest.mark.parametrize("file", ["config.json", "player/player.safetensors"])
def test_files_of_another_version_are_refused_and_kept(run, tmp_path, capsys, file):
    newer = FORMAT + 1
    directory = tmp_path / "run"
    shutil.copytree(run, directory)
    path = directory / file
    pattern, newer_format = rb'(format\\?": )\d+', rb"\g<1>%d" % newer
    path.write_bytes(re.sub(pattern, newer_format, path.read_bytes(), count=1))
    before = content(directory)
    is_player = file.startswith("player")
    command = ["evaluate", directory] if is_player else training(directory)
    assert_refused(capsys, f"its format is {newer}", *command)
    assert content(directory) == before


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 4 MB."""
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(path)]
    if not shutil.which("mount") or subprocess.run(command, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def test_a_run_continues_after_a_full_disk(small_disk, monkeypatch, capsys):
    original = Reporter.iteration

    def fill(self, row):
        original(self, row)
        if row["iteration"] == 1:
            with contextlib.suppress(OSError), filler.open("wb", 0) as file:
                while True:
                    file.write(bytes(4096))

    filler, run_dir = small_disk / "filler", small_disk / "run"
    command = training(run_dir, "--evaluation.opponents")
    with monkeypatch.context() as patch:
        patch.setattr(Reporter, "iteration", fill)
        message, _ = refusal(capsys, *command)
    assert "No space left on device; the run cannot be saved there" in message
    assert "free space, or give another --run-dir" in message
    filler.unlink()
    cli.main(command)
    rows = map(json.loads, (run_dir / "metrics.jsonl").read_text().splitlines())
    iterations = [row["iteration"] for row in rows if row["kind"] == "iteration"]
    assert iterations == [1, 2]


@pytest.mark.parametrize("number", cli.ending_signals())
def test_a_command_cleans_up_after_a_signal(monkeypatch, number):
    cleaned = []

    def killed(config, **_):
        try:
            signal.raise_signal(number)
        finally:
            signal.raise_signal(number)  # again, during the clean-up
            cleaned.append(True)

    monkeypatch.setattr(train_module, "train", killed)
    previous = signal.signal(number, signal.SIG_DFL)  # nohup ignores SIGHUP
    try:
        with pytest.raises(SystemExit) as error:
            cli.main(["train", "tic_tac_toe"])
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, previous)
    assert error.value.code == 128 + number
    assert cleaned


def test_a_hangup_and_a_closed_console_end_a_command(monkeypatch):
    monkeypatch.delattr(signal, "SIGHUP", raising=False)
    monkeypatch.setattr(signal, "SIGBREAK", 21, raising=False)
    assert cli.ending_signals() == (signal.SIGTERM, 21)
    monkeypatch.delattr(signal, "SIGBREAK")
    monkeypatch.setattr(signal, "SIGHUP", 1, raising=False)
    assert cli.ending_signals() == (signal.SIGTERM, 1)


def test_an_output_of_another_encoding_replaces_letters():
    written = io.BytesIO()
    output = io.TextIOWrapper(written, encoding="ascii", write_through=True)
    with contextlib.redirect_stdout(output):
        cli.main(["games"])
    assert b" 3?3?2 " in written.getvalue()


def test_ctrl_c_while_a_command_is_imported_prints_no_traceback(monkeypatch):
    class Interrupted:
        def find_spec(self, name, path=None, target=None):
            if name == "azjax.commands.games":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "azjax.commands.games", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    monkeypatch.setattr(sys, "argv", ["azjax", "games"])
    with pytest.raises(SystemExit) as error:
        program.main()
    assert error.value.code == 130


IMPORTS = """
import sys
from azjax import cli
cli.main(["--help"])
print("imported", *sys.modules)
cli.main(["games"])
print("imported", *sys.modules)
import azjax
azjax.train, azjax.players
print("imported", *sys.modules)
azjax.nothing
"""


@pytest.fixture(scope="module")
def imports():
    """Returns the modules that a program has imported after each command.

    The program prints its help, lists the games, then uses the parts. Also returns its
    standard error.
    """
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=False
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    modules = [set(words) for words in lines if words[:1] == ["imported"]]
    return *modules, done.stderr


def test_help_imports_no_command(imports):
    helped = imports[0]
    assert helped.isdisjoint({"jax", "tyro", "rich"})
    assert not any(name.startswith("azjax.commands.") for name in helped)


def test_games_are_listed_without_importing_players_and_training(imports):
    listed = imports[1]
    assert listed.isdisjoint({"flax", "optax", "orbax", "mctx", "textual"})
    assert listed.isdisjoint({"matplotlib", "azjax.players", "azjax.training"})


def test_the_parts_are_imported_when_they_are_used(imports):
    _, _, used, error = imports
    assert {"azjax.training", "azjax.players"} <= used
    assert used.isdisjoint({"matplotlib", "orbax"})
    assert "AttributeError: module 'azjax' has no attribute 'nothing'" in error


@pytest.mark.parametrize("args", [[], ["--help"]])
def test_help_says_what_azjax_is_what_to_run_first_and_lists_every_command(
    args, capsys
):
    cli.main(args)
    out, err = capsys.readouterr()
    what, first, _, usage, _, *lines = out.splitlines()
    assert "board games" in what
    assert "azjax play connect_four" in first
    assert usage == "usage: azjax COMMAND [ARGUMENTS]"
    assert [line.split()[0] for line in lines[: len(cli.COMMANDS)]] == [*cli.COMMANDS]
    assert max(map(len, out.splitlines())) <= 80
    assert not err


@pytest.mark.parametrize("has_tpu", [False, True])
def test_the_program_quiets_libtpu_where_there_is_no_tpu(monkeypatch, has_tpu):
    chosen = {"TPU_MIN_LOG_LEVEL": "0"}
    monkeypatch.setattr(azjax_program, "has_tpu", lambda: has_tpu)
    monkeypatch.setattr(sys, "argv", ["azjax", "--help"])
    with mock.patch.dict(os.environ, chosen, clear=True):
        program.main()
        assert os.environ.pop("TF_CPP_MIN_LOG_LEVEL") == "3"  # XLA's alarms
        assert (os.environ == chosen) == has_tpu
        assert os.environ["TPU_MIN_LOG_LEVEL"] == "0"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_its_help(name, capsys):
    with pytest.raises(SystemExit) as error:
        cli.main([name, "--help"])
    assert error.value.code in (0, None)
    assert f"usage: azjax {name} " in capsys.readouterr().out


def test_completion_knows_all_commands(capsys):
    with pytest.raises(SystemExit) as error:
        cli.main(["--tyro-print-completion", "bash"])
    assert error.value.code in (0, None)
    out = capsys.readouterr().out
    assert all(name in out for name in cli.COMMANDS)


def test_a_fault_of_the_program_keeps_its_traceback(monkeypatch):
    def faulty(config, **_):
        raise ValueError("a bug")

    monkeypatch.setattr(train_module, "train", faulty)
    with pytest.raises(ValueError, match="a bug"):
        cli.main(["train", "tic_tac_toe"])


@pytest.mark.parametrize("command", ["--help", "games"])  # by print, and by rich
def test_output_without_a_reader_ends_a_command_silently(command, capsys):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe, contextlib.redirect_stdout(pipe):
        with pytest.raises(SystemExit) as error:
            cli.main([command])
        print("output during the exit")
    assert error.value.code == 141
    assert capsys.readouterr().err == ""


def test_a_closed_standard_output_is_no_error():
    with contextlib.redirect_stdout(None):
        cli.main(["games"])
        sys.stdout.close()
