"""Games conducted on the host, move by move, for players that know one at a time."""

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.arena.controller import Controller
from azjax.arena.openings import Openings
from azjax.arena.poll import Poll
from azjax.arena.results import MatchResult
from azjax.games import Game
from azjax.games.game_record import RESIGNED, is_forfeit
from azjax.players.session import AnyPlayer, ForfeitError, start_session

PATIENCE = 3  # games that a player forfeits in a row before its match is over


class PlayedGame(NamedTuple):
    """A game that is over.

    moves: the actions from the first position.
    result: 1 if player 0 won, 0 for a draw, -1 if player 1 won.
    fault: as in `GameRecord`.
    """

    moves: list[int]
    result: int
    fault: str


def play_host_match(
    game: Game,
    players: tuple[AnyPlayer, AnyPlayer],
    openings: Openings,
    rng_key: jax.Array,
    *,
    on_games: Callable[[int], object],
    poll: Poll,
) -> MatchResult:
    """Plays every opening twice, one game after the other.

    Who forfeits `PATIENCE` games in a row forfeits what is left of the match too: an
    engine that hangs would take for ever.

    Args:
        game: what is played.
        players: any two.
        openings: N of them.
        rng_key: consumed.
        on_games: called with 1 when a game is over.
        poll: called before each game; an error that it raises ends the match.
    """
    num_games = 2 * len(openings)
    seeds = np.asarray(jax.random.bits(rng_key, (num_games, 2), jnp.uint32)).tolist()
    forfeited = [0, 0]  # in a row
    played = []
    for number in range(num_games):
        poll(alone=True)
        opening = openings.moves[number // 2].tolist()
        is_swapped = number % 2
        order = (1, 0) if is_swapped else (0, 1)
        lost = [side for side in range(2) if forfeited[side] >= PATIENCE]
        if lost:
            result = 1 if order[1] == lost[0] else -1
            fault = f"not played: {PATIENCE} games in a row were forfeited"
            ended = PlayedGame(opening, result, fault)
        else:
            sides = (players[order[0]], players[order[1]])
            ended = play_game(game, sides, opening, seeds[number])
        loser = order[0] if ended.result < 0 else order[1]
        forfeited = [
            forfeited[side] + 1 if is_forfeit(ended.fault) and side == loser else 0
            for side in range(2)
        ]
        played.append(ended)
        on_games(1)
    moves = np.full((num_games, max(len(g.moves) for g in played)), -1, np.int32)
    for row, ended in zip(moves, played, strict=True):
        row[: len(ended.moves)] = ended.moves
    signs = np.where(np.arange(num_games) % 2, -1, 1)
    results = (signs * [ended.result for ended in played]).astype(np.int8)
    faults = tuple(ended.fault for ended in played)
    return MatchResult(moves, results, faults, openings.moves.shape[1])


def play_game(
    game: Game,
    players: tuple[AnyPlayer, AnyPlayer],
    opening: list[int],
    seeds: list[int],
) -> PlayedGame:
    """Plays one game; who cannot go on or breaks the rules loses it.

    Args:
        game: what is played.
        players: players 0 and 1.
        opening: the moves after which they take over; legal, and not the whole game.
        seeds: of the players' chance.
    """
    with contextlib.ExitStack() as stack:
        seats = []
        for player, seed in zip(players, seeds, strict=True):
            try:
                seat = start_session(player, game, seed)
            except ForfeitError as error:
                return PlayedGame(opening, -1 if not seats else 1, _reason(error))
            stack.callback(seat.close)
            seats.append(seat)
        controller = Controller(game, (None, None))
        controller.load(opening, (seats[0], seats[1]))
        controller.start()
    assert controller.result is not None, "seats play to the end"
    fault, forfeit = "", controller.forfeit
    if forfeit is not None:
        fault = RESIGNED if forfeit.is_resignation else _reason(forfeit.reason)
    moves = [move.action for move in controller.moves]
    return PlayedGame(moves, int(controller.result[0]), fault)


def _reason(said: object) -> str:
    return str(said) or "gave up"
