"""One chunk of moves by many games at once."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from azjax.games import Game, State
from azjax.games.core import select
from azjax.networks import Network, Variables
from azjax.players.model import evaluate, make_root, mover_reward
from azjax.search import SearchConfig, Tree, init_trees
from azjax.search.keys import draw, merge_batch, split_batch, split_keys
from azjax.search.types import RootFnOutput
from azjax.training.config import ReplayConfig, SelfPlayConfig
from azjax.training.searches import SearchResult, after_moves, make_searches
from azjax.training.stored_policy import StoredPolicy, action_dtype, store_policy


@struct.dataclass
class Games:
    """The games in progress in B slots.

    state: the positions, leaves `[B, ...]`; none is finished.
    moves: `[B]` int32; moves made since each game's opening.
    """

    state: State
    moves: jax.Array


class Trajectory(NamedTuple):
    """T moves in each of B game slots, in time order.

    The same type holds one move, `[B, ...]`, before `lax.scan` stacks the moves, and
    the rows of the replay, `[R, B, ...]`.

    state: the position before the move, leaves `[T, B, ...]`.
    action: `[T, B]`; the move, in the smallest unsigned integers that hold all actions.
    policy: leaves `[T, B, ...]`; the policy target: the search's improved policy (see
        `gumbel_policy`); all 0 where the search was a fast one.
    value: `[T, B]` float32; the search's value, for the player to move.
    draw_probability: `[T, B]` float32; the network's.
    reward: `[T, B]` float32; what the move brought to the player who made it.
    terminated: `[T, B]` bool; whether the move ended the game.
    """

    state: State
    action: jax.Array
    policy: StoredPolicy
    value: jax.Array
    draw_probability: jax.Array
    reward: jax.Array
    terminated: jax.Array


class SelfPlayMetrics(NamedTuple):
    """What happened in a chunk, scalars, or `[L]` of L lanes.

    games: finished.
    first_player_score: its mean result, in [-1, 1].
    policy_entropy: of the improved policy (nats).
    policy_gain: divergence of the improved policy from the network's (nats).
    value_gain: mean distance of the search's value from the network's.
    root_visits: simulations that a move rests on, those kept from before included.
    policy_mass_lost: probability that a stored policy target drops, on average.
    """

    games: jax.Array
    first_player_score: jax.Array
    policy_entropy: jax.Array
    policy_gain: jax.Array
    value_gain: jax.Array
    root_visits: jax.Array
    policy_mass_lost: jax.Array


def mean_of_lanes(metrics: SelfPlayMetrics) -> dict[str, Any]:
    """Returns the metrics of all lanes together by name, from `[L]` NumPy arrays."""
    means = {name: np.mean(leaf) for name, leaf in metrics._asdict().items()}
    games = np.sum(metrics.games)
    score = np.sum(metrics.games * metrics.first_player_score) / max(games, 1)
    return means | {"games": games, "first_player_score": score}


def random_opening(game: Game, rng_key: jax.Array, max_moves: jax.Array) -> State:
    """Returns a position after 0 to `max_moves` random legal moves; a move that would
    end the game is left out. The key is consumed.

    Args:
        game: the game.
        rng_key: one key.
        max_moves: `[]` int32; at most three quarters of the longest game are made.
    """
    length_key, moves_key = jax.random.split(rng_key)
    limit = (3 * game.max_moves) // 4
    length = jax.random.randint(length_key, (), 0, jnp.minimum(max_moves, limit) + 1)

    def play_move(state: State, inputs: tuple[jax.Array, jax.Array]):
        index, key = inputs
        legal = game.legal_action_mask(state)
        action = jax.random.categorical(key, jnp.where(legal, 0.0, -jnp.inf))
        after = game.step(state, action)
        return select((index < length) & ~after.terminated, after, state), None

    keys = jax.random.split(moves_key, limit)
    return jax.lax.scan(play_move, game.init(), (jnp.arange(limit), keys))[0]


def random_openings(
    game: Game, config: SelfPlayConfig, rng_key: jax.Array, count: int
) -> State:
    """Returns `count` positions from which games begin, in the mixture that `config`
    describes. The key is consumed."""
    kind_key, opening_key = jax.random.split(rng_key)
    kind = jax.random.uniform(kind_key, (count,))
    max_moves = jnp.select(
        [
            kind < config.initial_position_fraction,
            kind < config.initial_position_fraction + config.short_opening_fraction,
        ],
        [0, config.short_opening_moves],
        config.long_opening_moves,
    )
    keys = jax.random.split(opening_key, count)
    return jax.vmap(functools.partial(random_opening, game))(keys, max_moves)


def start_games(game: Game, num_games: int, rng_key: jax.Array) -> Games:
    """Returns the first games of B slots, from random positions of all stages, so that
    they do not end at the same time; only later games begin with the openings of
    `SelfPlayConfig`. The key is consumed."""
    keys = jax.random.split(rng_key, num_games)
    state = jax.vmap(lambda key: random_opening(game, key, jnp.int32(game.max_moves)))(
        keys
    )
    return Games(state=state, moves=jnp.zeros(num_games, jnp.int32))


def make_self_play(
    game: Game,
    network: Network,
    search: SearchConfig,
    config: SelfPlayConfig,
    *,
    policy_entries: int = ReplayConfig.policy_entries,
):
    """Returns a jitted `(variables, num_simulations, games, rng_key) -> (games, chunk,
    metrics)`.

    It makes `config.moves_per_chunk` moves in every game; a finished game is replaced
    at once by one from a pool of openings drawn for the chunk. `num_simulations` is an
    int32, at most `config.longest_search`, so that one compiled program serves all
    stages of a run. Trees, where the search keeps them, end with the chunk, since
    another network plays the next. Of a policy `policy_entries` are stored, as
    `store_policy` does. The games are donated, the key is consumed.

    With `[L]` keys it plays in L lanes at once: all leaves have an axis of lanes in
    front, and each lane plays what it would with its key alone, up to rounding.
    """
    searches = make_searches(game, network, search, config)

    def first_tree(states: State) -> Tree | None:
        return init_trees(search, states, game.num_actions, config.longest_search)

    move = _Move(game, network, search, config, searches, policy_entries)

    def play_lanes(
        variables: Variables,
        num_simulations: jax.Array,
        games: Games,
        rng_keys: jax.Array,
    ):
        num_games, num_lanes = games.moves[0].size, rng_keys.size
        # A game from a random opening rarely lasts less than 16 moves; should the pool
        # run out all the same, its first openings are used again.
        pool_size = max(num_games, num_games * config.moves_per_chunk // 16)
        pool_keys, moves_keys = split_keys(rng_keys, 2)
        pool = jax.vmap(lambda key: random_openings(game, config, key, pool_size))(
            pool_keys
        )
        games = merge_batch(games)
        (games, num_finished, _), (chunk, sums) = jax.lax.scan(
            functools.partial(move.play, variables, num_simulations, pool),
            (games, jnp.zeros(num_lanes, jnp.int32), first_tree(games.state)),
            split_keys(moves_keys, config.moves_per_chunk),
        )
        chunk = jax.tree.map(
            lambda leaf: jnp.moveaxis(
                leaf.reshape(len(leaf), num_lanes, num_games, *leaf.shape[2:]), 1, 0
            ),
            chunk,
        )
        means = jax.tree.map(lambda leaf: leaf.mean(axis=0), sums)
        score = sums.first_player_score.sum(axis=0) / jnp.maximum(num_finished, 1)
        metrics = means._replace(games=num_finished, first_player_score=score)
        return split_batch(games, num_lanes), chunk, metrics

    def play_chunk(
        variables: Variables,
        num_simulations: jax.Array,
        games: Games,
        rng_key: jax.Array,
    ):
        if rng_key.ndim:
            return play_lanes(variables, num_simulations, games, rng_key)
        lane = jax.tree.map(lambda leaf: leaf[None], (games, rng_key))
        played = play_lanes(variables, num_simulations, *lane)
        return jax.tree.map(lambda leaf: leaf[0], played)

    return jax.jit(play_chunk, donate_argnums=2)


class _Move(NamedTuple):
    """What a move in every game is made with."""

    game: Game
    network: Network
    search: SearchConfig
    config: SelfPlayConfig
    searches: Callable[..., SearchResult]
    policy_entries: int

    def play(
        self,
        variables: Variables,
        num_simulations: jax.Array,
        pool: State,
        carry,
        rng_keys: jax.Array,
    ):
        """Makes a move in each game of L lanes.

        Args:
            variables: of the network.
            num_simulations: `[]` int32; of a full search.
            pool: openings of the games to come, leaves `[L, P, ...]`.
            carry: the games, leaves `[B, ...]`, lane after lane; `[L]` int32, games
                finished in the chunk so far; the trees.
            rng_keys: `[L]`; consumed.

        Returns:
            The next carry, and the move with its metrics, `[L]` each.
        """
        game = self.game
        games, num_finished, tree = carry
        search_keys, sample_keys = split_keys(rng_keys, 2)
        logits, result = evaluate(game, self.network, variables, games.state)
        root = make_root(logits, result, games.state)
        found = self.searches(variables, num_simulations, search_keys, root, tree)
        sampled = draw(jax.random.categorical, sample_keys, jnp.log(found.policy))
        is_sampled = games.moves < self.config.temperature_moves
        action = jnp.where(is_sampled, sampled, found.action)
        after = jax.vmap(game.step)(games.state, action)
        policy, dropped = store_policy(
            jnp.where(found.is_full[:, None], found.policy, 0), self.policy_entries
        )
        chunk = Trajectory(
            state=games.state,
            action=action.astype(action_dtype(game.num_actions)),
            policy=policy,
            value=found.value,
            draw_probability=result[:, 1],
            reward=mover_reward(game, games.state, after),
            terminated=after.terminated,
        )
        finished = split_batch(after.terminated, rng_keys.size)
        metrics = self.measure(found, root, after, dropped, finished)

        rank = num_finished[:, None] + jnp.cumsum(finished, axis=1) - 1
        fresh = merge_batch(jax.vmap(_cyclic)(pool, rank))
        games = Games(
            state=jax.vmap(select)(after.terminated, fresh, after),
            moves=jnp.where(after.terminated, 0, games.moves + 1),
        )
        num_finished = num_finished + metrics.games
        if tree is not None:
            max_nodes = self.search.tree_reuse_nodes
            tree = after_moves(found.tree, action, after.terminated, max_nodes)
        return (games, num_finished, tree), (chunk, metrics)

    def measure(
        self,
        found: SearchResult,
        root: RootFnOutput,
        after: State,
        dropped: jax.Array,
        finished: jax.Array,
    ) -> SelfPlayMetrics:
        """Returns the metrics of a move, `[L]` each; of the first player's results the
        sum. `dropped` is of each stored policy, `finished` is `[L, B / L]`."""
        log_policy = jnp.log(jnp.maximum(found.policy, 1e-9))
        log_prior = jax.nn.log_softmax(root.prior_logits)
        of_games = {
            "policy_entropy": -(found.policy * log_policy).sum(axis=-1),
            "policy_gain": (found.policy * (log_policy - log_prior)).sum(axis=-1),
            "value_gain": jnp.abs(found.value - root.value),
            "root_visits": found.visits,
            "first_player_score": jax.vmap(self.game.rewards)(after)[:, 0],
            "policy_mass_lost": dropped,
        }
        of_lanes = split_batch(of_games, len(finished))
        num_full = self.config.full_games_of(finished.shape[1])
        totals = {
            name: of_lanes.pop(name).sum(axis=1)
            for name in ("first_player_score", "policy_mass_lost")
        }
        return SelfPlayMetrics(
            games=finished.sum(axis=1, dtype=jnp.int32),
            first_player_score=totals["first_player_score"],
            policy_mass_lost=totals["policy_mass_lost"] / num_full,
            **{name: values.mean(axis=1) for name, values in of_lanes.items()},
        )


def _cyclic(pool: State, number: jax.Array) -> State:
    """Returns the openings with these numbers, counted in a circle."""
    return jax.tree.map(lambda leaf: leaf[number % len(leaf)], pool)
