import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from azjax import arena, games
from azjax.players.core import Choice
from azjax.players.random import RandomPlayer

CONNECT_FOUR = games.make("connect_four")
TIC_TAC_TOE = games.make("tic_tac_toe")
STEP = jax.jit(CONNECT_FOUR.step)
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


LEFT = PreferringPlayer(-jnp.arange(7.0), CONNECT_FOUR)
RIGHT = PreferringPlayer(jnp.arange(7.0), CONNECT_FOUR)


def test_every_game_is_counted_once_and_half_with_each_color():
    player = RandomPlayer(CONNECT_FOUR)
    result = arena.play_match(CONNECT_FOUR, player, player, jax.random.key(0), 50)
    assert result.as_first.games == result.as_second.games == 25
    assert result.total.games == 50


def test_the_player_that_moves_first_wins_a_race():
    result = arena.play_match(
        CONNECT_FOUR, LEFT, RIGHT, jax.random.key(0), 6, opening_moves=0
    )
    assert (result.as_first, result.as_second) == ((3, 0, 0), (0, 0, 3))


def test_after_an_odd_opening_player_1_moves_first():
    # Player 0's disc decides only if it is below its own column of three.
    result = arena.play_match(
        CONNECT_FOUR, LEFT, RIGHT, jax.random.key(0), 200, opening_moves=1
    )
    assert result.as_second.wins > result.as_first.wins


def test_an_equal_player_wins_as_often_as_it_loses():
    # With equal openings and exchanged colors, the games of a pair have opposite
    # results.
    result = arena.play_match(CONNECT_FOUR, LEFT, LEFT, jax.random.key(0), 100)
    assert result.as_first == arena.WinDrawLoss(*reversed(result.as_second))


def test_openings_differ():
    result = arena.play_match(CONNECT_FOUR, LEFT, LEFT, jax.random.key(0), 200)
    assert min(result.as_first.wins, result.as_first.losses) > 0


def test_games_are_drawn_when_the_board_fills_without_a_line():
    # X plays 1 2 6 7 and the last cell, O 3 4 5 and the remaining ones:
    #   X X O
    #   O O X
    #   X . .
    first = PreferringPlayer(jnp.array([9, 8, 2, 3, 4, 7, 6, 1, 5.0]), TIC_TAC_TOE)
    second = PreferringPlayer(jnp.array([2, 3, 9, 7, 8, 4, 1, 6, 5.0]), TIC_TAC_TOE)
    result = arena.play_match(
        TIC_TAC_TOE, first, second, jax.random.key(0), 2, opening_moves=0
    )
    assert result.as_first == arena.WinDrawLoss(0, 1, 0)


def test_an_illegal_move_loses():
    result = arena.play_match(
        CONNECT_FOUR,
        RandomPlayer(CONNECT_FOUR),
        IllegalPlayer(),
        jax.random.key(0),
        10,
        opening_moves=2,
    )
    assert result.total == arena.WinDrawLoss(10, 0, 0)


def test_openings_do_not_end_the_game():
    # After eight random moves most games of tic-tac-toe are over.
    player = RandomPlayer(TIC_TAC_TOE)
    result = arena.play_match(
        TIC_TAC_TOE, player, player, jax.random.key(0), 100, opening_moves=8
    )
    # One cell is empty: player 0 marks it and wins or draws.
    assert result.as_first.losses == result.as_second.wins == 0


@struct.dataclass
class RememberingPlayer:
    """Plays random moves.

    It plays an illegal one if a position is not two moves after its last.
    """

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


@pytest.mark.parametrize("num_moves", [0, 3])
def test_each_half_of_the_games_has_its_own_carry(num_moves):
    """With exchanged carries all games would be lost."""
    result = arena.play_match(
        CONNECT_FOUR,
        RememberingPlayer(CONNECT_FOUR),
        RandomPlayer(CONNECT_FOUR),
        jax.random.key(0),
        200,
        opening_moves=num_moves,
    )
    assert 0.3 < result.total.score < 0.7
    assert min(result.as_first.wins, result.as_second.wins) > 20


def test_new_weights_are_not_compiled_again():
    TRACED.clear()
    for weight in (1.0, 2.0):
        player = PreferringPlayer(weight * jnp.arange(9.0), TIC_TAC_TOE)
        arena.play_match(
            TIC_TAC_TOE, player, RandomPlayer(TIC_TAC_TOE), jax.random.key(0), 4
        )
    assert len(TRACED) == 1


def test_a_match_uses_no_key_twice():
    player = RandomPlayer(TIC_TAC_TOE)
    with jax.debug_key_reuse(True):
        arena.play_match(TIC_TAC_TOE, player, player, jax.random.key(0), 4)


@pytest.mark.parametrize("num_games", [0, 3, -2])
def test_an_odd_or_empty_number_of_games_is_refused(num_games):
    with pytest.raises(ValueError, match="num_games must be even and >= 2"):
        arena.play_match(CONNECT_FOUR, LEFT, RIGHT, jax.random.key(0), num_games)


@pytest.mark.parametrize("num_moves", [-1, 9])
def test_openings_that_always_end_the_game_are_refused(num_moves):
    player = RandomPlayer(TIC_TAC_TOE)
    with pytest.raises(ValueError, match="opening_moves must"):
        arena.play_match(
            TIC_TAC_TOE,
            player,
            player,
            jax.random.key(0),
            4,
            opening_moves=num_moves,
        )


def test_replaying_the_moves_gives_the_results():
    result = arena.play_match(
        CONNECT_FOUR, RandomPlayer(CONNECT_FOUR), LEFT, jax.random.key(0), 40
    )
    for ended in result.game_records(("random", "left")):
        state = CONNECT_FOUR.init()
        for action in ended.moves:
            assert not state.terminated
            state = STEP(state, jnp.int32(action))
        assert state.terminated
        assert CONNECT_FOUR.rewards(state)[0] == ended.result


def test_each_opening_is_played_with_both_colors():
    result = arena.play_match(
        CONNECT_FOUR, LEFT, RIGHT, jax.random.key(0), 40, opening_moves=3
    )
    openings = result.moves[:, :3]
    np.testing.assert_array_equal(openings[::2], openings[1::2])
    assert len(np.unique(openings, axis=0)) == 20
    # Player 1 is to move and prefers the right column if it is RIGHT.
    is_open = ~(openings[::2] == 6).all(axis=1)
    assert (result.moves[::2, 3][is_open] == 6).all()
    assert (result.moves[1::2, 3][is_open] == 0).mean() > 0.9


def test_games_in_chunks_are_the_same_openings_with_one_compilation():
    TRACED.clear()
    player = PreferringPlayer(jnp.arange(9.0), TIC_TAC_TOE)
    other = PreferringPlayer(-jnp.arange(9.0), TIC_TAC_TOE)
    key = jax.random.key(0)
    apart = arena.play_match(TIC_TAC_TOE, player, other, key, 22, games_at_once=8)
    assert len(TRACED) == 1
    together = arena.play_match(TIC_TAC_TOE, player, other, key, 22)
    np.testing.assert_array_equal(apart.results, together.results)
    assert apart.game_records(("a", "b")) == together.game_records(("a", "b"))


def test_players_are_compiled_once_and_not_for_each_opponent():
    TRACED.clear()
    player = PreferringPlayer(jnp.arange(9.0), TIC_TAC_TOE)
    for opponent in (RandomPlayer(TIC_TAC_TOE), IllegalPlayer(), player):
        arena.play_match(TIC_TAC_TOE, player, opponent, jax.random.key(0), 6)
    assert len(TRACED) == 1


def test_an_illegal_move_is_a_forfeit_and_not_recorded():
    result = arena.play_match(
        CONNECT_FOUR,
        RandomPlayer(CONNECT_FOUR),
        IllegalPlayer(),
        jax.random.key(0),
        6,
        opening_moves=2,
    )
    assert result.forfeits == (0, 6)
    assert set(result.faults) == {"illegal move"}
    assert (result.moves < CONNECT_FOUR.num_actions).all()


def test_repeated_games_are_counted():
    # Without openings all pairs are the same two games.
    result = arena.play_match(
        CONNECT_FOUR, LEFT, RIGHT, jax.random.key(0), 10, opening_moves=0
    )
    assert result.repeated == 0.8


def test_on_games_receives_all_games():
    finished = []
    arena.play_match(
        CONNECT_FOUR,
        LEFT,
        RIGHT,
        jax.random.key(0),
        20,
        games_at_once=8,
        on_games=finished.append,
    )
    assert finished == [8, 8, 4]


def test_an_interrupted_match_has_the_games_that_were_over():
    player, counted = RandomPlayer(TIC_TAC_TOE), []

    def on_games(number):
        counted.append(number)
        if len(counted) == 2:
            raise KeyboardInterrupt

    arguments = TIC_TAC_TOE, player, player, jax.random.key(0), 12
    whole = arena.play_match(*arguments, games_at_once=4)
    with pytest.raises(arena.MatchInterrupted) as caught:
        arena.play_match(*arguments, games_at_once=4, on_games=on_games)
    match = caught.value.match
    assert match.total.games == 8
    np.testing.assert_array_equal(match.results, whole.results[:8])
    assert match.opening_moves == whole.opening_moves
