"""Matches: many games between two players, all at once."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.arena.solved import wilson_interval
from azjax.games import Game, State
from azjax.games.core import select
from azjax.players.core import Player, start, think
from azjax.players.random import RandomPlayer

_MAX_ATTEMPTS = 100  # at openings that do not end the game


class Record(NamedTuple):
    """Results of one player."""

    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        """The number of games."""
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """The share of the points, in [0, 1]; a draw is half a point."""
        return (self.wins + self.draws / 2) / self.games

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% confidence interval of the score.

        It takes every game for a win or a loss, and so is too wide where many are
        drawn. Players without chance repeat their games: theirs tell less than this
        says unless the openings differ.
        """
        return wilson_interval(self.score, self.games)


class MatchResult(NamedTuple):
    """Results of `player` against `opponent`.

    as_first: in the games in which it was player 0.
    as_second: in the games in which it was player 1.
    """

    as_first: Record
    as_second: Record

    @property
    def total(self) -> Record:
        """The results in all games."""
        first, second = self.as_first, self.as_second
        return Record(
            first.wins + second.wins,
            first.draws + second.draws,
            first.losses + second.losses,
        )


def play_match(
    game: Game,
    player: Player,
    opponent: Player,
    rng_key: jax.Array,
    num_games: int,
    *,
    random_opening_moves: int = 4,
) -> MatchResult:
    """Plays games to the end, half of them with each colour.

    Games come in pairs that start with the same random moves, so that neither player
    gains from a lucky opening. The key is consumed.

    Args:
        game: what is played.
        player: compiled, like its opponent, once for each kind of player and not for
            each set of weights.
        opponent: its opponent.
        rng_key: for the openings and the players.
        num_games: an even number; all are played at once.
        random_opening_moves: moves made at random before the players take over.

    Raises:
        ValueError: an argument is out of range, or the openings end the game.
    """
    if num_games < 2 or num_games % 2:
        raise ValueError(f"num_games must be even and >= 2: {num_games}")
    if random_opening_moves < 0:
        raise ValueError(f"random_opening_moves must be >= 0: {random_opening_moves}")
    opening_key, game_key = jax.random.split(rng_key)
    openings = _random_openings(game, opening_key, num_games // 2, random_opening_moves)
    if openings.terminated.any():
        raise ValueError(
            f"random_opening_moves must leave a game to play: {random_opening_moves} "
            f"random moves end {game.name}"
        )
    as_first, as_second = np.asarray(
        _play_out(game, player, opponent, openings, game_key)
    )
    return MatchResult(_record(as_first), _record(as_second))


def _record(results: np.ndarray) -> Record:
    """Counts `[N]` results: 1 win, 0 draw, -1 loss."""
    return Record(*(int((results == result).sum()) for result in (1, 0, -1)))


@jax.jit(static_argnames=("game", "num_openings", "num_moves"))
def _random_openings(
    game: Game, rng_key: jax.Array, num_openings: int, num_moves: int
) -> State:
    """Returns positions after random moves, leaves `[num_openings, ...]`.

    Those in which the game is over are drawn again, `_MAX_ATTEMPTS` times at most.
    """
    start = jax.vmap(lambda _: game.init())(jnp.arange(num_openings))
    random_player = RandomPlayer(game)

    def play_move(states, rng_key):
        action = random_player.choose(rng_key, states).action
        return jax.vmap(game.step)(states, action), None

    def draw_again(carry):
        attempt, is_missing, states, rng_key = carry
        rng_key, attempt_key = jax.random.split(rng_key)
        move_keys = jax.random.split(attempt_key, num_moves)
        drawn = jax.lax.scan(play_move, start, move_keys)[0]
        states = jax.vmap(select)(is_missing, drawn, states)
        return attempt + 1, states.terminated, states, rng_key

    def is_incomplete(carry):
        attempt, is_missing, _, _ = carry
        return is_missing.any() & (attempt < _MAX_ATTEMPTS)

    carry = (jnp.int32(0), jnp.ones(num_openings, bool), start, rng_key)
    return jax.lax.while_loop(is_incomplete, draw_again, carry)[2]


@jax.jit(static_argnames="game")
def _play_out(
    game: Game, player: Player, opponent: Player, openings: State, rng_key: jax.Array
) -> jax.Array:
    """Plays every opening twice, with each player to move first.

    Players alternate, so that at every move `player` is to move in one half of the
    games and `opponent` in the other: the halves change places after each move.

    Returns:
        `[2, N]` float32, the results of `player`: as player 0, as player 1.
    """

    def move(mover, rng_key, states, memory):
        # A finished game stays as it is; its mover gets the opening to think about.
        asked = jax.vmap(select)(states.terminated, openings, states)
        choice, memory = think(mover, rng_key, asked, memory)
        return jax.vmap(game.step)(states, choice.action), memory

    def play_move(carry):
        players_turn, opponents_turn, num_moves, rng_key, memories = carry
        (player_now, player_next), (opponent_now, opponent_next) = memories
        rng_key, player_key, opponent_key = jax.random.split(rng_key, 3)
        after_player, player_now = move(player, player_key, players_turn, player_now)
        after_opponent, opponent_now = move(
            opponent, opponent_key, opponents_turn, opponent_now
        )
        # The halves change places, and with them what is known of them.
        memories = ((player_next, player_now), (opponent_next, opponent_now))
        return after_opponent, after_player, num_moves + 1, rng_key, memories

    def is_unfinished(carry):
        return ~(carry[0].terminated & carry[1].terminated).all()

    memories = tuple((start(p, openings),) * 2 for p in (player, opponent))
    carry = (openings, openings, jnp.int32(0), rng_key, memories)
    half, other_half, num_moves, *_ = jax.lax.while_loop(
        is_unfinished, play_move, carry
    )
    was_swapped = num_moves % 2 == 1
    player_began = select(was_swapped, other_half, half)
    opponent_began = select(was_swapped, half, other_half)
    # In an opening of an odd number of moves, player 1 is the one who began.
    zero_began = openings.current_player == 0
    as_zero = jax.vmap(select)(zero_began, player_began, opponent_began)
    as_one = jax.vmap(select)(zero_began, opponent_began, player_began)
    return jnp.stack(
        [jax.vmap(game.rewards)(as_zero)[:, 0], jax.vmap(game.rewards)(as_one)[:, 1]]
    )
