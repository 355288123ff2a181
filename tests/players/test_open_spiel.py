import doctest
import importlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
import pytest
from coin_toss import CoinToss
from flax import struct
from open_spiel.python.algorithms import mcts
from open_spiel.python.algorithms.evaluate_bots import evaluate_bots

from azjax import players
from azjax.games import Game, make
from azjax.players import Choice, RandomPlayer
from azjax.players import open_spiel as module
from azjax.players.open_spiel import AzjaxBot, same_action

TIC_TAC_TOE = make("tic_tac_toe")


@struct.dataclass
class Counting:
    """Plays the n-th legal action at its n-th move."""

    game: Game = struct.field(pytree_node=False)

    def init_carry(self, states):
        return jnp.zeros(states.current_player.shape, jnp.int32)

    def choose_with_carry(self, rng_key, states, carry):
        legal = jax.vmap(self.game.legal_action_mask)(states)
        is_reached = legal & (legal.cumsum(axis=1) > carry[:, None])
        action = is_reached.argmax(axis=1).astype(jnp.int32)
        return Choice(action, legal.astype(float), jnp.zeros(len(action))), carry + 1


class Checked(pyspiel.Bot):
    """A bot that checks that its moves are legal."""

    def __init__(self, bot):
        super().__init__()
        self.bot = bot
        self.num_moves = 0

    def restart_at(self, state):
        self.bot.restart_at(state)

    def step(self, state):
        action = self.bot.step(state)
        assert action in state.legal_actions()
        self.num_moves += 1
        return action


def results(name, bot, opponents, num_games):
    """Returns the bot's results; in every second game it plays first, against the
    second opponent."""
    game, found = pyspiel.load_game(name), []
    for number in range(num_games):
        player = number % 2
        bots = [bot, opponents[1]] if player == 0 else [opponents[0], bot]
        returns = evaluate_bots(game.new_initial_state(), bots, np.random)
        found.append(returns[player])
    return found


def position(name, *moves):
    state = pyspiel.load_game(name).new_initial_state()
    for action in moves:
        state.apply_action(action)
    return state


def random_bots():
    return [pyspiel.make_uniform_random_bot(player, player) for player in (0, 1)]


@pytest.fixture(scope="module")
def perfect():
    """The player of the module's examples, compiled."""
    player = players.load("alphazero:pretrained?simulations=64", TIC_TAC_TOE)
    players.start_session(player, TIC_TAC_TOE, 0).choose(TIC_TAC_TOE.init(), [])
    return player


def test_the_examples_of_the_module_run(perfect):
    found = doctest.testmod(module)
    assert found.attempted > 8
    assert found.failed == 0


def test_the_tic_tac_toe_player_beats_random_moves_and_never_loses(perfect):
    bot = Checked(AzjaxBot(perfect, TIC_TAC_TOE))
    found = results("tic_tac_toe", bot, random_bots(), 20)
    assert min(found) >= 0
    assert found.count(1) > 10
    assert bot.num_moves > 50


def test_the_tic_tac_toe_player_draws_against_open_spiels_search(perfect):
    game = pyspiel.load_game("tic_tac_toe")
    evaluator = mcts.RandomRolloutEvaluator(20, np.random.RandomState(0))
    search = mcts.MCTSBot(game, 2.0, 100, evaluator, solve=True)
    bot = Checked(AzjaxBot(perfect, TIC_TAC_TOE))
    assert min(results("tic_tac_toe", bot, [search, search], 4)) >= 0


@pytest.mark.parametrize("name", ["connect_four", "tic_tac_toe"])
def test_a_player_without_a_plan_makes_legal_moves(name):
    game = make(name)
    bot = Checked(AzjaxBot(RandomPlayer(game), game))
    found = results(name, bot, random_bots(), 6)
    assert set(found) <= {-1, 0, 1}
    assert bot.num_moves > 10


def test_the_seed_determines_the_moves_of_a_random_player():
    game, first = make("connect_four"), position("connect_four")

    def moves(seed, *, restarts=False):
        bot, found = AzjaxBot(RandomPlayer(game), game, seed=seed), []
        for _ in range(20):
            found.append(bot.step(first))
            if restarts:
                bot.restart_at(first)
        return found

    assert moves(0) == moves(0) != moves(1)
    # Every game has a different seed.
    assert len(set(moves(0, restarts=True))) > 2


def test_to_azjax_converts_action_numbers():
    game, asked = make("connect_four"), []

    def mirrored(state, action):
        asked.append((state.history(), action))
        return 6 - action

    bot = AzjaxBot(Counting(game), game, to_azjax=mirrored)
    state = position("connect_four", *(6, 0) * 3)
    assert bot.step(state) == 5 + (6 in state.legal_actions())
    assert asked[:3] == [([], 6), ([6], 0), ([6, 0], 6)]


def test_a_player_may_move_several_times_in_a_row():
    """OpenSpiel numbers the pits around the board, from 1 and from 8."""
    game = make("kalah:empty_capture=false")

    def to_azjax(state, action):
        return action - (1 if state.current_player() == 0 else 8)

    bot = Checked(AzjaxBot(RandomPlayer(game), game, to_azjax=to_azjax))
    found = results("mancala", bot, random_bots(), 4)
    assert set(found) <= {-1, 0, 1}
    assert bot.num_moves > 4 * 10


def test_a_game_with_chance_is_refused():
    game = CoinToss()
    with pytest.raises(ValueError, match="coin_toss has chance: AzjaxBot is for games"):
        AzjaxBot(RandomPlayer(game), game)


def test_the_carry_is_kept_until_the_next_game():
    bot = AzjaxBot(Counting(TIC_TAC_TOE), TIC_TAC_TOE)
    first = position("tic_tac_toe")
    assert bot.step(first) == 0
    assert bot.step(first.child(4)) == 1
    bot.restart_at(first)
    assert bot.step(first) == 0


def test_an_external_player_can_be_a_bot(session):
    class External:
        def start_session(self, game, seed):
            return session

    bot = AzjaxBot(External(), TIC_TAC_TOE)
    assert bot.step(position("tic_tac_toe", 4)) == 0
    assert session.asked == [[4]]


@pytest.mark.parametrize(
    ("name", "moves", "to_azjax", "message"),
    [
        ("tic_tac_toe", (), lambda _, action: action % 8, r"azjax \[8\], .*`to_azjax`"),
        ("connect_four", (), same_action, r"tic_tac_toe and connect_four\(.* \[7, 8\]"),
        (
            *("connect_four", (*range(7), 0, 1, 2), same_action),
            r"at most 9 moves, .* not over after 10",
        ),
    ],
)
def test_a_different_game_is_detected(name, moves, to_azjax, message):
    bot = AzjaxBot(RandomPlayer(TIC_TAC_TOE), TIC_TAC_TOE, to_azjax=to_azjax)
    with pytest.raises(ValueError, match=message):
        bot.step(position(name, *moves))


def test_a_missing_open_spiel_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    monkeypatch.delitem(sys.modules, module.__name__)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'azjax\[open_spiel\]'"):
        importlib.import_module(module.__name__)
