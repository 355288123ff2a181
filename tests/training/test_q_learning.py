import functools
import json
import os
import shutil
import signal

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from training.tiny_runs import counted

from azjax import games
from azjax.arena import exhaustive, play_match
from azjax.games import State
from azjax.networks import QNetworkConfig
from azjax.players import Choice, RandomPlayer, choose, load
from azjax.training import TrainConfig
from azjax.training.config import FitConfig, QConfig, QEvaluationConfig
from azjax.training.q_learning import train_q
from azjax.training.run.directory import open_run_directory

GAME = games.make("tic_tac_toe")
pytestmark = pytest.mark.usefixtures("quick_plots")
HIDDEN = {"state": (8,), "pair": (8, 8)}


def tiny(run_dir, **changes):
    network = {"form": "state", "separate": False}
    network |= {key: changes.pop(key) for key in tuple(network) if key in changes}
    opponents = changes.pop("opponents", ("random",))
    settings = {
        "game": "tic_tac_toe",
        "iterations": 4,
        "run_dir": str(run_dir),
        "network": QNetworkConfig(hidden=HIDDEN[network["form"]], **network),
        "games": 8,
        "moves": 4,
        "fit": FitConfig(sweeps=2, batch_size=16, max_epochs=2),
        "evaluation": QEvaluationConfig(
            num_evaluations=2, num_positions=32, num_games=4, opponents=opponents
        ),
    }
    return QConfig(**settings | changes)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return train_q(tiny(tmp_path_factory.mktemp("runs") / "whole"))


def assert_complete(run, *, networks=1):
    assert run.finished
    assert len(run.player.params) == networks
    names = {path.name for path in run.directory.iterdir()}
    wanted = {"config.json", "metrics.jsonl", "plots", "player", "checkpoints"}
    assert wanted <= names
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], GAME.init())
    key = jax.random.key(0)
    chex.assert_trees_all_equal(
        choose(load(f"q_learning:{run.directory}", GAME), key, states),
        choose(run.player.player(), key, states),
    )


def test_a_run_saves_its_player_and_its_metrics(undisturbed):
    assert_complete(undisturbed)
    rows = counted(undisturbed)
    iterations = [row for row in rows if row["kind"] == "iteration"]
    evaluations = [row for row in rows if row["kind"] == "evaluation"]
    assert [row["iteration"] for row in iterations] == [1, 2, 3, 4]
    assert [row["iteration"] for row in evaluations] == [0, 2, 4]
    assert [row["positions"] for row in iterations] == [32, 64, 96, 128]
    assert all(np.isfinite(row["value_loss"]) for row in iterations)
    assert [row["epsilon"] for row in iterations] == pytest.approx([1, 0.6, 0.2, 0.2])
    rates = [row["learning_rate"] for row in iterations]
    assert rates == pytest.approx([2e-3, 1.5e-3, 1e-3, 5e-4])
    for row in evaluations:
        assert row["network_mistakes_low"] <= row["network_mistakes"]
        assert 0 <= row["scores"]["random"]["score"] <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "learning", "separate", "opponent"),
    [
        ("state", "offline", False, "random"),
        ("state", "online", True, "self"),
        ("pair", "offline", True, "greedy"),
        ("pair", "online", False, "self"),
    ],
)
def test_each_learning_mode_completes_a_run(
    form, learning, separate, opponent, tmp_path
):
    config = tiny(
        tmp_path / "run",
        form=form,
        learning=learning,
        separate=separate,
        opponent=opponent,
    )
    assert_complete(train_q(config), networks=2 if separate else 1)


def test_a_resumed_run_equals_an_uninterrupted_one(undisturbed, tmp_path):
    def stop(row):
        if row["iteration"] == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    config = tiny(tmp_path / "stopped")
    run = train_q(config, on_iteration=stop)
    assert not run.finished
    assert counted(run)[-1]["iteration"] == 3
    run = train_q(config)
    assert run.finished
    assert counted(run) == counted(undisturbed)
    chex.assert_trees_all_equal(run.player.params, undisturbed.player.params)
    again = train_q(config)
    assert again.last == run.last
    chex.assert_trees_all_equal(again.player.params, run.player.params)


def test_another_run_in_the_directory_is_refused(undisturbed):
    with pytest.raises(ValueError, match="seed was 0, is 1"):
        train_q(tiny(undisturbed.directory, seed=1))
    alphazero = TrainConfig(
        "tic_tac_toe", iterations=1, run_dir=str(undisturbed.directory)
    )
    with (
        pytest.raises(ValueError, match="holds a run of another algorithm"),
        open_run_directory(alphazero),
    ):
        pass


def test_a_run_of_an_older_version_is_refused_in_one_line(undisturbed, tmp_path):
    shutil.copytree(undisturbed.directory, tmp_path / "old")
    for path in (tmp_path / "old" / "checkpoints").glob("*/progress/metadata"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 1}))
    with pytest.raises(ValueError, match="finish the run with the version") as error:
        train_q(tiny(tmp_path / "old"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("where", [{"opponent": "god"}, {"opponents": ("god",)}])
def test_an_unknown_opponent_is_refused_before_anything_is_written(tmp_path, where):
    with pytest.raises(ValueError, match="unknown player 'god'"):
        train_q(tiny(tmp_path / "run", **where))
    assert not (tmp_path / "run").exists()


@struct.dataclass
class Perfect:
    """Chooses at random among the best moves of the solution."""

    states: State
    action_values: jax.Array

    def choose(self, rng_key, states):
        def find(state):
            same = jax.tree.map(lambda known, leaf: known == leaf, self.states, state)
            return functools.reduce(jnp.logical_and, jax.tree.leaves(same)).argmax()

        values = self.action_values[jax.vmap(find)(states)]
        best = values == jnp.nanmax(values, axis=1, keepdims=True)
        action = jax.random.categorical(rng_key, jnp.where(best, 0.0, -jnp.inf))
        return Choice(action.astype(jnp.int32), best * 1.0, jnp.nanmax(values, axis=1))


def losses(player, opponent):
    """Returns the fraction of 1,000 games from the empty board that `player` loses."""
    match = play_match(GAME, player, opponent, jax.random.key(0), 1000, opening_moves=0)
    return match.total.losses / 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "learning"), [("pair", "offline"), ("state", "online")]
)
def test_tic_tac_toe_is_learned(form, learning, tmp_path):
    config = QConfig(
        "tic_tac_toe",
        iterations={"offline": 40, "online": 200}[learning],
        run_dir=str(tmp_path),
        network=QNetworkConfig(form=form),
        learning=learning,
        evaluation=QEvaluationConfig(num_evaluations=1, num_games=2, opponents=()),
    )
    player = train_q(config).player.player()
    solution = exhaustive.solve(GAME)
    perfect = Perfect(
        *jax.tree.map(jnp.asarray, (solution.states, solution.action_values))
    )
    assert losses(player, RandomPlayer(GAME)) <= 0.05
    assert losses(player, perfect) <= 0.1
