"""Matches on the host, one game at a time, for external players."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.arena.openings import Openings
from azjax.arena.poll import Poll
from azjax.arena.results import MatchInterrupted, MatchResult
from azjax.games import Game
from azjax.games.game_record import RESIGNED, is_forfeit
from azjax.games.host import first_state, next_state, rewards
from azjax.players.session import (
    AnyPlayer,
    ExternalPlayer,
    ForfeitError,
    PlayerSession,
    ResignError,
    choose_legal,
    start_session,
)

PATIENCE = 3  # consecutive forfeits of a player that end its match


class PlayedGame(NamedTuple):
    """A finished game.

    moves: the actions from the initial position.
    result: 1 if player 0 won, 0 for a draw, -1 if player 1 won.
    fault: as in `GameRecord`.
    values: as in `GameRecord`.
    """

    moves: list[int]
    result: int
    fault: str
    values: Sequence[float | None] = ()


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

    A player that forfeits `PATIENCE` consecutive games also forfeits the rest of the
    match, so that an engine that hangs does not stop the tournament.

    Args:
        game: the game.
        players: player and opponent.
        openings: N openings.
        rng_key: consumed.
        on_games: called with 1 after each game.
        poll: called before each game; its exceptions end the match.

    Raises:
        MatchInterrupted: Ctrl-C, after the games of at least one opening.
    """
    played: list[PlayedGame] = []
    try:
        for ended in _play_games(game, players, openings, rng_key, poll):
            played.append(ended)
            on_games(1)
    except KeyboardInterrupt as error:
        pairs = played[: len(played) // 2 * 2]
        if not pairs:
            raise
        match = _as_match(pairs, openings.moves.shape[1])
        raise MatchInterrupted(match) from error
    return _as_match(played, openings.moves.shape[1])


def _play_games(
    game: Game,
    players: tuple[AnyPlayer, AnyPlayer],
    openings: Openings,
    rng_key: jax.Array,
    poll: Poll,
) -> Iterator[PlayedGame]:
    """Yields the games of `play_host_match`."""
    num_games = 2 * len(openings)
    seeds = np.asarray(jax.random.bits(rng_key, (num_games, 2), jnp.uint32)).tolist()
    forfeited = [0, 0]  # consecutive games
    for number in range(num_games):
        poll(alone=True)
        opening = openings.moves[number // 2].tolist()
        order = (1, 0) if number % 2 else (0, 1)
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
        yield ended


def play_game(
    game: Game,
    players: tuple[AnyPlayer, AnyPlayer],
    opening: list[int],
    seeds: list[int],
) -> PlayedGame:
    """Plays one game; a player that fails or makes an illegal move loses it.

    Args:
        game: the game.
        players: players 0 and 1.
        opening: legal moves before the players take over; they do not end the game.
        seeds: seeds of the two players.
    """
    with contextlib.ExitStack() as stack:
        sessions = []
        for player, seed in zip(players, seeds, strict=True):
            try:
                session = start_session(player, game, seed)
            except ForfeitError as error:
                return PlayedGame(opening, 1 if sessions else -1, _reason(error))
            stack.callback(session.close)
            sessions.append(session)
        is_external = [isinstance(player, ExternalPlayer) for player in players]
        return _play_sessions(game, sessions, opening, is_external)


def _play_sessions(
    game: Game,
    sessions: Sequence[PlayerSession],
    opening: list[int],
    is_external: Sequence[bool],
) -> PlayedGame:
    """Plays one game; the values of external players are kept, because a compiled one
    without evaluation, such as `random`, has the value 0."""
    state, moves = first_state(game), list(opening)
    values: list[float | None] = [None] * len(opening)
    for action in opening:
        state = next_state(game, state, action)
    while not state.terminated:
        player = int(state.current_player)
        try:
            decision = choose_legal(sessions[player], game, state, list(moves))
        except ForfeitError as error:
            fault = RESIGNED if isinstance(error, ResignError) else _reason(error)
            return PlayedGame(moves, 1 if player else -1, fault, values)
        if moves and is_external[player] and decision.value is not None:
            values[-1] = decision.value * (1 - 2 * player)
        moves.append(decision.action)
        values.append(None)
        state = next_state(game, state, decision.action)
    return PlayedGame(moves, int(rewards(game, state)[0]), "", values)


def _reason(error: ForfeitError) -> str:
    return str(error) or "gave up"


def _as_match(played: Sequence[PlayedGame], opening_moves: int) -> MatchResult:
    """Returns the games as a match; `player` is player 1 in every second game."""
    moves = np.full((len(played), max(len(g.moves) for g in played)), -1, np.int32)
    values = np.full(moves.shape, np.nan, np.float32)
    for row, value_row, ended in zip(moves, values, played, strict=True):
        row[: len(ended.moves)] = ended.moves
        # NaN for None
        value_row[: len(ended.values)] = np.array(ended.values, np.float32)
    signs = np.where(np.arange(len(played)) % 2, -1, 1)
    results = (signs * [ended.result for ended in played]).astype(np.int8)
    faults = tuple(ended.fault for ended in played)
    return MatchResult(moves, results, faults, opening_moves, values)
