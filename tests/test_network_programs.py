"""Each program that evaluates a network is compiled with its platform's options."""

import inspect

import jax
import numpy as np
import pytest
from data.game_rows import GAME, rows_of
from flax import nnx
from untrained import untrained_player

from azjax.arena import evaluate, play_match, shipped
from azjax.devices import target
from azjax.games.host import first_state
from azjax.networks import ConvTrunkConfig, NetworkConfig
from azjax.play.incremental_search import IncrementalSearch, plan_for
from azjax.play.review import review
from azjax.players import RandomPlayer, compile_choice, start_session
from azjax.training import SelfPlayConfig, make_self_play, start_games
from azjax.training.config import QConfig
from azjax.training.q_learning import train_q
from azjax.training.reanalysis import PositionSearches

FIRST, KEY, ROWS = first_state(GAME), jax.random.key(0), rows_of({0: [0]})
# No other test has this width: its programs are not traced yet.
CONFIG = NetworkConfig(trunk=ConvTrunkConfig(num_blocks=1, channels=3))


class EvaluatedError(Exception):
    """A layer of a network is traced; the argument is the module that called JAX."""


@pytest.fixture
def trained(monkeypatch):
    """A player; the first layer that is evaluated raises."""
    player = untrained_player(GAME, CONFIG)

    def stop(*args, **kwargs):
        files = [frame.filename for frame in reversed(inspect.stack(0))]
        jitted = next(n for n, file in enumerate(files) if file.endswith("pjit.py"))
        raise EvaluatedError([file for file in files[:jitted] if "azjax" in file][-1])

    for layer in (nnx.Conv, nnx.Linear):
        monkeypatch.setattr(layer, "__call__", stop)
    return player


def play_itself(player):
    config = SelfPlayConfig(num_games=2, moves_per_chunk=2, num_simulations=(2,))
    play = make_self_play(GAME, player.network, player.search, config)
    play(player.variables, np.int32(2), start_games(GAME, 2, KEY), KEY)


RUNS = {
    "evaluation": lambda player: evaluate(
        player, shipped(GAME), KEY, simulations=2, num_games=0
    ),
    "incremental search": lambda player: IncrementalSearch(
        player.player(2), plan_for(1), FIRST
    ).compile(1),
    "match": lambda player: play_match(
        GAME, player.player(2), RandomPlayer(GAME), KEY, 2
    ),
    "Q-learning": lambda _: train_q(QConfig("tic_tac_toe", iterations=1)),
    "reanalysis": lambda player: PositionSearches(player.player(2), 1, 0).search_rows(
        0, ROWS
    ),
    "review": lambda player: next(review(GAME, [0], player.player(2))),
    "self-play": play_itself,
    "session": lambda player: start_session(player.player(2), GAME, 0).choose(
        FIRST, []
    ),
    "terminal": lambda player: compile_choice(player.player(2), GAME),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_network_is_compiled_with_the_options_of_its_platform(
    run, trained, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EvaluatedError) as stopped:
        run(trained)
    assert stopped.value.args == (target.__file__,)
