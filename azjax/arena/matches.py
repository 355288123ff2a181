"""Matches between two players; games of compiled players are played in batches."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from azjax.arena.host_match import play_host_match
from azjax.arena.openings import Openings, suite
from azjax.arena.poll import Poll, no_poll
from azjax.arena.results import MatchInterrupted, MatchResult, concatenate
from azjax.checks import check_int
from azjax.devices import spread
from azjax.games import Game, State
from azjax.games.core import select
from azjax.players.batches import LOCAL, BatchLayout, Division, batch_layout
from azjax.players.core import (
    AnyPlayer,
    ExternalPlayer,
    Player,
    choose_with_carry,
    init_carry,
)

GAMES_AT_ONCE = 1024


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
    end the match.

    Raises:
        MatchInterrupted: Ctrl-C, after the games of at least one opening.
    """
    check_int("games_at_once", games_at_once, 1)
    if isinstance(player, ExternalPlayer) or isinstance(opponent, ExternalPlayer):
        return play_host_match(
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
            halves = _play_out(
                game, players, chunk.states, chunk_key, layout=layout, poll=poll
            )
            played = layout.to_host([_finish(game, half) for half in halves])
            results.append(_as_match(chunk, played, size))
            on_games(2 * size)
    except KeyboardInterrupt as error:
        if not results:
            raise
        raise MatchInterrupted(concatenate(results)) from error
    return concatenate(results)


class _Half(NamedTuple):
    """B games in which the same player moved first after the opening and is now to
    move.

    states: leaves `[B, ...]`.
    carries: the carry of the player to move and of the other player.
    actions: `[B]` int32 for each move so far, -1 where the game was over.
    is_forfeit: `[B]` bool; whether an illegal move ended the game.
    """

    states: State
    carries: tuple[Any, Any]
    actions: tuple[jax.Array, ...]
    is_forfeit: np.ndarray


def _play_out(
    game: Game,
    players: tuple[Player, Player],
    openings: State,
    rng_key: jax.Array,
    *,
    layout: BatchLayout,
    poll: Poll,
) -> tuple[_Half, _Half]:
    """Plays every opening twice, each player moving first once.

    The players alternate: at every move, `player` moves in one half of the games and
    `opponent` in the other. Only a single move of each player is compiled: a tournament
    of P players compiles P programs, not one per pairing.

    Returns:
        The halves in which `player` and in which `opponent` moved first.
    """
    openings = layout.by_position(openings)
    carries = (
        init_carry(players[0], openings, layout.mesh),
        init_carry(players[1], openings, layout.mesh),
    )
    halves = [
        _Half(openings, each, (), np.asarray(openings.terminated))
        for each in (carries, carries[::-1])
    ]
    for number in range(game.max_moves):
        if all(np.asarray(half.states.terminated).all() for half in halves):
            break
        poll(alone=True)
        move_keys = jax.random.split(jax.random.fold_in(rng_key, number))
        halves = [
            _move(game, players[mover], half, openings, move_keys[mover], layout=layout)
            for half, mover in zip(halves, (number % 2, 1 - number % 2), strict=True)
        ]
    return halves[0], halves[1]


def _move(
    game: Game,
    player: Player,
    half: _Half,
    openings: State,
    rng_key: jax.Array,
    *,
    layout: BatchLayout,
) -> _Half:
    """Makes a move of one player in each game of a half."""
    mesh, keys = layout.mesh, layout.keys(rng_key)
    # Terminated games do not change; their players get the opening as a placeholder.
    positions = _positions(mesh, half.states, openings)
    choice, carry = choose_with_carry(player, keys, positions, half.carries[0], mesh)
    states, action, is_illegal = _step(game, mesh, half.states, choice.action)
    return _Half(
        states=states,
        carries=(half.carries[1], carry),
        actions=(*half.actions, action),
        is_forfeit=half.is_forfeit | np.asarray(is_illegal),
    )


@jax.jit(static_argnums=0)
def _positions(mesh: Mesh | None, states: State, openings: State) -> State:
    def replace_terminated(states, openings):
        return jax.vmap(select)(states.terminated, openings, states)

    return spread(replace_terminated, mesh)(states, openings)


@jax.jit(static_argnums=(0, 1))
def _step(
    game: Game, mesh: Mesh | None, states: State, action: jax.Array
) -> tuple[State, jax.Array, jax.Array]:
    """Returns the next states, `[B]` int32 the recorded moves, -1 where there is none,
    and `[B]` bool whether an illegal move was tried."""

    def step(states, action):
        legal = jax.vmap(game.legal_action_mask)(states)
        known = action.clip(0, game.num_actions - 1)
        is_legal = (action == known) & legal[jnp.arange(len(action)), known]
        is_running = ~states.terminated
        recorded = jnp.where(is_running & is_legal, action, -1)
        return jax.vmap(game.step)(states, action), recorded, is_running & ~is_legal

    return spread(step, mesh)(states, action)


@jax.jit(static_argnames="game")
def _rewards(game: Game, states: State) -> jax.Array:
    return jax.vmap(game.rewards)(states)


class _FinishedHalf(NamedTuple):
    """The finished games of a half, NumPy arrays.

    actions: `[B, max_moves]` int32, -1 after the last move.
    num_moves: `[B]` int32; number of moves of the longest game.
    rewards: `[B, 2]` float32, of both players.
    is_forfeit: `[B]` bool.
    """

    actions: np.ndarray
    num_moves: np.ndarray
    rewards: np.ndarray
    is_forfeit: np.ndarray


def _finish(game: Game, half: _Half) -> _FinishedHalf:
    """Returns the games of a half; the shapes do not depend on their length, so that
    processes can gather them."""
    rewards = np.asarray(_rewards(game, half.states))
    actions = np.full((len(rewards), game.max_moves), -1, np.int32)
    for number, action in enumerate(half.actions):
        actions[:, number] = action
    num_moves = np.full(len(rewards), len(half.actions), np.int32)
    return _FinishedHalf(actions, num_moves, rewards, half.is_forfeit)


def _as_match(
    openings: Openings, played: list[_FinishedHalf], size: int
) -> MatchResult:
    """Returns the games of the first `size` openings as a match.

    Args:
        openings: the openings.
        played: the halves in which `player` and in which `opponent` moved first.
        size: number of openings without padding.
    """
    # After an odd number of opening moves, player 1 is to move.
    zero_moves = bool(openings.states.current_player[0] == 0)
    as_zero, as_one = played if zero_moves else played[::-1]
    num_moves = max(half.num_moves.max() for half in played)
    moves, results, faults = [], [], []
    for number, half in enumerate((as_zero, as_one)):
        actions = half.actions[:, :num_moves]
        moves.append(np.concatenate([openings.moves, actions], axis=1)[:size])
        results.append(half.rewards[:size, number].astype(np.int8))
        faults.append(np.where(half.is_forfeit[:size], "illegal move", ""))
    return MatchResult(
        moves=np.stack(moves, axis=1).reshape(2 * size, -1),
        results=np.stack(results, axis=1).reshape(-1),
        faults=tuple(np.stack(faults, axis=1).reshape(-1).tolist()),
        opening_moves=openings.moves.shape[1],
    )
