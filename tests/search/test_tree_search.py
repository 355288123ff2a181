"""The search compared with `mctx.search`, with games and artificial models."""

import functools
from typing import Any, NamedTuple
from unittest import mock

import chex
import jax
import jax.numpy as jnp
import mctx
import mctx._src.search
import numpy as np
import pytest

from azjax import games
from azjax.networks import DenseTrunkConfig, NetworkConfig, init_network
from azjax.players.model import evaluate, make_recurrent_fn, make_root
from azjax.search import search

TINY = NetworkConfig(
    trunk=DenseTrunkConfig(num_blocks=0, width=4, stem_channels=8, window=2)
)
NUM_ACTIONS = 5


# Models


class Dice(NamedTuple):
    """A model with pseudorandom outputs, determined by position and action.

    A position is an integer in float32.

    priors: range of the logits; 0: all actions are equally likely and, until they are
        visited, equally good.
    discounts: the four possible discounts.
    noise: scale of the part of the rewards that depends on the model's key.
    """

    priors: float = 2.0
    discounts: tuple[float, ...] = (-1.0, 1.0, -0.5, 0.75)
    noise: float = 0.0


ENDING = (-1.0, 1.0, -0.5, 0.0)
DICE = {
    "sharp": Dice(priors=8.0),
    "soft": Dice(),
    "flat": Dice(priors=0.0),
    "noisy": Dice(noise=1.0),
    "sharp and ending": Dice(priors=8.0, discounts=ENDING),
    "flat and ending": Dice(priors=0.0, discounts=ENDING),
}


def scramble(number):
    """Mixes the bits of uint32 numbers."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        number = (number ^ (number >> shift)) * jnp.uint32(factor)
    return number ^ (number >> 16)


def roll(dice, position, action, noise):
    """Draws the model's outputs for B positions after B actions."""
    seed = scramble(position.astype(jnp.uint32) ^ scramble(action.astype(jnp.uint32)))
    numbers = jnp.arange(1, NUM_ACTIONS + 5, dtype=jnp.uint32)
    bits = scramble(seed[:, None] + numbers * jnp.uint32(0x9E3779B9)) >> 8
    drawn = bits.astype(jnp.float32) / 2**23 - 1  # all within [-1, 1)
    fields = {
        "reward": drawn[:, 0] + dice.noise * noise,
        "discount": jnp.asarray(dice.discounts)[bits[:, 1] % 4],
        "value": drawn[:, 2],
        "prior_logits": dice.priors * drawn[:, 4:],
    }
    return mctx.RecurrentFnOutput(**fields), bits[:, 3].astype(jnp.float32)


def dice_model(dice, rng_key, action, positions):
    return roll(dice, positions, action, jax.random.uniform(rng_key, action.shape))


def dice_root(dice, batch_size):
    """Returns a root; every second game has one illegal action."""
    game = jnp.arange(batch_size)
    output, positions = roll(dice, jnp.full(batch_size, 7.0), game, 0.0)
    fields = {
        "prior_logits": output.prior_logits,
        "value": output.value,
        "embedding": positions,
    }
    is_chosen = (game % NUM_ACTIONS)[:, None] == jnp.arange(NUM_ACTIONS)
    return mctx.RootFnOutput(**fields), is_chosen & (game % 2 == 1)[:, None]


make_dice_root = jax.jit(dice_root, static_argnums=1)


@functools.cache
def game_and_network(name):
    game = games.make(name)
    network, variables = init_network(
        jax.random.key(0), game.observation_shape, game.num_actions, TINY
    )
    return game, network, variables


@functools.partial(jax.jit, static_argnums=(0, 1))
def positions_after_random_moves(game, batch_size):
    """Returns positions of all stages of a game, including finished ones."""

    def play_move(states, inputs):
        move, rng_key = inputs
        legal = jax.vmap(game.legal_action_mask)(states)
        action = jax.random.categorical(rng_key, jnp.where(legal, 0.0, -1e9))
        after = jax.vmap(game.step)(states, action)
        plays = move < jnp.arange(batch_size) % game.max_moves

        def choose(new, old):
            return jnp.where(plays.reshape(-1, *[1] * (old.ndim - 1)), new, old)

        return jax.tree.map(choose, after, states), None

    start = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (batch_size, *leaf.shape)), game.init()
    )
    keys = jax.random.split(jax.random.key(0), game.max_moves)
    return jax.lax.scan(play_move, start, (jnp.arange(game.max_moves), keys))[0]


# Searches with both implementations


class Case(NamedTuple):
    """Arguments of a search."""

    policy: str
    batch_size: int = 4
    num_simulations: int = 32
    max_depth: int | None = None
    caches_selection: bool = False


def name_of(case: Case) -> str:
    """Returns a test id."""
    changed = [
        f"{name}={value}"
        for name, value in case._asdict().items()
        if value != Case("")._asdict()[name]
    ]
    return ",".join(changed)


POLICIES: dict[str, Any] = {
    "gumbel": functools.partial(
        mctx.gumbel_muzero_policy,
        max_num_considered_actions=4,
        qtransform=functools.partial(
            mctx.qtransform_completed_by_mix_value, rescale_values=False
        ),
    ),
    "gumbel rescaled": mctx.gumbel_muzero_policy,
    "muzero": mctx.muzero_policy,
}


def make_both(case: Case, model, jit=jax.jit):
    """Compiles `(params, root, illegal)` to the results of both searches.

    Both call mctx's policy, with azjax's `search` and with mctx's; `jit` compiles.
    """

    def run(params, root, illegal):
        call = functools.partial(
            POLICIES[case.policy],
            params,
            jax.random.key(0),
            root,
            model,
            case.num_simulations,
            invalid_actions=illegal,
            max_depth=case.max_depth,
        )
        our_search = functools.partial(search, caches_selection=case.caches_selection)
        with mock.patch.object(mctx._src.search, "search", our_search):
            ours = call()
        return ours, call()

    return jit(run)


@functools.cache
def make_both_with_dice(case: Case):
    """All dice share one compiled function."""
    return make_both(case, dice_model, jax.jit)


# Comparison


def remove_nodes_after_ends(tree: mctx.Tree) -> tuple[mctx.Tree, int]:
    """Returns the tree without nodes after discounts of 0, and their number.

    A terminated node then has the model's value.
    """
    fields = {name: np.array(leaf) for name, leaf in arrays(tree).items()}
    batch_size, num_nodes = tree.node_visits.shape
    num_cut = 0
    for game in range(batch_size):
        continues = np.zeros(num_nodes, bool)
        for node in range(num_nodes):
            parent = tree.parents[game, node]
            is_kept = node == 0 or continues[parent]
            if node and is_kept:
                action = tree.action_from_parent[game, node]
                discount = tree.children_discounts[game, parent, action]
                value = tree.raw_values[game, node]
                continues[node] = discount != 0
                if not continues[node]:
                    fields["node_values"][game, node] = value
                    fields["children_values"][game, parent, action] = value
            if node == 0:
                continues[node] = True
            if not continues[node]:
                for name, nothing in WITHOUT_CHILDREN.items():
                    fields[name][game, node] = nothing
            if not is_kept:
                num_cut += int(tree.node_visits[game, node] > 0)
                for name, nothing in UNUSED_NODE.items():
                    fields[name][game, node] = nothing
    return fields, num_cut


WITHOUT_CHILDREN = {
    "children_index": mctx.Tree.UNVISITED,
    "children_visits": 0,
    "children_values": 0,
    "children_rewards": 0,
    "children_discounts": 0,
}
UNUSED_NODE = {
    "node_visits": 0,
    "raw_values": 0,
    "node_values": 0,
    "parents": mctx.Tree.NO_PARENT,
    "action_from_parent": mctx.Tree.NO_PARENT,
    "children_prior_logits": 0,
}


def arrays(tree: mctx.Tree) -> dict[str, np.ndarray]:
    """Returns all arrays of a tree except the embeddings and the search's inputs."""
    names = (*UNUSED_NODE, *WITHOUT_CHILDREN)
    return {name: np.asarray(getattr(tree, name)) for name in names}


def assert_same_tree(ours: mctx.Tree, theirs: mctx.Tree) -> int:
    """Compares all fields of all nodes; returns the number of nodes only in mctx's
    tree.
    """
    theirs_cut, num_cut = remove_nodes_after_ends(theirs)
    for name, our_array in arrays(ours).items():
        if our_array.dtype == np.int32:
            np.testing.assert_array_equal(our_array, theirs_cut[name], name)
        else:
            np.testing.assert_allclose(
                our_array, theirs_cut[name], rtol=1e-5, atol=1e-5, err_msg=name
            )
    is_used = np.asarray(ours.node_visits) > 0
    for ours_leaf, theirs_leaf in zip(
        *map(jax.tree.leaves, (ours.embeddings, theirs.embeddings)), strict=True
    ):
        np.testing.assert_array_equal(
            np.asarray(ours_leaf)[is_used], np.asarray(theirs_leaf)[is_used]
        )
    return num_cut


def assert_same_result(both) -> int:
    """Compares all policy outputs; returns the number of nodes only in mctx's tree."""
    ours, theirs = jax.device_get(both)
    np.testing.assert_array_equal(ours.action, theirs.action)
    np.testing.assert_allclose(
        ours.action_weights, theirs.action_weights, rtol=1e-5, atol=1e-5
    )
    np.testing.assert_array_equal(
        ours.search_tree.root_invalid_actions, theirs.search_tree.root_invalid_actions
    )
    chex.assert_trees_all_equal(
        ours.search_tree.extra_data, theirs.search_tree.extra_data
    )
    return assert_same_tree(ours.search_tree, theirs.search_tree)


def check_dice(case: Case, dice: Dice):
    root, illegal = make_dice_root(dice, case.batch_size)
    num_cut = assert_same_result(make_both_with_dice(case)(dice, root, illegal))
    if 0.0 not in dice.discounts:
        assert num_cut == 0
    elif case.max_depth is None and case.num_simulations > NUM_ACTIONS**2:
        assert num_cut > 0, "mctx did not search behind the end"


@functools.cache
def make_both_with_game(case: Case, name: str):
    """A sharp and a flat network share one compiled function."""
    game, network, _ = game_and_network(name)
    return make_both(case, make_recurrent_fn(game, network))


def check_game(case: Case, name: str, *, is_flat: bool = False):
    game, network, variables = game_and_network(name)
    if is_flat:
        variables = jax.tree.map(jnp.zeros_like, variables)
    states = positions_after_random_moves(game, case.batch_size)
    root = make_root(game, *evaluate(game, network, variables, states), states)
    illegal = ~jax.vmap(game.legal_action_mask)(states)
    both = make_both_with_game(case, name)
    num_cut = assert_same_result(both(variables, root, illegal))
    assert num_cut > 0, "mctx did not search behind the end"


@pytest.mark.parametrize("dice", DICE.values(), ids=DICE)
@pytest.mark.parametrize(
    "case",
    [
        Case("gumbel", num_simulations=64, caches_selection=True),
        pytest.param(
            Case("gumbel", batch_size=7), marks=pytest.mark.slow, id="gumbel batches"
        ),
        pytest.param(
            Case("gumbel", batch_size=3, max_depth=5, caches_selection=True),
            marks=pytest.mark.slow,
            id="gumbel, not deep",
        ),
        Case("gumbel rescaled", max_depth=2),
        pytest.param(
            Case("gumbel", batch_size=1, num_simulations=8, max_depth=1),
            marks=pytest.mark.slow,
            id="gumbel, one move deep",
        ),
        Case("muzero", num_simulations=64),
        pytest.param(
            Case("muzero", batch_size=3, max_depth=5),
            marks=pytest.mark.slow,
            id="muzero, not deep",
        ),
    ],
    ids=name_of,
)
def test_the_search_has_the_results_of_mctx(case, dice):
    check_dice(case, dice)


@pytest.mark.slow
@pytest.mark.parametrize("dice", DICE.values(), ids=DICE)
@pytest.mark.parametrize(
    "case",
    [
        Case("gumbel", batch_size=256, caches_selection=True),
        Case("gumbel rescaled", num_simulations=256, caches_selection=True),
        Case("muzero", batch_size=256, num_simulations=16),
        Case("muzero", num_simulations=256, max_depth=5),
    ],
    ids=name_of,
)
def test_a_larger_search_has_the_results_of_mctx(case, dice):
    check_dice(case, dice)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        Case("gumbel", 18, num_simulations=40, caches_selection=True),
        Case("muzero", 18, num_simulations=40),
    ],
    ids=name_of,
)
def test_in_a_game_only_nodes_after_the_end_differ(case):
    check_game(case, "tic_tac_toe")


# If all moves are equal in a whole game, mctx's PUCT depends on noise that is no larger
# than the rounding of its scores: two compilations of mctx can differ.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "name", "is_flat"),
    [
        (Case("gumbel", 27, 256, caches_selection=True), "tic_tac_toe", True),
        (Case("gumbel rescaled", 84, 64), "connect_four", False),
        (Case("gumbel rescaled", 84, 64), "connect_four", True),
        (Case("muzero", 84, 64), "connect_four", False),
    ],
)
def test_in_a_long_game_search_only_nodes_after_the_end_differ(case, name, is_flat):
    check_game(case, name, is_flat=is_flat)


# Arguments


def search_dice(search, *, batch_size=3, **settings):
    """Searches a `Dice` model."""
    root, illegal = dice_root(Dice(), batch_size)
    arguments = {
        "root": root,
        "recurrent_fn": dice_model,
        "root_action_selection_fn": least_visited,
        "interior_action_selection_fn": least_visited,
        "num_simulations": 12,
        "invalid_actions": illegal,
    }
    return search(Dice(), jax.random.key(0), **arguments | settings)


def least_visited(rng_key, tree, node_index, depth=0):
    """Selects the lowest of the least visited legal actions."""
    del rng_key
    illegal = tree.root_invalid_actions * (depth == 0)
    visits = jnp.where(illegal, 1000, tree.children_visits[node_index])
    return jnp.argmin(visits).astype(jnp.int32)


def at_random(rng_key, tree, node_index, depth=0):
    """Selects an action that depends on all arguments of a selection function."""
    action = jax.random.randint(rng_key, (), 0, tree.num_actions)
    turn = tree.node_visits[node_index] * jnp.int32(depth)
    return jnp.mod(action + turn, tree.num_actions).astype(jnp.int32)


def test_selection_functions_get_the_keys_and_depths_of_mctx():
    @jax.jit
    def run():
        functions = {
            "root_action_selection_fn": at_random,
            "interior_action_selection_fn": at_random,
            "num_simulations": 40,
        }
        return [search_dice(by, **functions) for by in (search, mctx.search)]

    ours, theirs = jax.device_get(run())
    assert_same_tree(ours, theirs)
    assert (ours.children_visits[:, 0] > 0).all(), "the keys are not random"


def test_the_depth_is_the_number_of_moves_from_the_root():
    def by_depth(rng_key, tree, node_index, depth):
        del rng_key, tree, node_index
        return jnp.minimum(depth, NUM_ACTIONS - 1)

    tree = jax.jit(
        lambda: search_dice(
            search,
            root_action_selection_fn=lambda *_: jnp.int32(0),
            interior_action_selection_fn=by_depth,
            num_simulations=4,
        )
    )()
    np.testing.assert_array_equal(tree.action_from_parent, [[-1, 0, 1, 2, 3]] * 3)
    np.testing.assert_array_equal(tree.parents, [[-1, 0, 1, 2, 3]] * 3)


@pytest.mark.parametrize("caches_selection", [False, True])
def test_extra_data_reaches_the_selection_functions_of_its_game(caches_selection):
    extra_data = {"root": np.array([2, 0, 4]), "below": np.array([1, 3, 4])}
    tree = jax.jit(
        lambda: search_dice(
            search,
            root_action_selection_fn=lambda key, tree, node: tree.extra_data["root"],
            interior_action_selection_fn=(
                lambda key, tree, node, depth: tree.extra_data["below"]
            ),
            extra_data=jax.tree.map(jnp.asarray, extra_data),
            caches_selection=caches_selection,
        )
    )()
    tree = jax.device_get(tree)
    np.testing.assert_array_equal(tree.action_from_parent[:, 1], extra_data["root"])
    below = tree.action_from_parent[:, 2:]
    np.testing.assert_array_equal(
        below, np.broadcast_to(extra_data["below"][:, None], below.shape)
    )
    chex.assert_trees_all_equal(tree.extra_data, extra_data)


@pytest.mark.parametrize("field", ["parents", "children_index", "embeddings"])
def test_a_selection_function_cannot_access_other_nodes(field):
    def accesses_other_nodes(rng_key, tree, node_index, depth):
        return getattr(tree, field)[node_index]

    with pytest.raises(TypeError, match="not subscriptable"):
        jax.eval_shape(
            lambda: search_dice(
                search, interior_action_selection_fn=accesses_other_nodes
            )
        )


def test_a_selection_function_gets_its_games_illegal_moves():
    tree = jax.device_get(jax.jit(lambda: search_dice(search, batch_size=4))())
    illegal = tree.root_invalid_actions
    assert illegal.any()
    np.testing.assert_array_equal(tree.children_visits[:, 0] > 0, ~illegal)


def test_illegal_actions_can_be_a_numpy_array_in_a_compiled_function():
    _, illegal = dice_root(Dice(), 2)
    illegal = np.asarray(illegal)
    settings = {"invalid_actions": illegal, "batch_size": 2}
    output = jax.eval_shape(lambda: search_dice(search, **settings))
    assert output.root_invalid_actions.shape == illegal.shape


def test_without_a_mask_all_moves_are_legal():
    tree = jax.device_get(jax.jit(lambda: search_dice(search, invalid_actions=None))())
    assert not tree.root_invalid_actions.any()
    assert (tree.children_visits[:, 0] > 0).all()


@pytest.mark.slow
def test_the_given_loop_runs_the_simulations():
    bounds = []

    def python_loop(lower, upper, body, value):
        bounds.append((lower, upper))
        for index in range(lower, upper):
            value = body(index, value)
        return value

    def run(**settings):
        return jax.jit(lambda: search_dice(search, num_simulations=3, **settings))()

    chex.assert_trees_all_close(run(loop_fn=python_loop), run(), rtol=1e-6)
    assert bounds == [(0, 3)]


@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize("name", ["num_simulations", "max_depth"])
def test_a_number_below_1_is_refused(name, number):
    with pytest.raises(ValueError, match=f"{name} must be an int from 1 .*: {number}"):
        jax.eval_shape(lambda: search_dice(search, **{name: number}))


def test_num_simulations_can_be_a_numpy_integer():
    shapes = jax.eval_shape(lambda: search_dice(search, num_simulations=np.int64(3)))
    assert shapes.node_visits.shape[1] == 4


def search_from(tree, **settings):
    """Traces a search that starts from a tree."""
    return jax.eval_shape(lambda tree: search_dice(search, tree=tree, **settings), tree)


@functools.cache
def shape_of_tree(**settings):
    """Returns the shapes of the tree of 3 games after 6 simulations."""
    return jax.eval_shape(lambda: search_dice(search, num_simulations=6, **settings))


def test_a_starting_tree_with_room_is_accepted():
    tree = shape_of_tree()
    assert search_from(tree, num_simulations=6) == tree


def test_a_starting_tree_of_other_games_is_refused():
    with pytest.raises(ValueError, match=r"for 3 games with 5 actions.*\(2, 5\)"):
        search_from(shape_of_tree(), batch_size=2)


def test_a_starting_tree_with_other_actions_is_refused():
    tree = shape_of_tree()
    tree = tree.replace(children_index=jax.ShapeDtypeStruct((3, 7, 4), jnp.int32))
    with pytest.raises(ValueError, match=r"for 3 games with 4 actions.*\(3, 5\)"):
        search_from(tree)


@pytest.mark.parametrize("num_simulations", [7, 100])
def test_a_starting_tree_without_room_for_the_simulations_is_refused(num_simulations):
    with pytest.raises(
        ValueError, match=f"room for 7 nodes.* more than.* {num_simulations}"
    ):
        search_from(shape_of_tree(), num_simulations=num_simulations)


@pytest.mark.parametrize(
    ("use_solver", "message"),
    [
        (True, "must be a ProvenTree when use_solver=True"),
        (False, "must not be a ProvenTree when use_solver=False"),
    ],
)
def test_a_starting_tree_of_the_other_kind_is_refused(use_solver, message):
    tree = shape_of_tree(use_solver=not use_solver)
    with pytest.raises(ValueError, match=message):
        search_from(tree, num_simulations=2, use_solver=use_solver)
