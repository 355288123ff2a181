import dataclasses
import functools
import json
import os
import signal

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from azjax import games
from azjax.arena import exhaustive, play_match
from azjax.games import State
from azjax.networks import QNetworkConfig
from azjax.players import Choice, RandomPlayer, choose, load
from azjax.training import TrainConfig
from azjax.training.q_config import FitConfig, QConfig
from azjax.training.q_learning import train_q
from azjax.training.q_reporting import QReporter
from azjax.training.run_directory import open_run_directory

GAME = games.make("tic_tac_toe")
HIDDEN = {"state": (8,), "pair": (8, 8)}


def tiny(run_dir, **changes):
    network = {"form": "state", "separate": False}
    network |= {key: changes.pop(key) for key in tuple(network) if key in changes}
    settings = {
        "game": "tic_tac_toe",
        "iterations": 3,
        "run_dir": str(run_dir),
        "network": QNetworkConfig(hidden=HIDDEN[network["form"]], **network),
        "games": 8,
        "moves": 4,
        "fit": FitConfig(sweeps=2, batch_size=16, max_epochs=2),
        "evaluations": 2,
        "evaluation_games": 4,
        "evaluation_opponents": ("random",),
    }
    return QConfig(**settings | changes)


def rows(directory):
    lines = (directory / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    ("form", "learning", "separate", "opponent"),
    [
        pytest.param("state", "offline", False, "random", marks=pytest.mark.slow),
        ("state", "online", True, "self"),
        pytest.param("pair", "offline", True, "greedy", marks=pytest.mark.slow),
        pytest.param("pair", "online", False, "self", marks=pytest.mark.slow),
    ],
)
def test_every_way_of_learning_leaves_a_whole_run(
    form, learning, separate, opponent, tmp_path
):
    config = tiny(
        tmp_path / "run",
        form=form,
        learning=learning,
        separate=separate,
        opponent=opponent,
    )
    run = train_q(config)
    assert run.finished
    assert len(run.trained.params) == (2 if separate else 1)
    names = {path.name for path in run.directory.iterdir()}
    wanted = {"config.json", "metrics.jsonl", "plots", "player", "checkpoints"}
    assert wanted <= names
    assert (run.directory / "plots" / "learning.png").stat().st_size > 1000
    found = rows(run.directory)
    assert [row["iteration"] for row in found] == [0, 2, 3]
    assert found[-1]["positions"] == 3 * 8 * 4
    assert found[0]["loss"] is None
    assert np.isfinite(found[-1]["loss"])
    for row in found:
        match = row["matches"]["random"]
        for side in ("as_first", "as_second"):
            assert sum(match[side].values()) == 2
        assert match["not_lost_low"] <= match["not_lost"] <= match["not_lost_high"]
    states = jax.tree.map(lambda leaf: leaf[None], GAME.init())
    key = jax.random.key(0)
    chex.assert_trees_all_equal(
        choose(load(f"q_learning:{run.directory}", GAME), key, states),
        choose(run.trained.player(), key, states),
    )


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path):
    whole = tiny(tmp_path / "whole", iterations=4)
    expected = train_q(whole)
    stopped = dataclasses.replace(whole, run_dir=str(tmp_path / "stopped"))
    show = QReporter.iteration

    def stop(self, share, row):
        show(self, share, row)
        if row["iteration"] == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QReporter, "iteration", stop)
        run = train_q(stopped)
    assert not run.finished
    assert [row["iteration"] for row in rows(run.directory)] == [0, 2]
    run = train_q(stopped)
    assert run.finished
    assert [row["iteration"] for row in rows(run.directory)] == [0, 2, 4]
    chex.assert_trees_all_equal(run.trained.params, expected.trained.params)


def test_a_finished_run_may_be_started_again(tmp_path):
    config = tiny(tmp_path)
    first = train_q(config)
    before = (tmp_path / "metrics.jsonl").read_text()
    again = train_q(config)
    assert (tmp_path / "metrics.jsonl").read_text() == before
    chex.assert_trees_all_equal(again.trained.params, first.trained.params)


def test_another_run_in_the_directory_is_refused(tmp_path):
    train_q(tiny(tmp_path / "q"))
    with pytest.raises(ValueError, match="seed was 0, is 1"):
        train_q(tiny(tmp_path / "q", seed=1))
    alphazero = TrainConfig("tic_tac_toe", iterations=1, run_dir=str(tmp_path / "q"))
    with (
        pytest.raises(ValueError, match="holds a run of another way of learning"),
        open_run_directory(alphazero),
    ):
        pass


@pytest.mark.parametrize("where", ["opponent", "evaluation_opponents"])
def test_an_unknown_opponent_is_refused_before_anything_is_written(tmp_path, where):
    text = {"opponent": "god", "evaluation_opponents": ("god",)}[where]
    with pytest.raises(ValueError, match="unknown player 'god'"):
        train_q(tiny(tmp_path / "run", **{where: text}))
    assert not (tmp_path / "run").exists()


@struct.dataclass
class Perfect:
    """Chooses at random among the best moves, which it looks up."""

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
    """The share of 1000 games from the empty board that `player` loses."""
    match = play_match(GAME, player, opponent, jax.random.key(0), 1000, opening_moves=0)
    return match.total.losses / 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "learning"),
    [("state", "offline"), ("pair", "offline"), ("state", "online")],
)
def test_tic_tac_toe_is_learnt(form, learning, tmp_path):
    config = QConfig(
        "tic_tac_toe",
        iterations={"offline": 40, "online": 300}[learning],
        run_dir=str(tmp_path),
        network=QNetworkConfig(form=form),
        learning=learning,
        evaluations=1,
        evaluation_games=2,
        evaluation_opponents=("random",),
    )
    player = train_q(config).trained.player()
    solution = exhaustive.solve(GAME)
    perfect = Perfect(
        *jax.tree.map(jnp.asarray, (solution.states, solution.action_values))
    )
    assert losses(player, RandomPlayer(GAME)) <= 0.05
    assert losses(player, perfect) <= 0.1
