import copy
import doctest
import importlib
import pickle
import sys
import warnings

import jax
import numpy as np
import pytest
from coin_toss import CoinToss
from compilations import compilations
from compiled_games import compiled
from pettingzoo.test import api_test, seed_test

from azjax.games import make
from azjax.games.adapters import pettingzoo as module
from azjax.games.adapters.pettingzoo import to_pettingzoo

# Notes of api_test for every environment with a mask that it does not know by name.
NOTES = (
    "Observation is not a NumPy array",
    "Observation space for each agent probably should be",
    "Observation numpy array is all zeros",
    "Action mask numpy array is all zeros",
)


def play(env, actions):
    env.reset()
    for action in actions:
        env.step(action)


def test_the_examples_of_the_module_run():
    found = doctest.testmod(module)
    assert found.attempted > 4
    assert found.failed == 0


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four", "kalah:3,3"])
def test_pettingzoos_api_test_passes(name):
    with warnings.catch_warnings():
        for note in NOTES:
            warnings.filterwarnings("ignore", message=note)
        api_test(to_pettingzoo(make(name)), num_cycles=100)


def test_pettingzoos_seed_test_passes():
    seed_test(lambda: to_pettingzoo(make("tic_tac_toe")), num_cycles=10)


def test_the_seed_determines_the_outcomes_of_chance():
    def games_of(seed):
        env, games = to_pettingzoo(CoinToss()), []
        env.reset(seed)
        for _ in range(8):
            movers = []
            while not any(env.terminations.values()):
                movers.append(env.agent_selection)
                env.step(int(env.last()[0]["action_mask"].argmax()))
            games.append((*movers, env.rewards["player_0"]))
            env.reset()
        return games

    games = games_of(0)
    assert games == games_of(0) != games_of(1)
    # Either player may begin.
    assert {first for first, *_ in games} == {"player_0", "player_1"}
    with warnings.catch_warnings():
        for note in NOTES:
            warnings.filterwarnings("ignore", message=note)
        api_test(to_pettingzoo(CoinToss()), num_cycles=50)


def test_agents_observe_the_movers_position_and_only_the_mover_has_actions():
    game = compiled("connect_four")
    env = to_pettingzoo(game)
    play(env, [3, 0])
    state = game.step(game.step(game.init(), np.int32(3)), np.int32(0))
    assert str(env) == env.metadata["name"] == "azjax_connect_four_v0"
    assert env.action_space("player_1").n == 7
    for agent, mask in ("player_0", 1), ("player_1", 0):
        seen = env.observe(agent)
        np.testing.assert_array_equal(seen["observation"], game.observe(state))
        np.testing.assert_array_equal(seen["action_mask"], mask)
        assert env.observation_space(agent).contains(seen)
        assert all(type(leaf) is np.ndarray for leaf in jax.tree.leaves(seen))


def test_the_winner_gets_1_and_the_loser_minus_1():
    env = to_pettingzoo(make("tic_tac_toe"))
    play(env, [0, 3, 1, 4])
    assert env.rewards == {"player_0": 0, "player_1": 0}
    env.step(2)
    assert env.rewards == {"player_0": 1, "player_1": -1}
    assert env.terminations == {"player_0": True, "player_1": True}
    assert not any(env.truncations.values())
    observation, reward, terminated, _, _ = env.last()
    assert (env.agent_selection, reward, terminated) == ("player_1", -1, True)
    assert not observation["action_mask"].any()
    with pytest.raises(ValueError, match="only valid action is None"):
        env.step(5)


def test_an_illegal_action_loses():
    env = to_pettingzoo(make("tic_tac_toe"), render_mode="ansi")
    for action in 0, -1, 9, 2**40:
        play(env, [0, action])
        assert env.rewards == {"player_0": 1, "player_1": -1}
        assert all(env.terminations.values())
        lines = env.render().split("\n")
        assert lines[1:] == ["3 X  .  .", "2 .  .  .", "1 .  .  ."]


def test_a_position_is_rendered_as_text_with_the_last_move_marked():
    env = to_pettingzoo(make("tic_tac_toe"), render_mode="ansi")
    play(env, [4])
    assert env.render().split("\n")[2] == "2 . [X] ."
    env = to_pettingzoo(make("tic_tac_toe"))
    env.reset()
    with pytest.warns(UserWarning, match="without a render_mode"):
        assert env.render() is None


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match=r"one of .*ansi.*: 'human'"):
        to_pettingzoo(make("tic_tac_toe"), render_mode="human")
    with pytest.raises(ValueError, match=r"game must be a Game.*: 'go'"):
        to_pettingzoo("go")
    env = to_pettingzoo(make("tic_tac_toe"))
    env.reset()
    with pytest.raises(TypeError):  # before the end
        env.step(None)


def test_an_environment_can_be_copied_and_pickled_in_the_middle_of_a_game():
    env = to_pettingzoo(make("tic_tac_toe"))
    play(env, [0, 3, 1])
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env.unwrapped))):
        other.step(4)
        other.step(2)
        assert other.rewards["player_0"] == 1
    assert not any(env.terminations.values())


def test_environments_of_a_game_share_compiled_functions():
    play(to_pettingzoo(make("tic_tac_toe")), [0])
    with compilations() as names:
        play(to_pettingzoo(make("tic_tac_toe")), [1])
    assert names == []


def test_a_missing_pettingzoo_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    monkeypatch.delitem(sys.modules, module.__name__)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'azjax\[pettingzoo\]'"):
        importlib.import_module(module.__name__)
