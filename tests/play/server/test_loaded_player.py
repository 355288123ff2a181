import math
import time
from concurrent.futures import Future

import pytest

from azjax import games, players
from azjax.play.server import Limits, loaded_player
from azjax.play.server.loaded_player import Activity, LoadedPlayer, SharedResources


def loaded(text, game="tic_tac_toe", **limits):
    game = games.make(game)
    resources = SharedResources(Limits(**limits), seed=0)
    return LoadedPlayer(game, players.load(text, game), resources)


def test_similar_numbers_of_simulations_share_a_worker():
    player = loaded("mcts:1600")
    assert player.worker(400) == (player.worker(1)[0], 400)
    assert player.worker(1600)[0] is not player.worker(400)[0]
    assert player.worker(None)[1] == 1600


@pytest.mark.parametrize(
    ("text", "strength"),
    [("alphazero:pretrained", players.DEFAULT_SIMULATIONS), ("mcts:30", 30)],
)
def test_the_default_strength_is_the_players_own(text, strength):
    player = loaded(text)
    assert player.default_strength == strength
    assert player.worker(None)[1] == strength


def test_strengths_end_at_the_limit_of_simulations():
    player = loaded("mcts:1600", simulations=150)
    assert player.strengths == [1, 25, 50, 100]
    assert player.default_strength == 100
    with pytest.raises(ValueError, match="must be one of 1, 25, 50, 100: 200"):
        player.worker(200)


def test_strengths_end_at_the_memory_for_trees():
    assert loaded("mcts:25", "chess", search_bytes=2**24).strengths[-1] < 1600


@pytest.mark.parametrize("text", ["mcts:1600", "alphazero:pretrained"])
def test_a_search_without_memory_for_its_tree_is_rejected(text):
    with pytest.raises(ValueError, match="exceeds the memory for search trees"):
        loaded(text, search_bytes=1)


def test_a_player_without_a_search_has_no_strengths():
    player = loaded("greedy", search_bytes=1)
    assert (player.strengths, player.default_strength) == ([], None)
    assert player.worker(None)[1] == 0


def test_the_server_is_busy_until_some_time_after_the_last_request(monkeypatch):
    current = Activity()
    assert current.is_busy  # clients can wait for the server to start
    current.last_answer = -math.inf
    assert not current.is_busy
    current.num_decisions = 1
    assert current.is_busy
    current.num_decisions, current.last_answer = 0, time.monotonic()
    assert current.is_busy  # a client that plays soon sends the next request
    monkeypatch.setattr(loaded_player, "QUIET_SECONDS", 0.0)
    assert not current.is_busy
    current.compilation = Future()  # of the search for the client's first move
    assert current.is_busy
    current.compilation.set_result(None)
    assert not current.is_busy
