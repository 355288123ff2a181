"""Self-play of Q-learning."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game, State
from azjax.games.core import initial_states, select
from azjax.networks import QNetwork, QParams
from azjax.players import Player
from azjax.players.q_learning import epsilon_greedy, legal_action_values


@struct.dataclass
class QGames:
    """B games in progress.

    state: positions, leaves `[B, ...]`; none is finished.
    side: `[B]` int8; the learner's player index against an opponent, which alternates
        from game to game.
    """

    state: State
    side: jax.Array


class Transition(NamedTuple):
    """A move of the learner in each of B positions.

    state: before the move, leaves `[B, ...]`.
    action: `[B]` int32.
    reward: `[B]` float32 in [-1, 1], to the player who moved; against an opponent after
        the reply.
    discount: `[B]` float32, the factor of the next position's value: 0 if the game has
        ended, -1 if the other side moves next, 1 if the same side does.
    next_state: leaves `[B, ...]`.
    is_move: `[B]` bool; False if the learner made no move.
    """

    state: State
    action: jax.Array
    reward: jax.Array
    discount: jax.Array
    next_state: State
    is_move: jax.Array


PlayMove = Callable[[QParams, QGames, jax.Array, jax.Array], tuple[QGames, Transition]]


def start_q_games(game: Game, num_games: int) -> QGames:
    """Returns new games; the learner is player 0 in every other one."""
    state = initial_states(game, num_games)
    return QGames(state=state, side=(jnp.arange(num_games) % 2).astype(jnp.int8))


def make_self_play_move(game: Game, network: QNetwork) -> PlayMove:
    """Returns `(params, games, epsilon, rng_key) -> (games, transition)`.

    It makes one move of the learner, who plays both sides, in each game. The next
    position is the opponent's, hence the discount of -1, and the moves of both sides
    are training data. The key is consumed.
    """

    def play_move(
        params: QParams, games: QGames, epsilon: jax.Array, rng_key: jax.Array
    ) -> tuple[QGames, Transition]:
        values = legal_action_values(game, network, params, games.state)
        action = epsilon_greedy(rng_key, values, epsilon)
        after = jax.vmap(game.step)(games.state, action)
        every = jnp.ones_like(games.state.terminated)
        return _finish(game, games, action, after, discount=-1.0, is_move=every)

    return play_move


def make_move_against(game: Game, network: QNetwork, opponent: Player) -> PlayMove:
    """Returns `(params, games, epsilon, rng_key) -> (games, transition)`.

    It makes one move of the learner in each game, and the opponent's reply. The next
    position is the learner's own: the opponent belongs to the environment, and only the
    learner's moves are training data. Where the opponent starts a game, it makes its
    first move and the learner none. The key is consumed.
    """

    def play_move(
        params: QParams, games: QGames, epsilon: jax.Array, rng_key: jax.Array
    ) -> tuple[QGames, Transition]:
        learner_key, opponent_key = jax.random.split(rng_key)
        state = games.state
        is_move = state.current_player == games.side
        values = legal_action_values(game, network, params, state)
        action = epsilon_greedy(learner_key, values, epsilon)
        moved = jax.vmap(select)(is_move, jax.vmap(game.step)(state, action), state)
        # The opponent gets no finished position: there it chooses in the previous one,
        # and its move has no effect.
        unfinished = jax.vmap(select)(moved.terminated, state, moved)
        reply = opponent.choose(opponent_key, unfinished).action
        after = jax.vmap(game.step)(moved, reply)
        return _finish(game, games, action, after, discount=1.0, is_move=is_move)

    return play_move


def _finish(
    game: Game,
    games: QGames,
    action: jax.Array,
    after: State,
    *,
    discount: float,
    is_move: jax.Array,
) -> tuple[QGames, Transition]:
    """Replaces finished games by new ones; returns the games and the transition."""
    rewards = jax.vmap(game.rewards)(after)
    mover = games.state.current_player
    transition = Transition(
        state=games.state,
        action=action,
        reward=jnp.where(mover == 1, rewards[:, 1], rewards[:, 0]),
        discount=jnp.where(after.terminated, 0.0, discount),
        next_state=after,
        is_move=is_move,
    )
    new = start_q_games(game, len(mover)).state
    state = jax.vmap(select)(after.terminated, new, after)
    side = jnp.where(after.terminated, 1 - games.side, games.side)
    return QGames(state, side), transition
