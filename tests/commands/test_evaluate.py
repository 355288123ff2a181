import json
import sys

import chex
import numpy as np
import pytest
from commands.refusal import assert_refused
from flax import nnx
from rich.console import Console

from azjax import cli, games
from azjax.arena import EvaluationReport, Grade, MistakeRate, PerfectMatch
from azjax.commands.evaluate import print_report
from azjax.networks import CustomModules, DenseTrunkConfig, NetworkConfig
from azjax.players import TrainedPlayer, first_network, load, load_run, save_player
from azjax.search import GumbelConfig

GAME = games.make("tic_tac_toe")
CONFIG = NetworkConfig(
    trunk=DenseTrunkConfig(num_blocks=1, width=5, stem_channels=8, window=2)
)


class FlatTrunk(nnx.Module):
    def __init__(self, observation_shape, rngs):
        pass

    def __call__(self, observation):
        return observation.reshape(len(observation), -1)


MODULES = CustomModules(trunk=FlatTrunk)


@pytest.fixture
def own_run(tmp_path, monkeypatch):
    """A player whose network has a module of a user's file, `own_net:MODULES`."""
    module = type(sys)("own_net")
    module.MODULES = MODULES
    monkeypatch.setitem(sys.modules, "own_net", module)
    network, variables = first_network(0, GAME, CONFIG, MODULES)
    player = TrainedPlayer(
        GAME,
        network,
        variables,
        CONFIG,
        GumbelConfig(),
        seed=0,
        has_custom_modules=True,
    )
    save_player(tmp_path / "own run" / "player", player)
    return str(tmp_path / "own run")


def test_a_run_is_evaluated_with_its_custom_modules(
    own_run, tmp_path, capsys, monkeypatch
):
    path = tmp_path / "positions.csv"
    path.write_text("moves,q0,q1,q2,q3,q4,q5,q6,q7,q8\n12453,,,,,,-1,1,-1,-1\n")
    asked, report = [], EvaluationReport(2, None, None, {}, {})

    def evaluate(player, solved, rng_key, **settings):
        settings.pop("on_progress")("games, search", 1, 2)
        asked.append((player, solved, settings))
        return report

    monkeypatch.setattr("azjax.commands.evaluate.evaluate", evaluate)
    monkeypatch.setattr("azjax.commands.tables.LINE_SECONDS", 0.0)
    few = ["--games", "2", "--simulations", "2", "--positions", str(path), "--json"]
    cli.main(["evaluate", own_run, "--modules", "own_net:MODULES", *few])
    [(player, solved, settings)] = asked
    expected = load_run(own_run, GAME, MODULES)
    assert player.network == expected.network
    chex.assert_trees_all_equal(player.variables, expected.variables)
    assert settings == {"simulations": 2, "num_games": 2, "modules": MODULES}
    assert len(solved) == 1
    out, err = capsys.readouterr()
    assert json.loads(out) == report.to_json()
    assert "1 of 2 games, search" in err.splitlines()


def test_a_run_with_custom_modules_names_the_missing_option(own_run, capsys):
    assert_refused(capsys, "--modules MODULE:NAME", "evaluate", own_run)


def test_a_player_spec_is_loaded_with_modules(own_run):
    assert load(f"network:{own_run}", GAME, MODULES).network
    with pytest.raises(ValueError, match="has modules of the user's own"):
        load(f"alphazero:{own_run}", GAME)


@pytest.mark.parametrize(
    "command",
    [
        "arena tic_tac_toe random network:RUN",
        "play tic_tac_toe --opponent network:RUN",
        "serve tic_tac_toe",
        "train tic_tac_toe",
    ],
)
def test_other_commands_accept_modules(own_run, command, capsys):
    args = [word.replace("RUN", own_run) for word in command.split()]
    message = "there is no module 'nowhere' in"
    assert_refused(capsys, message, *args, "--modules", "nowhere:MODULES")


def test_the_win_probability_lost_is_reported_in_games_with_chance(capsys):
    lost = np.array([0, 0.125, 0, 0.125])
    grade = Grade({"all": MistakeRate(2, 4)}, lost > 0, lost)
    report = EvaluationReport(64, grade, grade, {}, {}, has_chance=True)
    assert report.to_json()["network"]["win_probability_lost"] == 0.0625
    print_report(Console(width=200), report)
    title, _, row = capsys.readouterr().out.splitlines()
    assert title.strip() == "win probability lost per move, with 95% intervals"
    assert row.split() == ["all", "4", *["6.25%", "(0.13-12.37)"] * 2]


def test_the_games_against_perfect_play_are_printed_with_interval_and_moves(capsys):
    match = PerfectMatch(
        0, 1, results=np.array([1, -1, 0, 1]), lost_at=np.array([0, 9, 13, 0])
    )
    print_report(
        Console(width=200), EvaluationReport(64, None, None, {}, {"search": match})
    )
    title, head, row = capsys.readouterr().out.splitlines()
    assert title.strip() == "as the first player against perfect play"
    assert "keeps the win" in head
    assert row.split("  ")[0].strip() == "search, 64 simulations"
    assert "50.0% (15.0-85.0)" in row
    assert row.strip().endswith("9 (1), 13 (1)")
