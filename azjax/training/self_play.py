"""One chunk of moves by many games at once."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game, State
from azjax.games.core import select
from azjax.networks import Network, Variables, expected_value
from azjax.players.model import evaluate, make_root, mover_reward
from azjax.search import SearchConfig, first_trees
from azjax.training.config import ReplayConfig, SelfPlayConfig
from azjax.training.searches import after_moves, make_searches
from azjax.training.stored_policy import StoredPolicy, action_dtype, store_policy


@struct.dataclass
class Games:
    """The games in progress in B slots.

    state: the positions, leaves `[B, ...]`; none is finished.
    moves: `[B]` int32; moves made since each game's opening.
    """

    state: State
    moves: jax.Array


class Chunk(NamedTuple):
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
    """What happened in a chunk, scalars.

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


def start_games(game: Game, config: SelfPlayConfig, rng_key: jax.Array) -> Games:
    """Returns the first games of B slots, from random positions of all stages, so that
    they do not end at the same time; only later games begin as `config` says. The key
    is consumed."""
    keys = jax.random.split(rng_key, config.num_games)
    state = jax.vmap(lambda key: random_opening(game, key, jnp.int32(game.max_moves)))(
        keys
    )
    return Games(state=state, moves=jnp.zeros(config.num_games, jnp.int32))


def make_self_play(
    game: Game,
    network: Network,
    search: SearchConfig,
    config: SelfPlayConfig,
    *,
    num_simulations: int,
    policy_entries: int = ReplayConfig.policy_entries,
):
    """Returns a jitted `(variables, games, rng_key) -> (games, chunk, metrics)`.

    It makes `config.moves_per_chunk` moves in every game; a finished game is replaced
    at once by one from a pool of openings drawn for the chunk. Trees, where the search
    keeps them, end with the chunk, since another network plays the next. Of a policy
    `policy_entries` are stored, as `store_policy` does. The games are donated, the key
    is consumed.
    """
    search_all = make_searches(
        game, network, search, config, num_simulations=num_simulations
    )
    # A game from a random opening rarely lasts less than 16 moves; should the pool run
    # out all the same, its first openings are used again.
    pool_size = max(config.num_games, config.num_games * config.moves_per_chunk // 16)

    def play_move(variables: Variables, pool: State, carry, rng_key: jax.Array):
        games, num_finished, tree = carry
        search_key, sample_key = jax.random.split(rng_key)
        logits, result = evaluate(game, network, variables, games.state)
        value = expected_value(result)
        root = make_root(logits, result, games.state)
        found = search_all(variables, search_key, root, tree)
        sampled = jax.random.categorical(sample_key, jnp.log(found.policy))
        is_sampled = games.moves < config.temperature_moves
        action = jnp.where(is_sampled, sampled, found.action)
        after = jax.vmap(game.step)(games.state, action)
        policy, dropped = store_policy(
            jnp.where(found.is_full[:, None], found.policy, 0), policy_entries
        )
        chunk = Chunk(
            state=games.state,
            action=action.astype(action_dtype(game.num_actions)),
            policy=policy,
            value=found.value,
            draw_probability=result[:, 1],
            reward=mover_reward(game, games.state, after),
            terminated=after.terminated,
        )
        first_player_score = jax.vmap(game.rewards)(after)[:, 0].sum()
        log_prior = jax.nn.log_softmax(logits)
        log_policy = jnp.log(jnp.maximum(found.policy, 1e-9))
        entropy = -(found.policy * log_policy).sum(axis=-1).mean()
        gain = (found.policy * (log_policy - log_prior)).sum(axis=-1).mean()
        value_gain = jnp.abs(found.value - value).mean()

        finished = after.terminated
        rank = num_finished + jnp.cumsum(finished) - 1
        fresh = jax.tree.map(lambda leaf: leaf[rank % pool_size], pool)
        games = Games(
            state=jax.vmap(select)(finished, fresh, after),
            moves=jnp.where(finished, 0, games.moves + 1),
        )
        num_finished = num_finished + finished.sum(dtype=jnp.int32)
        if tree is not None:
            tree = after_moves(found.tree, action, finished, search.tree_reuse_nodes)
        return (games, num_finished, tree), (
            chunk,
            (
                first_player_score,
                entropy,
                gain,
                value_gain,
                found.visits.mean(),
                dropped.sum() / config.full_games,
            ),
        )

    def play_chunk(variables: Variables, games: Games, rng_key: jax.Array):
        pool_key, moves_key = jax.random.split(rng_key)
        pool = random_openings(game, config, pool_key, pool_size)
        tree = first_trees(
            search,
            games.state,
            game.num_actions,
            config.longest_search(num_simulations),
        )
        (games, num_finished, _), (chunk, sums) = jax.lax.scan(
            functools.partial(play_move, variables, pool),
            (games, jnp.int32(0), tree),
            jax.random.split(moves_key, config.moves_per_chunk),
        )
        score, entropy, gain, value_gain, root_visits, dropped = sums
        metrics = SelfPlayMetrics(
            games=num_finished,
            first_player_score=score.sum() / jnp.maximum(num_finished, 1),
            policy_entropy=entropy.mean(),
            policy_gain=gain.mean(),
            value_gain=value_gain.mean(),
            root_visits=root_visits.mean(),
            policy_mass_lost=dropped.mean(),
        )
        return games, chunk, metrics

    return jax.jit(play_chunk, donate_argnums=1)
