import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from azjax import arena, games
from azjax.games.host import first_state, next_state, rewards
from azjax.players import RandomPlayer
from azjax.players.core import Choice

CONNECT_FOUR = games.make("connect_four")
TIC_TAC_TOE = games.make("tic_tac_toe")
KEY = jax.random.key(0)
TRACED = []


@struct.dataclass
class PreferringPlayer:
    """Plays the legal action with the highest preference."""

    preference: jax.Array  # [A]
    game: games.Game = struct.field(pytree_node=False)

    def choose(self, rng_key, states) -> Choice:
        del rng_key
        TRACED.append(self.game)
        legal = jax.vmap(self.game.legal_action_mask)(states)
        action = jnp.where(legal, self.preference, -jnp.inf).argmax(axis=-1)
        policy = jax.nn.one_hot(action, self.game.num_actions)
        return Choice(action.astype(jnp.int32), policy, jnp.zeros(action.shape))


@struct.dataclass
class IllegalPlayer:
    """Plays an action that does not exist."""

    def choose(self, rng_key, states) -> Choice:
        del rng_key
        action = jnp.full(states.terminated.shape, 7)
        return Choice(action, jnp.zeros((*action.shape, 7)), jnp.zeros(action.shape))


@struct.dataclass
class RememberingPlayer:
    """Plays random moves, or an illegal one if a position is not two moves later."""

    game: games.Game = struct.field(pytree_node=False)

    def choose(self, rng_key, states) -> Choice:
        return RandomPlayer(self.game).choose(rng_key, states)

    def init_carry(self, states):
        nothing = jnp.full(states.terminated.shape, -1)
        return {"moves": nothing, "first_moves": nothing}

    def choose_with_carry(self, rng_key, states, carry):
        choice = self.choose(rng_key, states)
        seen = jax.vmap(self.game.observe)(states)
        moves = seen.sum(axis=(1, 2, 3)).astype(jnp.int32)
        begins = carry["moves"] < 0
        # Terminated games are replaced by their opening.
        is_opening = moves == jnp.where(begins, moves, carry["first_moves"])
        is_next = moves == carry["moves"] + 2
        illegal = self.game.num_actions
        action = jnp.where(begins | is_next | is_opening, choice.action, illegal)
        first_moves = jnp.where(begins, moves, carry["first_moves"])
        carry = {"moves": moves, "first_moves": first_moves}
        return choice._replace(action=action), carry


def preferring(game, *preference):
    return PreferringPlayer(np.float32(preference), game)


PLAYERS = {
    "left": preferring(CONNECT_FOUR, *range(0, -7, -1)),
    "right": preferring(CONNECT_FOUR, *range(7)),
    "random": RandomPlayer(CONNECT_FOUR),
    "illegal": IllegalPlayer(),
    "remembering": RememberingPlayer(CONNECT_FOUR),
}


@functools.cache
def match_of(first, second, opening_moves):
    """Returns 40 games of Connect Four; reusing a key raises an error.

    Equal numbers of games save compilations.
    """
    with jax.debug_key_reuse(True):
        return arena.play_match(
            *(CONNECT_FOUR, PLAYERS[first], PLAYERS[second], jax.random.key(0), 40),
            opening_moves=opening_moves,
        )


def test_the_player_that_moves_first_wins_a_race_and_repeated_games_are_counted():
    result = match_of("left", "right", 0)
    assert (result.as_first, result.as_second) == ((20, 0, 0), (0, 0, 20))
    # Without openings all pairs are the same two games.
    assert result.repeated == 38 / 40


def test_each_opening_is_played_with_both_colors():
    result = match_of("left", "right", 3)
    openings = result.moves[:, :3]
    np.testing.assert_array_equal(openings[::2], openings[1::2])
    assert len(np.unique(openings, axis=0)) == 20
    # Player 1 is to move and prefers the right column in every second game.
    is_open = ~(openings[::2] == 6).all(axis=1)
    assert (result.moves[::2, 3][is_open] == 6).all()
    assert (result.moves[1::2, 3][is_open] == 0).mean() > 0.9
    # Player 0's disc decides only if it is below its own column of three.
    assert result.as_second.wins > result.as_first.wins


def test_an_equal_player_wins_as_often_as_it_loses():
    # With equal openings and exchanged colors, the games of a pair have opposite
    # results.
    result = match_of("left", "left", 3)
    assert result.as_first == arena.WinDrawLoss(*reversed(result.as_second))
    # The openings differ.
    assert min(result.as_first.wins, result.as_first.losses) > 0


def test_an_illegal_move_is_a_loss_by_forfeit_and_not_recorded():
    result = match_of("random", "illegal", 2)
    assert result.total == arena.WinDrawLoss(40, 0, 0)
    assert result.forfeits == (0, 40)
    assert set(result.faults) == {"illegal move"}
    assert (result.moves < CONNECT_FOUR.num_actions).all()


@pytest.mark.parametrize("num_moves", [0, 3])
def test_each_half_of_the_games_has_its_own_carry(num_moves):
    """With exchanged carries all games would be lost."""
    result = match_of("remembering", "random", num_moves)
    assert 0.25 < result.total.score < 0.75
    assert min(result.as_first.wins, result.as_second.wins) > 2
    assert result.forfeits == (0, 0)


def test_every_game_is_counted_once_and_has_the_result_of_its_moves():
    result = match_of("random", "left", 2)
    assert result.as_first.games == result.as_second.games == 20
    assert result.total.games == 40
    for ended in result.game_records(("random", "left")):
        state = first_state(CONNECT_FOUR)
        for action in ended.moves:
            assert not state.terminated
            state = next_state(CONNECT_FOUR, state, action)
        assert state.terminated
        assert rewards(CONNECT_FOUR, state)[0] == ended.result


def test_games_are_drawn_when_the_board_fills_without_a_line():
    # X plays 1 2 6 7 and the last cell, O 3 4 5 and the remaining ones:
    #   X X O
    #   O O X
    #   X . .
    first = preferring(TIC_TAC_TOE, 9, 8, 2, 3, 4, 7, 6, 1, 5)
    second = preferring(TIC_TAC_TOE, 2, 3, 9, 7, 8, 4, 1, 6, 5)
    result = arena.play_match(TIC_TAC_TOE, first, second, KEY, 8, opening_moves=0)
    assert result.as_first == arena.WinDrawLoss(0, 4, 0)


def test_openings_do_not_end_the_game():
    # After eight random moves most games of tic-tac-toe are over.
    player = RandomPlayer(TIC_TAC_TOE)
    arguments = (TIC_TAC_TOE, player, player, KEY, 40)
    result = arena.play_match(*arguments, opening_moves=8, games_at_once=8)
    # One cell is empty: player 0 marks it and wins or draws.
    assert result.as_first.losses == result.as_second.wins == 0


def test_games_in_chunks_are_the_same_openings_with_one_compilation():
    TRACED.clear()
    player = preferring(TIC_TAC_TOE, *range(9))
    other = preferring(TIC_TAC_TOE, *range(0, -9, -1))
    finished, arguments = [], (TIC_TAC_TOE, player, other, KEY, 30)
    apart = arena.play_match(*arguments, games_at_once=12, on_games=finished.append)
    assert finished == [12, 12, 6]
    # Players are compiled for neither new weights nor other opponents.
    for opponent in (RandomPlayer(TIC_TAC_TOE), IllegalPlayer(), player):
        arena.play_match(TIC_TAC_TOE, other, opponent, KEY, 12)
    assert len(TRACED) == 1
    together = arena.play_match(*arguments)
    np.testing.assert_array_equal(apart.results, together.results)
    assert apart.game_records(("a", "b")) == together.game_records(("a", "b"))


def test_an_interrupted_match_has_the_games_that_were_over():
    player, counted = RandomPlayer(TIC_TAC_TOE), []

    def on_games(number):
        counted.append(number)
        if len(counted) == 2:
            raise KeyboardInterrupt

    arguments = TIC_TAC_TOE, player, player, KEY, 24
    whole = arena.play_match(*arguments, games_at_once=8)
    with pytest.raises(arena.MatchInterrupted) as caught:
        arena.play_match(*arguments, games_at_once=8, on_games=on_games)
    match = caught.value.match
    assert match.total.games == 16
    np.testing.assert_array_equal(match.results, whole.results[:16])
    assert match.opening_moves == whole.opening_moves


@pytest.mark.parametrize(
    ("num_games", "num_moves", "message"),
    [
        *((number, 2, "num_games must be even and >= 2") for number in (0, 3, -2)),
        *((4, number, "opening_moves must") for number in (-1, 9)),
    ],
)
def test_invalid_numbers_of_games_and_opening_moves_are_refused(
    num_games, num_moves, message
):
    arguments = (*[RandomPlayer(TIC_TAC_TOE)] * 2, KEY, num_games)
    with pytest.raises(ValueError, match=message):
        arena.play_match(TIC_TAC_TOE, *arguments, opening_moves=num_moves)
