"""Matches between two players, and their results. Games of compiled players are played
in batches; games with an external player, a person or another program, on the host."""

import concurrent.futures
import contextlib
import dataclasses
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from azjax.arena.exhaustive import longer_games_error
from azjax.arena.openings import Openings, outcome_moves, suite, without_gaps
from azjax.arena.statistics import score_interval
from azjax.devices import spread
from azjax.games import Game, GameRecord, State, host
from azjax.games.core import select
from azjax.games.game_record import RESIGNED, is_forfeit
from azjax.players.batches import LOCAL, BatchLayout, Division, batch_layout
from azjax.players.core import (
    AnyPlayer,
    ExternalPlayer,
    ForfeitError,
    Player,
    PlayerSession,
    ResignError,
    choose_legal,
    choose_with_carry,
    init_carry,
    start_session,
)
from azjax.players.engine import STOPPED, EnginePlayer
from azjax.players.model import draw_chance
from azjax.settings import check_int

GAMES_AT_ONCE = 1024
PATIENCE = 3  # consecutive forfeits of a player that end its match


class WinDrawLoss(NamedTuple):
    """Numbers of games that a player won, drew and lost."""

    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        """The number of games."""
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """Points per game, in [0, 1]; a draw is half a point. NaN without games."""
        if not self.games:
            return math.nan
        return (self.wins + self.draws / 2) / self.games

    @property
    def reversed(self) -> "WinDrawLoss":
        """The opponent's results."""
        return WinDrawLoss(self.losses, self.draws, self.wins)

    def __add__(self, other: "WinDrawLoss") -> "WinDrawLoss":  # pyright: ignore
        """Adds the numbers of two results."""
        return WinDrawLoss(*(a + b for a, b in zip(self, other, strict=True)))


@dataclasses.dataclass(frozen=True, eq=False)
class MatchResult:
    """N games of `player` against `opponent`, in pairs.

    Games 2i and 2i + 1 have the same opening; `player` is player 0 in the first and
    player 1 in the second.

    moves: `[N, T]` int32; moves from the initial position, opening included: actions,
        and A + k for outcome k of chance; -1 after the end.
    results: `[N]` int8; 1 if `player` won, 0 for a draw, -1 if it lost.
    faults: N texts, as in `GameRecord`.
    opening_moves: number of actions in the opening of each game.
    num_actions: A, the number of actions of the game.
    values: `[N, T]` float32; the expected result for player 0 after each move, in [-1,
        1], as an external player who was to move then saw it; NaN where it is not
        known. None for a match of compiled players.
    """

    moves: np.ndarray
    results: np.ndarray
    faults: tuple[str, ...]
    opening_moves: int
    num_actions: int
    values: np.ndarray | None = None

    @property
    def as_first(self) -> WinDrawLoss:
        """The results of `player` as player 0."""
        return _count(self.results[::2])

    @property
    def as_second(self) -> WinDrawLoss:
        """The results of `player` as player 1."""
        return _count(self.results[1::2])

    @property
    def total(self) -> WinDrawLoss:
        """The results of `player` in all games."""
        return _count(self.results)

    @property
    def pair_points(self) -> np.ndarray:
        """`[N / 2]` float64; points of `player` with each opening, 0 to 2."""
        return 1 + self.results.reshape(-1, 2).sum(axis=1) / 2

    @property
    def by_opening(self) -> WinDrawLoss:
        """The numbers of openings from which `player` scored more, as much as and less
        than the opponent, with both colors together.

        Two strong players share an opening that decides the game, which brings the
        score nearer to 1/2.
        """
        return _count(np.sign(self.pair_points - 1))

    @property
    def distinct_pairs(self) -> int:
        """The number of different pairs of games."""
        pairs = self.moves.reshape(-1, 2 * self.moves.shape[1])
        return len(np.unique(pairs, axis=0))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% confidence interval of the score of `player`, from distinct pairs of
        games; see `score_interval`."""
        return score_interval(self.pair_points, self.distinct_pairs)

    @property
    def repeated(self) -> float:
        """The fraction of the games that went move by move as one before them."""
        return 1 - len(np.unique(self.moves, axis=0)) / len(self.moves)

    @property
    def forfeits(self) -> tuple[int, int]:
        """The numbers of games that `player` and `opponent` forfeited."""
        forfeited = np.array([is_forfeit(fault) for fault in self.faults])
        lost = self.results < 0
        return int((forfeited & lost).sum()), int((forfeited & ~lost).sum())

    def game_records(self, names: tuple[str, str]) -> list[GameRecord]:
        """Returns the games one by one.

        Args:
            names: of `player` and `opponent`.
        """
        games = []
        # An opening lasts until the next action; outcomes after its last one belong
        # to it.
        is_action = (self.moves >= 0) & (self.moves < self.num_actions)
        is_opening = np.cumsum(is_action, axis=1) <= self.opening_moves
        openings = (is_opening & (self.moves >= 0)).sum(axis=1).tolist()
        for number, (row, result) in enumerate(
            zip(self.moves, self.results, strict=True)
        ):
            is_swapped = number % 2 == 1
            values: Sequence[float | None] = ()
            if self.values is not None and not np.isnan(self.values[number]).all():
                known = self.values[number][row >= 0]
                values = [None if np.isnan(v) else float(v) for v in known]
            games.append(
                GameRecord(
                    names=(names[1], names[0]) if is_swapped else names,
                    moves=row[row >= 0].tolist(),
                    result=int(-result if is_swapped else result),
                    fault=self.faults[number],
                    opening_moves=openings[number],
                    values=tuple(values),
                )
            )
        return games


class MatchInterrupted(KeyboardInterrupt):
    """A Ctrl-C in a match of which pairs of games were over.

    match: their results.
    """

    def __init__(self, match: MatchResult):
        super().__init__()
        self.match = match


def concatenate(results: Sequence[MatchResult]) -> MatchResult:
    """Concatenates several matches between the same players."""
    longest = max(result.moves.shape[1] for result in results)
    values = [result.values for result in results if result.values is not None]
    return MatchResult(
        moves=np.concatenate([_pad(result.moves, longest, -1) for result in results]),
        results=np.concatenate([result.results for result in results]),
        faults=tuple(fault for result in results for fault in result.faults),
        opening_moves=results[0].opening_moves,
        num_actions=results[0].num_actions,
        values=np.concatenate([_pad(each, longest, np.nan) for each in values])
        if len(values) == len(results)
        else None,
    )


def _pad(rows: np.ndarray, length: int, value: float) -> np.ndarray:
    missing = length - rows.shape[1]
    return np.pad(rows, ((0, 0), (0, missing)), constant_values=value)


def _count(results: np.ndarray) -> WinDrawLoss:
    return WinDrawLoss(*(int((results == result).sum()) for result in (1, 0, -1)))


class Poll(Protocol):
    """A function that long computations call repeatedly; its exceptions stop them.

    alone: whether processes that share the computation may call it here different
        numbers of times.
    """

    def __call__(self, *, alone: bool = False) -> object: ...  # noqa: D102


def no_poll(*, alone: bool = False) -> None:
    """A `Poll` that never stops the computation."""


def play_match(
    game: Game,
    player: AnyPlayer,
    opponent: AnyPlayer,
    rng_key: jax.Array,
    num_games: int,
    *,
    opening_moves: int | None = None,
    games_at_once: int = GAMES_AT_ONCE,
    on_games: Callable[[int], object] = lambda games: None,
) -> MatchResult:
    """Plays games between two players, half of them with each color.

    Games are played in pairs with the same random opening and exchanged colors. The
    key is consumed.

    Args:
        game: the game.
        player: a compiled or external player. Compiled players are compiled once per
            player type, not per opponent or set of weights.
        opponent: its opponent.
        rng_key: for the openings and the players.
        num_games: an even number.
        opening_moves: random moves before the players take over, as in `suite`.
        games_at_once: maximum number of concurrent games; of compiled players, rounded
            up as in `batch_layout`. Engines play at most as many as there are cores.
        on_games: called with the number of games that have just finished.
    """
    check_num_games(num_games)
    opening_key, game_key = jax.random.split(rng_key)
    openings = suite(game, opening_key, num_games // 2, opening_moves)
    return play_openings(
        game,
        player,
        opponent,
        openings,
        game_key,
        games_at_once=games_at_once,
        on_games=on_games,
    )


def check_num_games(num_games: int) -> None:
    """Checks the number of games of a match."""
    if num_games < 2 or num_games % 2:
        raise ValueError(f"num_games must be even and >= 2: {num_games}")


def play_openings(
    game: Game,
    player: AnyPlayer,
    opponent: AnyPlayer,
    openings: Openings,
    rng_key: jax.Array,
    *,
    games_at_once: int = GAMES_AT_ONCE,
    on_games: Callable[[int], object] = lambda games: None,
    division: Division = LOCAL,
    poll: Poll = no_poll,
) -> MatchResult:
    """Plays every opening twice, with exchanged colors; otherwise like `play_match`.

    Batches of compiled players are divided as in `batch_layout`. Exceptions of `poll`
    end the match. Games with engines run at once, one on each core, each with its own
    processes; those with a person, or another object of Python, one after the other.
    The result is the same: games count in their order. An external player that forfeits
    `PATIENCE` consecutive games also forfeits the rest of the match, so that an engine
    that hangs does not stop a tournament.

    In a game with chance, both games of a pair draw their outcomes with the same random
    numbers, which lowers the variance of the score, as equal openings do.

    Raises:
        MatchInterrupted: Ctrl-C, after the games of at least one opening.
    """
    check_int("games_at_once", games_at_once, 1)
    if isinstance(player, ExternalPlayer) or isinstance(opponent, ExternalPlayer):
        return _play_on_host(
            game,
            (player, opponent),
            openings,
            rng_key,
            games_at_once=games_at_once,
            on_games=on_games,
            poll=poll,
        )
    players = (player, opponent)
    num_pairs = min(len(openings), max(1, games_at_once // 2))
    # The openings are played in chunks of one size, each of which is a batch.
    layout = batch_layout(num_pairs, players, division)
    players = layout.replicated(players)
    starts = range(0, len(openings), layout.size)
    results: list[MatchResult] = []
    try:
        for first, chunk_key in zip(
            starts, jax.random.split(rng_key, len(starts)), strict=True
        ):
            # The last chunk is padded, so that all have one shape.
            rows = np.arange(first, first + layout.size).clip(max=len(openings) - 1)
            size = min(layout.size, len(openings) - first)
            chunk = openings.take(rows)
            poll()
            batch = _play_batch(
                *(game, players, chunk, chunk_key), size=size, layout=layout, poll=poll
            )
            results.append(batch)
            on_games(2 * size)
    except KeyboardInterrupt as error:
        if not results:
            raise
        raise MatchInterrupted(concatenate(results)) from error
    return concatenate(results)


class _Half(NamedTuple):
    """B games in which the same player moved first after the opening and is now to
    move, except those in which a player has an extra turn.

    states: leaves `[B, ...]`.
    carries: the carry of the player to move and of the other player.
    moves: `[B, T]` int32, filled turn by turn; -1 where no move was made. In games with
        chance, a turn has two columns, the action and the outcome.
    is_forfeit: `[B]` bool; whether an illegal move ended the game.
    """

    states: State
    carries: tuple[Any, Any]
    moves: np.ndarray
    is_forfeit: np.ndarray


def _play_batch(
    game: Game,
    players: tuple[Player, Player],
    openings: Openings,
    rng_key: jax.Array,
    *,
    size: int,
    layout: BatchLayout,
    poll: Poll,
) -> MatchResult:
    """Plays every opening twice, each player moving first once, and returns the games
    of the first `size` openings; the others are padding.

    The players alternate: at every turn, `player` moves in one half of the games and
    `opponent` in the other; games in which it is not this player's turn wait. Only a
    single move of each player is compiled: a tournament of P players compiles P
    programs, not one per pairing.
    """
    start, mesh, num_turns = layout.by_position(openings.states), layout.mesh, 0
    seats = (start.current_player, 1 - start.current_player)
    has_waits = game.has_extra_turns or game.num_outcomes
    most_turns = game.max_moves * (2 if has_waits else 1)
    width, chance_key = 1, rng_key
    if game.num_outcomes:
        width, (rng_key, chance_key) = 2, jax.random.split(rng_key)
    carries = (init_carry(players[0], start, mesh), init_carry(players[1], start, mesh))
    # The halves in which `player` and in which `opponent` moves first.
    is_over = np.asarray(start.terminated)
    nothing = np.full((len(is_over), width * most_turns), -1, np.int32)
    halves = [
        _Half(start, each, nothing.copy(), is_over) for each in (carries, carries[::-1])
    ]
    for number in range(most_turns):
        if all(np.asarray(half.states.terminated).all() for half in halves):
            break
        poll(alone=True)
        move_keys = jax.random.split(jax.random.fold_in(rng_key, number))
        for index, mover in enumerate((number % 2, 1 - number % 2)):
            half, keys = halves[index], layout.keys(move_keys[mover])
            # Terminated and waiting games do not change. The players of terminated ones
            # get the opening as a placeholder.
            positions = _positions(mesh, half.states, start)
            choice, carry = choose_with_carry(
                players[mover], keys, positions, half.carries[0], mesh
            )
            states, action, is_illegal = _step(
                game, mesh, half.states, choice.action, seats[number % 2]
            )
            half.moves[:, width * number] = action
            if game.num_outcomes:  # the same random numbers in both halves
                keys = layout.keys(jax.random.fold_in(chance_key, number))
                states, outcome = _after_chance(game, mesh, keys, states)
                half.moves[:, width * number + 1] = outcome
            is_forfeit = half.is_forfeit | np.asarray(is_illegal)
            carries = (half.carries[1], carry)
            halves[index] = _Half(states, carries, half.moves, is_forfeit)
        num_turns = number + 1
    else:
        if not all(np.asarray(half.states.terminated).all() for half in halves):
            raise longer_games_error(game)
    # All processes gather arrays of the same shapes, however long their games were.
    played = layout.to_host(
        [
            (
                half.moves,
                np.full(len(is_over), num_turns, np.int32),
                np.asarray(_rewards(game, half.states)),
                half.is_forfeit,
            )
            for half in halves
        ]
    )
    made, lengths, rewards, is_forfeit = map(np.stack, zip(*played, strict=True))
    made = without_gaps(made[..., : width * lengths.max()])
    made = made[..., : width * game.max_moves]
    moves, results, faults = [], [], []
    row, first = np.arange(size), openings.states.current_player[:size]
    for number in range(2):
        # `player` has the seat of the first mover in the first half.
        half = (first + number) % 2
        moves.append(np.concatenate([openings.moves[:size], made[half, row]], axis=1))
        results.append(rewards[half, row, number].astype(np.int8))
        faults.append(np.where(is_forfeit[half, row], "illegal move", ""))
    return MatchResult(
        moves=without_gaps(np.stack(moves, axis=1).reshape(2 * size, -1)),
        results=np.stack(results, axis=1).reshape(-1),
        faults=tuple(np.stack(faults, axis=1).reshape(-1).tolist()),
        opening_moves=openings.num_moves,
        num_actions=game.num_actions,
    )


@jax.jit(static_argnums=0)
def _positions(mesh: Mesh | None, states: State, openings: State) -> State:
    def replace_terminated(states, openings):
        return jax.vmap(select)(states.terminated, openings, states)

    return spread(replace_terminated, mesh)(states, openings)


@jax.jit(static_argnums=(0, 1))
def _step(
    game: Game, mesh: Mesh | None, states: State, action: jax.Array, player: jax.Array
) -> tuple[State, jax.Array, jax.Array]:
    """Makes moves of the players `[B]` where it is their turn. Returns the next states,
    `[B]` int32 the recorded moves, -1 where there is none, and `[B]` bool whether an
    illegal move was tried."""

    def step(states, action, player):
        legal = jax.vmap(game.legal_action_mask)(states)
        known = action.clip(0, game.num_actions - 1)
        is_legal = (action == known) & legal[jnp.arange(len(action)), known]
        moves = ~states.terminated & (states.current_player == player)
        after = jax.vmap(select)(moves, jax.vmap(game.step)(states, action), states)
        return after, jnp.where(moves & is_legal, action, -1), moves & ~is_legal

    return spread(step, mesh)(states, action, player)


@jax.jit(static_argnums=(0, 1))
def _after_chance(
    game: Game, mesh: Mesh | None, rng_key: jax.Array, states: State
) -> tuple[State, jax.Array]:
    """Draws an outcome in the positions that wait for chance; `rng_key` is one key, or
    one for each lane. Returns the next states, and `[B]` int32 the recorded moves, -1
    where there is none."""

    def play(rng_key, states):
        after, outcome = draw_chance(game, rng_key, states)
        return after, outcome_moves(game, outcome)

    return spread(play, mesh)(rng_key, states)


@jax.jit(static_argnames="game")
def _rewards(game: Game, states: State) -> jax.Array:
    return jax.vmap(game.rewards)(states)


class PlayedGame(NamedTuple):
    """A finished game.

    moves: the moves from the initial position, actions and outcomes of chance.
    result: 1 if player 0 won, 0 for a draw, -1 if player 1 won.
    fault: as in `GameRecord`.
    values: as in `GameRecord`.
    """

    moves: list[int]
    result: int
    fault: str
    values: Sequence[float | None] = ()


def _play_on_host(
    game: Game,
    players: tuple[AnyPlayer, AnyPlayer],
    openings: Openings,
    rng_key: jax.Array,
    *,
    games_at_once: int,
    on_games: Callable[[int], object],
    poll: Poll,
) -> MatchResult:
    """Plays every opening twice, see `play_openings`; `games_at_once` is the maximum
    number of concurrent games, and `on_games` is called with 1 after each."""
    num_games = 2 * len(openings)
    seeds = np.asarray(jax.random.bits(rng_key, (num_games, 2), jnp.uint32)).tolist()

    def opening_of(number: int) -> list[int]:
        row = openings.moves[number // 2]
        return row[row >= 0].tolist()

    def play(number: int) -> PlayedGame:
        sides = (players[number % 2], players[1 - number % 2])
        # Both games of a pair have the same random numbers for chance.
        rng = np.random.default_rng(seeds[number // 2 * 2])
        return play_game(game, sides, opening_of(number), seeds[number], rng)

    played: list[PlayedGame] = []
    forfeited = [0, 0]  # consecutive games
    at_once = min(games_at_once, num_games, possible_at_once(players))
    try:
        with _in_order(play, num_games, at_once) as games:
            for number in range(num_games):
                poll(alone=True)
                # A player that forfeited too often loses the rest without playing.
                lost = [side for side in range(2) if forfeited[side] >= PATIENCE]
                if lost:
                    result = 1 if lost[0] != number % 2 else -1
                    fault = f"not played: {PATIENCE} games in a row were forfeited"
                    ended = PlayedGame(opening_of(number), result, fault)
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
        # Only whole pairs of games count.
        pairs = played[: len(played) // 2 * 2]
        if not pairs:
            raise
        match = _match_of(game, pairs, openings)
        raise MatchInterrupted(match) from error
    return _match_of(game, played, openings)


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
    rng: np.random.Generator,
) -> PlayedGame:
    """Plays one game; a player that fails or makes an illegal move loses it.

    Args:
        game: the game.
        players: players 0 and 1.
        opening: legal moves before the players take over; they do not end the game.
        seeds: seeds of the two players.
        rng: draws the outcomes of chance.
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
        # The value after a move is that of the position which the next player sees.
        state, moves = host.first_state(game), list(opening)
        values: list[float | None] = [None] * len(opening)
        for move in opening:
            state = host.next_state(game, state, move)
        while not state.terminated:
            if host.waits_for_chance(game, state):
                moves.append(host.random_outcome_move(game, state, rng))
                values.append(None)
                state = host.next_state(game, state, moves[-1])
                continue
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
            state = host.next_state(game, state, decision.action)
        return PlayedGame(moves, int(host.rewards(game, state)[0]), "", values)


def _reason(error: ForfeitError) -> str:
    return str(error) or "gave up"


def _match_of(
    game: Game, played: Sequence[PlayedGame], openings: Openings
) -> MatchResult:
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
    return MatchResult(
        moves, results, faults, openings.num_moves, game.num_actions, values
    )
