"""Matches on the host, for external players: a person or another program."""

import concurrent.futures
import contextlib
import os
import threading
from collections import deque
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
from azjax.players.core import (
    AnyPlayer,
    ExternalPlayer,
    ForfeitError,
    PlayerSession,
    ResignError,
    choose_legal,
    start_session,
)
from azjax.players.engine import STOPPED, EnginePlayer

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
    games_at_once: int,
    on_games: Callable[[int], object],
    poll: Poll,
) -> MatchResult:
    """Plays every opening twice.

    Games with engines run at once, one on each core, each with its own processes; those
    with a person, or another object of Python, one after the other. The result is the
    same: games count in their order.

    A player that forfeits `PATIENCE` consecutive games also forfeits the rest of the
    match, so that an engine that hangs does not stop the tournament.

    Args:
        game: the game.
        players: player and opponent.
        openings: N openings.
        rng_key: consumed.
        games_at_once: maximum number of concurrent games.
        on_games: called with 1 after each game.
        poll: called before each game; its exceptions end the match.

    Raises:
        MatchInterrupted: Ctrl-C, after the games of at least one opening.
    """
    num_games = 2 * len(openings)
    seeds = np.asarray(jax.random.bits(rng_key, (num_games, 2), jnp.uint32)).tolist()

    def play(number: int) -> PlayedGame:
        sides = (players[number % 2], players[1 - number % 2])
        opening = openings.moves[number // 2].tolist()
        return play_game(game, sides, opening, seeds[number])

    played: list[PlayedGame] = []
    forfeited = [0, 0]  # consecutive games
    at_once = min(games_at_once, num_games, possible_at_once(players))
    try:
        with _in_order(play, num_games, at_once) as games:
            for number in range(num_games):
                poll(alone=True)
                lost = [side for side in range(2) if forfeited[side] >= PATIENCE]
                if lost:
                    result = 1 if lost[0] != number % 2 else -1
                    fault = f"not played: {PATIENCE} games in a row were forfeited"
                    opening = openings.moves[number // 2].tolist()
                    ended = PlayedGame(opening, result, fault)
                else:
                    ended = next(games)
                is_lost = is_forfeit(ended.fault)
                loser = number % 2 if ended.result < 0 else 1 - number % 2
                for side in range(2):
                    is_again = is_lost and side == loser
                    forfeited[side] = forfeited[side] + 1 if is_again else 0
                played.append(ended)
                on_games(1)
    except KeyboardInterrupt as error:
        pairs = played[: len(played) // 2 * 2]
        if not pairs:
            raise
        match = _as_match(pairs, openings.moves.shape[1])
        raise MatchInterrupted(match) from error
    return _as_match(played, openings.moves.shape[1])


def possible_at_once(players: Sequence[AnyPlayer]) -> int:
    """Returns how many games can run at once."""
    num_threads = 1
    for player in players:
        if isinstance(player, EnginePlayer):
            num_threads = max(num_threads, player.num_threads)
        elif isinstance(player, ExternalPlayer):
            return 1
    if hasattr(os, "sched_getaffinity"):
        num_cores = len(os.sched_getaffinity(0))
    else:
        num_cores = os.cpu_count() or 1
    return max(1, num_cores // num_threads)


@contextlib.contextmanager
def _in_order(
    play: Callable[[int], PlayedGame], num_games: int, at_once: int
) -> Iterator[Iterator[PlayedGame]]:
    """A context with an iterator of games 0, 1, ..., of which `at_once` run at once; at
    its end, the running ones are stopped."""
    if at_once == 1:  # in this thread, which an interrupt stops
        yield map(play, range(num_games))
        return
    stopped = threading.Event()
    workers = concurrent.futures.ThreadPoolExecutor(
        at_once, initializer=STOPPED.set, initargs=(stopped,)
    )

    def games() -> Iterator[PlayedGame]:
        running = deque(workers.submit(play, number) for number in range(at_once))
        for number in range(at_once, num_games + at_once):
            ended = running.popleft().result()
            if number < num_games:
                running.append(workers.submit(play, number))
            yield ended

    try:
        yield games()
    finally:
        stopped.set()
        workers.shutdown(cancel_futures=True)


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
        sessions: list[PlayerSession] = []
        for player, seed in zip(players, seeds, strict=True):
            try:
                session = start_session(player, game, seed)
            except ForfeitError as error:
                return PlayedGame(opening, 1 if sessions else -1, _reason(error))
            stack.callback(session.close)
            sessions.append(session)
        state, moves = first_state(game), list(opening)
        values: list[float | None] = [None] * len(opening)
        for action in opening:
            state = next_state(game, state, action)
        while not state.terminated:
            mover = int(state.current_player)
            try:
                decision = choose_legal(sessions[mover], game, state, list(moves))
            except ForfeitError as error:
                fault = RESIGNED if isinstance(error, ResignError) else _reason(error)
                return PlayedGame(moves, 1 if mover else -1, fault, values)
            # A compiled player without evaluation, such as `random`, has the value 0.
            is_external = isinstance(players[mover], ExternalPlayer)
            if moves and is_external and decision.value is not None:
                values[-1] = decision.value * (1 - 2 * mover)
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
