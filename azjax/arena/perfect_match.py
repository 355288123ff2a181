"""Games from the initial position against a perfect player."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.arena.host_match import play_game
from azjax.arena.results import WinDrawLoss
from azjax.arena.solved import wilson_interval
from azjax.games import Game, State
from azjax.games.host import first_state, next_state
from azjax.players.core import AnyPlayer, ExternalPlayer, PlayerSession


class PerfectMatch(NamedTuple):
    """N games of a player from the initial position against a perfect player.

    side: 0 or 1, the player's side: the one that wins under perfect play; 0 if perfect
        play draws.
    value: its result under perfect play: 1 win, 0 draw.
    results: `[N]` int; its results: 1 win, 0 draw, -1 loss.
    lost_at: `[N]` int; number of the move that gave the result of perfect play away,
        where the moves of both sides are counted from 1; 0 if none did.
    """

    side: int
    value: int
    results: np.ndarray
    lost_at: np.ndarray

    @property
    def total(self) -> WinDrawLoss:
        """The numbers of games won, drawn and lost."""
        wins, draws, losses = ((self.results == value).sum() for value in (1, 0, -1))
        return WinDrawLoss(int(wins), int(draws), int(losses))

    @property
    def kept(self) -> int:
        """The number of games with the result of perfect play."""
        return int((self.lost_at == 0).sum())

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% confidence interval of the fraction of games that were kept."""
        return wilson_interval(self.kept / len(self.lost_at), len(self.lost_at))

    @property
    def losing_moves(self) -> dict[int, int]:
        """The numbers of games by the number of the move that gave the result away."""
        moves, games = np.unique(self.lost_at[self.lost_at > 0], return_counts=True)
        return dict(zip(moves.tolist(), games.tolist(), strict=True))

    def to_json(self) -> dict[str, Any]:
        """Returns the results as JSON values."""
        return {
            "side": self.side,
            "value": self.value,
            **self.total._asdict(),
            "kept": self.kept,
            "interval": list(self.interval),
            "losing_moves": {str(k): games for k, games in self.losing_moves.items()},
        }


def play_perfect_match(
    game: Game,
    player: AnyPlayer,
    opponent: ExternalPlayer,
    num_games: int,
    rng_key: jax.Array,
    *,
    on_games: Callable[[int], object] = lambda games: None,
) -> PerfectMatch:
    """Plays games from the initial position, as the side that perfect play favors.

    Args:
        game: the game.
        player: the player.
        opponent: a perfect player, whose values are exact results.
        num_games: at least 1; they differ if one of the players chooses at random.
        rng_key: for the seeds of the players; consumed.
        on_games: called with 1 after each game.
    """
    solver = opponent.start_session(game, seed=0)
    first_value = _exact_value(solver, first_state(game), [])
    side, value = (0 if first_value >= 0 else 1), abs(first_value)
    seeds = np.asarray(jax.random.bits(rng_key, (num_games, 2), jnp.uint32)).tolist()
    results, lost_at = [], []
    for pair in seeds:
        sides = (opponent, player) if side else (player, opponent)
        ended = play_game(game, sides, [], pair)
        results.append(-ended.result if side else ended.result)
        lost_at.append(0)
        if results[-1] < value:
            lost_at[-1] = _losing_move(game, solver, ended.moves, side, value)
        on_games(1)
    return PerfectMatch(side, value, np.array(results), np.array(lost_at))


def _losing_move(
    game: Game, solver: PlayerSession, moves: Sequence[int], side: int, value: int
) -> int:
    """Returns the number of the first move after which perfect play gives `side` less
    than `value`; its last move if no later position of its own is left."""
    state, last = first_state(game), 0
    for number, action in enumerate(moves, start=1):
        if int(state.current_player) == side:
            if _exact_value(solver, state, moves[: number - 1]) < value:
                break
            last = number
        state = next_state(game, state, action)
    return last


def _exact_value(solver: PlayerSession, state: State, moves: Sequence[int]) -> int:
    value = solver.choose(state, moves).value
    if value is None:
        raise ValueError("a perfect player must give exact values")
    return round(value)
