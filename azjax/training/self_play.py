"""Self-play: one chunk of moves in a batch of games."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from azjax.devices import jit_network
from azjax.games import Game, State
from azjax.games.core import initial_states, select
from azjax.games.random_moves import play_random_moves
from azjax.networks import Network, Variables, cast_variables
from azjax.players.model import (
    action_of,
    by_action,
    draw_chance,
    evaluate,
    is_illegal,
    make_recurrent_fn,
    make_root,
    mover_reward,
    num_edges,
    to_search,
)
from azjax.search import (
    SearchConfig,
    SearchSlice,
    Tree,
    improved_value,
    init_trees,
    subtree,
)
from azjax.search.keys import draw, merge_batch, split_batch, split_keys
from azjax.training.config import ReplayConfig, SelfPlayConfig
from azjax.training.stored_policy import (
    StoredPolicy,
    action_dtype,
    store_policy,
    store_values,
)


@struct.dataclass
class Games:
    """Games in progress in B slots.

    state: positions, leaves `[B, ...]`; none is finished.
    moves: `[B]` int32; moves since each game's opening.
    """

    state: State
    moves: jax.Array


class Trajectory(NamedTuple):
    """T moves in each of B game slots, in time order.

    Also the type of one move, `[B, ...]`, before `lax.scan` stacks the moves, and of
    the rows of the replay, `[R, B, ...]`.

    state: before the move, leaves `[T, B, ...]`.
    action: `[T, B]`, the smallest unsigned integer type that holds all actions.
    policy: policy target, leaves `[T, B, ...]`: the search's `action_weights`; all 0
        after a fast search.
    value: `[T, B]` float32; the search's value for the player to move.
    draw_probability: `[T, B]` float32; the network's.
    regret: `[T, B]` float32; how much lower the search values the move than its best
        move, at least 0.
    reward: `[T, B]` float32; to the player who moved.
    terminated: `[T, B]` bool; whether the move, or the outcome of chance after it,
        ended the game.
    outcome: `[T, B]` int16; of chance after the move, -1 where none followed; None in
        games without chance.
    """

    state: State
    action: jax.Array
    policy: StoredPolicy
    value: jax.Array
    draw_probability: jax.Array
    regret: jax.Array
    reward: jax.Array
    terminated: jax.Array
    outcome: jax.Array | None = None


class SelfPlayMetrics(NamedTuple):
    """Metrics of a chunk, scalars, or `[L]` for L lanes.

    games: finished games.
    first_player_score: mean result of the first player, in [-1, 1].
    policy_entropy: of the improved policy (nats).
    policy_gain: KL divergence of the improved policy from the network's (nats).
    value_gain: mean distance of the search's value from the network's.
    root_visits: mean simulations per move, reused ones included.
    policy_mass_lost: mean probability that stored policy targets lack.
    """

    games: jax.Array
    first_player_score: jax.Array
    policy_entropy: jax.Array
    policy_gain: jax.Array
    value_gain: jax.Array
    root_visits: jax.Array
    policy_mass_lost: jax.Array


class SearchResult(NamedTuple):
    """Results of the searches of B positions, with E edges (`azjax.players.model`).

    An edge is an action, except in games with `max_legal_actions`.

    edge: `[B]` int32; the best move.
    policy: `[B, E]` float32; the improved policy.
    value: `[B]` float32; for the player to move.
    qvalues: `[B, E]` float32; the search's value of each edge, `value` for edges
        without visits.
    is_visited: `[B, E]` bool; whether the edge has visits.
    visits: `[B]` float32; simulations in the tree, reused ones included.
    is_full: `[B]` bool; whether the search was a full one.
    tree: the trees; None without tree reuse.
    """

    edge: jax.Array
    policy: jax.Array
    value: jax.Array
    qvalues: jax.Array
    is_visited: jax.Array
    visits: jax.Array
    is_full: jax.Array
    tree: Tree | None


def mean_of_lanes(metrics: SelfPlayMetrics) -> dict[str, Any]:
    """Averages the metrics over the lanes, from `[L]` NumPy arrays to scalars by
    name."""
    means = {name: np.mean(leaf) for name, leaf in metrics._asdict().items()}
    games = np.sum(metrics.games)
    score = np.sum(metrics.games * metrics.first_player_score) / max(games, 1)
    return means | {"games": games, "first_player_score": score}


def random_openings(
    game: Game, config: SelfPlayConfig, rng_key: jax.Array, count: int
) -> State:
    """Returns `count` start positions, in the mixture of openings of `config`. The key
    is consumed."""
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
    return random_positions(game, opening_key, max_moves)


def start_games(game: Game, num_games: int, rng_key: jax.Array) -> Games:
    """Returns the first games of B slots, from random positions of all stages, so that
    they do not end at the same time; later games start from the openings of
    `SelfPlayConfig`. The key is consumed."""
    state = random_positions(game, rng_key, jnp.full(num_games, game.max_moves))
    return Games(state=state, moves=jnp.zeros(num_games, jnp.int32))


def random_positions(game: Game, rng_key: jax.Array, max_moves: jax.Array) -> State:
    """Returns positions after 0 to `max_moves` random legal moves, none of which ends
    the game. The key is consumed.

    Args:
        game: the game.
        rng_key: one key.
        max_moves: `[B]` int32; limited to three quarters of the longest game.
    """
    length_key, moves_key = jax.random.split(rng_key)
    most = jnp.minimum(max_moves, 3 * game.max_moves // 4)
    num_moves = jax.random.randint(length_key, most.shape, 0, most + 1, jnp.int32)
    states = initial_states(game, len(num_moves))
    return play_random_moves(game, moves_key, states, num_moves)


def make_self_play(
    game: Game,
    network: Network,
    search: SearchConfig,
    config: SelfPlayConfig,
    *,
    policy_entries: int = ReplayConfig.policy_entries,
):
    """Returns a jitted `(variables, num_simulations, games, rng_key) -> (games,
    trajectory, metrics, policy_values)`, which makes `config.moves_per_chunk` moves in
    every game.

    `num_simulations` is an int32, at most `config.longest_search`, so that all stages
    of a run use one compiled program. A finished game is replaced at once by an opening
    from a pool. Trees are reused only within a chunk, because the next chunk is played
    by another network. Policies are stored with `policy_entries` entries, see
    `store_policy`; `policy_values` are the search's values of the listed actions, `[T,
    B, A]` float16 if the policies are dense and `[T, B, K]` if sparse, see
    `store_values`. The games are donated, the key is consumed.

    With `[L]` keys it plays in L lanes: all leaves have a leading lane axis, and the
    games of each lane depend on its own key only, up to rounding. The example of
    `azjax.training` has one lane.
    """
    return jit_network(
        SelfPlay(game, network, search, config, policy_entries).play_chunk,
        donate_argnums=2,
    )


class SelfPlay(NamedTuple):
    """Static arguments of self-play, those of `make_self_play`; the methods are pure
    functions of arrays."""

    game: Game
    network: Network
    search: SearchConfig
    config: SelfPlayConfig
    policy_entries: int = ReplayConfig.policy_entries

    def play_chunk(
        self,
        variables: Variables,
        num_simulations: jax.Array,
        games: Games,
        rng_keys: jax.Array,
    ) -> tuple[Games, Trajectory, SelfPlayMetrics, jax.Array]:
        """Plays a chunk in L lanes, with a leading lane axis, or in one without it."""
        if rng_keys.ndim == 0:
            lane = jax.tree.map(lambda leaf: leaf[None], (games, rng_keys))
            played = self.play_chunk(variables, num_simulations, *lane)
            return jax.tree.map(lambda leaf: leaf[0], played)
        lane_games, num_lanes = games.moves[0].size, rng_keys.size
        num_moves = self.config.moves_per_chunk
        # Room for one new game per 16 moves of each slot; if shorter games exhaust the
        # pool, its openings are used again.
        pool_size = max(lane_games, lane_games * num_moves // 16)
        pool_keys, moves_keys = split_keys(rng_keys, 2)
        pool = jax.vmap(
            lambda key: random_openings(self.game, self.config, key, pool_size)
        )(pool_keys)
        # The moves are made in one batch of all lanes.
        games = merge_batch(games)
        variables = cast_variables(self.network, variables)
        trees = init_trees(
            self.search,
            to_search(self.game, games.state),
            num_edges(self.game),
            self.config.longest_search,
            has_chance=self.game.num_outcomes > 0,
        )
        (games, num_finished, _), (moves, metrics) = jax.lax.scan(
            functools.partial(self.play_move, variables, num_simulations, pool),
            (games, jnp.zeros(num_lanes, jnp.int32), trees),
            split_keys(moves_keys, num_moves),
        )
        # From `[T, B, ...]` to `[L, T, B / L, ...]`.
        trajectory, policy_values = jax.tree.map(
            lambda leaf: jnp.moveaxis(
                leaf.reshape(num_moves, num_lanes, lane_games, *leaf.shape[2:]), 1, 0
            ),
            moves,
        )
        means = jax.tree.map(lambda leaf: leaf.mean(axis=0), metrics)
        total_score = metrics.first_player_score.sum(axis=0)
        means = means._replace(
            games=num_finished,
            first_player_score=total_score / jnp.maximum(num_finished, 1),
        )
        return split_batch(games, num_lanes), trajectory, means, policy_values

    def play_move(
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
            num_simulations: `[]` int32; simulations of a full search.
            pool: openings for new games, leaves `[L, P, ...]`.
            carry: the games, leaves `[B, ...]`, lane by lane; `[L]` int32, games
                finished in the chunk so far; the trees.
            rng_keys: `[L]`; consumed.

        Returns:
            The next carry; the move and the values of `store_values`, leaves `[B,
            ...]`, and the metrics, `[L]` each, of which `first_player_score` is a sum.
        """
        game, num_lanes = self.game, rng_keys.size
        games, num_finished, tree = carry
        num_keys = 3 if game.num_outcomes else 2
        search_keys, sample_keys, *chance_keys = split_keys(rng_keys, num_keys)
        logits, outcome = evaluate(game, self.network, variables, games.state)
        root = make_root(game, logits, outcome, games.state)
        result = self.search_all(variables, num_simulations, search_keys, root, tree)

        # Choose the moves and make them.
        sampled = draw(jax.random.categorical, sample_keys, jnp.log(result.policy))
        is_sampled = games.moves < self.config.temperature_moves
        edge = jnp.where(is_sampled, sampled, result.edge)
        action = action_of(root.embedding, edge)
        after, chance_outcome = jax.vmap(game.step)(games.state, action), None
        if game.num_outcomes:
            after, chance_outcome = draw_chance(game, chance_keys[0], after)
            chance_outcome = chance_outcome.astype(jnp.int16)
        best, played = (
            jnp.take_along_axis(result.qvalues, move[:, None], axis=1)[:, 0]
            for move in (result.edge, edge)
        )

        # Store them. The policies of fast searches are all 0.
        def of_actions(numbers: jax.Array) -> jax.Array:
            return by_action(root.embedding, numbers, game.num_actions)

        policy = jnp.where(result.is_full[:, None], result.policy, 0)
        policy, dropped = store_policy(of_actions(policy), self.policy_entries)
        policy_values = store_values(
            policy, of_actions(result.qvalues), of_actions(result.is_visited)
        )
        move = Trajectory(
            state=games.state,
            action=action.astype(action_dtype(game.num_actions)),
            policy=policy,
            value=result.value,
            draw_probability=outcome[:, 1],
            regret=jnp.maximum(best - played, 0),
            reward=mover_reward(game, games.state, after),
            terminated=after.terminated,
            outcome=chance_outcome,
        )

        # Measure.
        finished = split_batch(after.terminated, num_lanes)
        log_policy = jnp.log(jnp.maximum(result.policy, 1e-9))
        log_prior = jax.nn.log_softmax(root.prior_logits)
        of_games = {
            "policy_entropy": -(result.policy * log_policy).sum(axis=-1),
            "policy_gain": (result.policy * (log_policy - log_prior)).sum(axis=-1),
            "value_gain": jnp.abs(result.value - root.value),
            "root_visits": result.visits,
            "first_player_score": jax.vmap(game.rewards)(after)[:, 0],
            "policy_mass_lost": dropped,
        }
        of_lanes = split_batch(of_games, num_lanes)
        score, lost = (
            of_lanes.pop(name).sum(axis=1)
            for name in ("first_player_score", "policy_mass_lost")
        )
        metrics = SelfPlayMetrics(
            games=finished.sum(axis=1, dtype=jnp.int32),
            first_player_score=score,
            policy_mass_lost=lost / self.config.full_games_of(finished.shape[1]),
            **{name: values.mean(axis=1) for name, values in of_lanes.items()},
        )

        # Replace finished games by openings of the pool.
        number = num_finished[:, None] + jnp.cumsum(finished, axis=1) - 1

        def openings(pool: State, number: jax.Array) -> State:
            return jax.tree.map(lambda leaf: leaf[number % len(leaf)], pool)

        new = merge_batch(jax.vmap(openings)(pool, number))
        games = Games(
            state=jax.vmap(select)(after.terminated, new, after),
            moves=jnp.where(after.terminated, 0, games.moves + 1),
        )
        if tree is not None:
            max_nodes = self.search.tree_reuse_nodes
            tree = after_moves(
                result.tree, edge, chance_outcome, after.terminated, max_nodes
            )
        carry = games, num_finished + metrics.games, tree
        return carry, ((move, policy_values), metrics)

    def search_all(
        self, variables, num_simulations, rng_key, root, tree
    ) -> SearchResult:
        """Searches the B positions of L lanes.

        In each lane `config.full_games_of(B / L)` positions, drawn at random, get a
        full search: `num_simulations` (int32, at most `config.longest_search`) with
        exploration. The others get `config.fast_simulations` without exploration.
        `rng_key` is `[L]`; `tree` holds the reused trees, or is None.
        """
        recurrent_fn = make_recurrent_fn(self.game, self.network)

        def search(positions, rng_key, *, is_full: bool) -> SearchResult:
            these, trees = jax.tree.map(lambda leaf: leaf[positions], (root, tree))
            part = None
            if is_full:
                # `longest` below is fixed when the program is compiled; this number of
                # simulations is an input, and stops the search earlier.
                made = jnp.zeros(these.value.shape, jnp.int32)
                part = SearchSlice(total=made + num_simulations, made=made)
            longest, fast = self.config.longest_search, self.config.fast_simulations
            # By default `search_by_gumbel` in `azjax/search/gumbel.py`.
            output = self.search.policy(explores=is_full)(
                variables,
                rng_key,
                these,
                recurrent_fn,
                longest if is_full else fast,
                invalid_actions=is_illegal(jnp.asarray(these.prior_logits)),
                max_depth=self.game.max_moves,
                tree=trees,
                search_slice=part,
            )
            edge, summary = jnp.asarray(output.action), output.search_tree.summary()
            is_visited, value = summary.visit_counts > 0, improved_value(output)
            searched = output.search_tree.replace(extra_data=None)
            return SearchResult(
                edge=edge,
                policy=jnp.asarray(output.action_weights),
                value=value,
                qvalues=jnp.where(is_visited, summary.qvalues, value[:, None]),
                is_visited=is_visited,
                visits=summary.visit_counts.sum(axis=-1),
                is_full=jnp.full(edge.shape, is_full),
                tree=None if trees is None else searched,
            )

        num_positions, num_lanes = root.value.size, rng_key.size
        num_full = self.config.full_games_of(num_positions // num_lanes)
        if num_full == num_positions // num_lanes:
            return search(slice(None), rng_key, is_full=True)
        # Each lane has the same number of full searches at every move: two searches of
        # static sizes, whose results return to the order of the games.
        order_key, full_key, fast_key = split_keys(rng_key, 3)
        order = draw(jax.random.permutation, order_key, jnp.arange(num_positions))
        order = split_batch(order, num_lanes)
        full, fast = order[:, :num_full].ravel(), order[:, num_full:].ravel()
        results = (
            search(full, full_key, is_full=True),
            search(fast, fast_key, is_full=False),
        )
        place = jnp.argsort(jnp.concatenate([full, fast]))
        return jax.tree.map(lambda *parts: jnp.concatenate(parts)[place], *results)


def after_moves(
    tree: Tree,
    edge: jax.Array,
    outcome: jax.Array | None,
    finished: jax.Array,
    max_nodes: int,
) -> Tree:
    """Returns the subtrees of the moves, empty where the game has ended.

    Args:
        tree: the searched trees.
        edge: `[B]` int32; the moves.
        outcome: `[B]` integers; of chance after them, -1 where none followed, or None.
        finished: `[B]` bool.
        max_nodes: maximum size of each subtree.
    """
    row = jnp.arange(edge.size)
    children = tree.children_index[row, tree.ROOT_INDEX, edge]
    if outcome is not None:
        below = tree.children_index[row, children, outcome]
        is_below = (children >= 0) & (outcome >= 0)
        children = jnp.where(is_below, below, children)
    new_root = jnp.where(finished, tree.UNVISITED, children)
    return subtree(tree, new_root, max_nodes=max_nodes)
