"""azjax's policies compared with mctx's, with an artificial model.

They differ only behind the end of a game, where mctx searches on.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax import search
from azjax.devices import tracing_for
from azjax.search import (
    AlphaZeroConfig,
    GumbelConfig,
    alphazero_policy,
    empty_tree,
    gumbel_policy,
)

NUM_ACTIONS = 5
OWN = {"gumbel_muzero_policy", "muzero_policy", "search"}
STOCHASTIC = {
    "ChanceRecurrentFnOutput",
    "DecisionRecurrentFnOutput",
    "stochastic_muzero_policy",
}


# Names


def test_the_names_are_those_of_mctx():
    shared = set(search.__all__) & set(mctx.__all__)
    assert set(mctx.__all__) - shared == STOCHASTIC
    own = {one for one in shared if getattr(search, one) is not getattr(mctx, one)}
    assert own == OWN


@pytest.mark.parametrize("name", sorted(OWN))
def test_the_parameters_and_defaults_are_those_of_mctx(name):
    ours, theirs = (
        [(one.name, one.kind, one.default) for one in signature.parameters.values()]
        for signature in (inspect.signature(getattr(x, name)) for x in (search, mctx))
    )
    assert ours[: len(theirs)] == theirs


# Policies


class Case(NamedTuple):
    """Two policies with the same result, and the arguments of both.

    is_puct: whether they take `dirichlet_fraction`.
    dtype: of the root's numbers that azjax gets; mctx gets the same ones in float32.
    platform: for which azjax's search is traced; all but "cpu" pack its tables.
    from_empty: whether azjax starts from a tree without nodes.
    """

    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    num_simulations: int = 64
    batch_size: int = 4
    max_depth: int | None = None
    is_puct: bool = False
    dtype: Any = jnp.float32
    platform: str = "cpu"
    from_empty: bool = False


def values_of_children(tree, node):
    """Returns the Q-values, from the numbers of the children; 0 if not visited."""
    values = tree.children_rewards + tree.children_discounts * tree.children_values
    return jnp.where(tree.children_visits[node] > 0, values[node], 0.0)


def completed_values(tree, node):
    mixed = mctx.qtransform_completed_by_mix_value(
        tree, node, value_scale=0.3, maxvisit_init=10.0, rescale_values=False
    )
    return mixed + 0.3 * values_of_children(tree, node)


def compared_values(tree, node):
    compared = mctx.qtransform_by_parent_and_siblings(tree, node, epsilon=0.1)
    return compared + 0.3 * values_of_children(tree, node)


def values_from_0_to_1(tree, node):
    visits = tree.children_visits[node]
    return jnp.where(visits > 0, (tree.qvalues(node) + 1) / 2, 0.0)


GUMBEL: dict[str, Any] = {
    "qtransform": completed_values,
    "max_num_considered_actions": 3,
    "gumbel_scale": 0.5,
}
MUZERO: dict[str, Any] = {
    "qtransform": compared_values,
    "dirichlet_alpha": 0.7,
    "pb_c_init": 2.0,
    "pb_c_base": 100.0,
    "temperature": 0.5,
}


def both(name, **settings):
    """Returns the policies of a name, of azjax and of mctx."""
    ours, theirs = getattr(search, name), getattr(mctx, name)
    return functools.partial(ours, **settings), functools.partial(theirs, **settings)


ALPHAZERO = MUZERO | {"qtransform": values_from_0_to_1}  # in mctx
PUCT: dict[str, Any] = {"c_init": 2.0, "c_base": 100.0, "dirichlet_alpha": 0.7}
rescaled = functools.partial(
    mctx.qtransform_completed_by_mix_value, value_scale=0.2, rescale_values=True
)
not_rescaled = functools.partial(rescaled, rescale_values=False)
CASES = {
    "gumbel_muzero_policy": Case(
        *both("gumbel_muzero_policy", **GUMBEL),
        max_depth=5,
        dtype=jnp.bfloat16,
    ),
    "gumbel, configured": Case(
        GumbelConfig(3, value_scale=0.2).policy(explores=True),
        functools.partial(
            mctx.gumbel_muzero_policy, qtransform=rescaled, max_num_considered_actions=3
        ),
        platform="gpu",
        from_empty=True,
    ),
    "muzero_policy": Case(
        *both("muzero_policy", **MUZERO),
        is_puct=True,
        dtype=jnp.bfloat16,
        platform="tpu",
    ),
    "alphazero_policy": Case(
        functools.partial(alphazero_policy, temperature=0.5, **PUCT),
        functools.partial(mctx.muzero_policy, **ALPHAZERO),
        is_puct=True,
        dtype=jnp.bfloat16,
    ),
}
FOUR: dict[str, Any] = {"max_num_considered_actions": 4}
SLOW_CASES = {
    "gumbel_policy, not rescaled": Case(
        functools.partial(gumbel_policy, **FOUR, value_scale=0.2, rescale_values=False),
        functools.partial(mctx.gumbel_muzero_policy, **FOUR, qtransform=not_rescaled),
        num_simulations=32,
        batch_size=256,
        dtype=jnp.bfloat16,
    ),
    "gumbel, one move deep": Case(
        *both("gumbel_muzero_policy"),
        num_simulations=8,
        batch_size=1,
        max_depth=1,
    ),
    "muzero, long": Case(
        *both("muzero_policy"),
        num_simulations=256,
        max_depth=5,
        is_puct=True,
    ),
    "alphazero, configured": Case(
        AlphaZeroConfig(c_init=2, c_base=100, dirichlet_alpha=0.7).policy(True),
        functools.partial(mctx.muzero_policy, **ALPHAZERO | {"temperature": 0.0}),
        batch_size=32,
        is_puct=True,
    ),
}


# Comparison

WITHOUT_CHILDREN = {
    "children_index": mctx.Tree.UNVISITED,
    **{f"children_{name}": 0 for name in ("visits", "values", "rewards", "discounts")},
}
UNUSED_NODE = {
    **dict.fromkeys(("node_visits", "raw_values", "node_values"), 0),
    **dict.fromkeys(("parents", "action_from_parent"), mctx.Tree.NO_PARENT),
    "children_prior_logits": 0,
}


def remove_nodes_after_ends(tree) -> tuple[dict[str, np.ndarray], int]:
    """Returns the arrays without nodes after discounts of 0, and their number.

    A terminated node then has the model's value.
    """
    names = (*UNUSED_NODE, *WITHOUT_CHILDREN)
    fields = {name: np.array(getattr(tree, name)) for name in names}
    is_used = tree.node_visits > 0
    is_kept, continues = np.zeros(is_used.shape, bool), np.zeros(is_used.shape, bool)
    is_kept[:, 0] = continues[:, 0] = True
    game = np.arange(len(is_used))
    for node in range(1, is_used.shape[1]):
        parent, action = tree.parents[:, node], tree.action_from_parent[:, node]
        is_kept[:, node] = is_used[:, node] & continues[game, parent]
        goes_on = tree.children_discounts[game, parent, action] != 0
        continues[:, node] = is_kept[:, node] & goes_on
        ended = is_kept[:, node] & ~goes_on
        value = tree.raw_values[ended, node]
        fields["node_values"][ended, node] = value
        edge = (game[ended], parent[ended], action[ended])
        fields["children_values"][edge] = value
    for name, nothing in WITHOUT_CHILDREN.items():
        fields[name][~continues] = nothing
    for name, nothing in UNUSED_NODE.items():
        fields[name][~is_kept] = nothing
    return fields, int((is_used & ~is_kept).sum())


def assert_same_result(dice, ours, theirs) -> int:
    """Compares all fields of all nodes; returns the number of nodes only in mctx's
    tree.

    dice: the model, which pytest prints if the results differ.
    """
    np.testing.assert_array_equal(ours.action, theirs.action)
    chex.assert_type(ours.action_weights, jnp.float32)
    close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)
    close(ours.action_weights, theirs.action_weights)
    our_tree, tree = ours.search_tree, theirs.search_tree
    np.testing.assert_array_equal(
        our_tree.root_invalid_actions, tree.root_invalid_actions
    )
    if tree.extra_data is not None:
        assert isinstance(our_tree.extra_data, mctx.GumbelMuZeroExtraData)
        noise, expected = our_tree.extra_data.root_gumbel, tree.extra_data.root_gumbel
        np.testing.assert_array_equal(noise, expected)
    fields, num_cut = remove_nodes_after_ends(tree)
    for name, numbers in fields.items():
        found, expected = getattr(our_tree, name), numbers
        if name == "children_prior_logits":  # without the part that has no effect
            found, expected = (
                x - x.max(axis=-1, keepdims=True) for x in (found, expected)
            )
        assert found.dtype == expected.dtype, name
        if found.dtype == np.int32:
            np.testing.assert_array_equal(found, expected, name)
        else:
            close(found, expected, err_msg=name)
    is_used = our_tree.node_visits > 0
    found, expected = (
        jax.tree.map(lambda leaf: leaf[is_used], one.embeddings)
        for one in (our_tree, tree)
    )
    chex.assert_trees_all_equal(found, expected)
    return num_cut


# An artificial game


class Dice(NamedTuple):
    """A model with pseudorandom outputs, determined by position and action.

    A position is an integer in float32.

    priors: range of the logits; 0: all actions are equally likely and, until they are
        visited, equally good.
    discounts: the four possible discounts.
    noise: scale of the part of the rewards that depends on the model's key.
    illegal: share of the actions below the root that are illegal.
    root_illegal: whether one action of every second root is illegal.
    dirichlet: fraction of noise in the root's prior, in PUCT.
    """

    priors: float = 2.0
    discounts: tuple[float, ...] = (-1.0, 1.0, -0.5, 0.75)
    noise: float = 0.0
    illegal: float = 0.0
    root_illegal: bool = True
    dirichlet: float = 0.0


ENDING = (-1.0, 1.0, -0.5, 0.0)
DICE = {
    "sharp": Dice(priors=8.0, dirichlet=0.5),
    "soft": Dice(root_illegal=False, dirichlet=0.5),
    "flat": Dice(priors=0.0),
    "noisy": Dice(noise=1.0),
    "with illegal actions": Dice(illegal=0.4),
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
    is_illegal = (bits[:, 4:] % 100 < 100 * dice.illegal).at[:, 0].set(False)
    lowest = jnp.finfo(jnp.float32).min
    fields = {
        "reward": drawn[:, 0] + dice.noise * noise,
        "discount": jnp.asarray(dice.discounts)[bits[:, 1] % 4],
        "value": drawn[:, 2],
        "prior_logits": jnp.where(is_illegal, lowest, dice.priors * drawn[:, 4:]),
    }
    return mctx.RecurrentFnOutput(**fields), bits[:, 3].astype(jnp.float32)


def dice_model(dice, rng_key, action, positions):
    return roll(dice, positions, action, jax.random.uniform(rng_key, action.shape))


def dice_root(dice, batch_size):
    """Returns the root and its illegal actions."""
    game = jnp.arange(batch_size)
    start = jnp.full(batch_size, 7.0)
    output, positions = roll(dice._replace(illegal=0.0), start, game, 0.0)
    fields = {
        "prior_logits": output.prior_logits,
        "value": output.value,
        "embedding": positions,
    }
    is_chosen = (game % NUM_ACTIONS)[:, None] == jnp.arange(NUM_ACTIONS)
    has_illegal = dice.root_illegal & (game % 2 == 1)
    return mctx.RootFnOutput(**fields), is_chosen & has_illegal[:, None]


@pytest.fixture(
    scope="module",
    params=[*CASES, *(pytest.param(x, marks=pytest.mark.slow) for x in SLOW_CASES)],
)
def compiled(request):
    """A case's name, the case, and a compiled function of dice: both results."""
    case = (CASES | SLOW_CASES)[request.param]

    def in_type(dtype, root):
        prior_logits, value = root.prior_logits.astype(dtype), root.value.astype(dtype)
        return root.replace(prior_logits=prior_logits, value=value)

    @jax.jit
    def run(dice):
        root, illegal = dice_root(dice, case.batch_size)
        settings = {"invalid_actions": illegal, "max_depth": case.max_depth}
        if case.is_puct:
            settings["dirichlet_fraction"] = dice.dirichlet
        given = in_type(case.dtype, root)
        arguments = (dice_model, case.num_simulations)
        call = functools.partial(case.theirs, dice, jax.random.key(0))
        theirs = call(in_type(jnp.float32, given), *arguments, **settings)
        if case.from_empty:
            size = (NUM_ACTIONS, case.num_simulations + 1)
            settings["tree"] = empty_tree(root.embedding, *size)
        with tracing_for(case.platform):
            call = functools.partial(case.ours, dice, jax.random.key(0))
            return call(given, *arguments, **settings), theirs

    return request.param, case, run.lower(Dice()).compile()


def test_a_policy_has_the_results_of_mctx(compiled):
    """With roots in float32 and bfloat16, and tables of both kinds."""
    name, case, run = compiled
    for dice in DICE.values():
        # `alphazero_policy` breaks ties by number, and draws noise over legal moves.
        has_ties = dice.priors == 0 or (dice.root_illegal and dice.dirichlet)
        if has_ties and name.startswith("alphazero"):
            continue
        num_cut = assert_same_result(dice, *jax.device_get(run(dice)))
        if 0.0 not in dice.discounts:
            assert num_cut == 0
        elif case.max_depth is None:
            assert num_cut > 0, "mctx did not search behind the end"


# Programs written for mctx: `library` is mctx or azjax.search


def find_path(library, rng_key):
    """Searches a graph, in which moves to 0 end the game, with a mixed selection."""
    after = np.zeros((6, 4), int)
    after[:3] = [1, 2, 3, 4], [0, 3, 0, 0], [0, 5, 1, 0]
    reward = np.zeros((6, 4), np.float32)
    reward[0], reward[5] = [2, -1, 0, 1], [3, 0, 20, 9]

    def model(params, rng_key, action, node):
        child = jnp.asarray(after)[node, action]
        output = library.RecurrentFnOutput(
            reward=jnp.asarray(reward)[node, action],
            discount=jnp.where(child > 0, 1.0, 0.0),
            prior_logits=jnp.zeros((2, 4)),
            value=jnp.full(2, 15.0),
        )
        return output, child

    select = functools.partial(
        library.gumbel_muzero_root_action_selection,
        num_simulations=16,
        max_num_considered_actions=4,
        qtransform=functools.partial(
            library.qtransform_by_min_max, min_value=-1.0, max_value=20.0
        ),
    )
    noise = jnp.array([[0.1, 0.3, 0.2, 0.0], [0.0, 0.2, 0.1, 0.3]])
    tree = library.search(
        (),
        rng_key,
        root=library.RootFnOutput(
            prior_logits=jnp.zeros((2, 4)),
            value=jnp.full(2, 15.0),
            embedding=jnp.zeros(2, int),
        ),
        recurrent_fn=model,
        root_action_selection_fn=select,
        interior_action_selection_fn=library.muzero_action_selection,
        num_simulations=16,
        extra_data=library.GumbelMuZeroExtraData(root_gumbel=noise),
    )
    weights = tree.summary().visit_probs
    return library.PolicyOutput(
        action=weights.argmax(axis=-1), action_weights=weights, search_tree=tree
    )


def choose_arm(library, rng_key):
    """Improves the policy of a bandit, which has no state; the network's value
    completes the Q-values."""
    random = np.random.default_rng(0)
    prior_logits = random.normal(size=(8, 20)).astype(np.float32)
    reward = random.uniform(size=(8, 20)).astype(np.float32)

    def model(params, rng_key, action, state):
        output = library.RecurrentFnOutput(
            reward=jnp.asarray(reward)[jnp.arange(8), action],
            discount=jnp.ones(8),
            prior_logits=jnp.zeros((8, 20)),
            value=jnp.zeros(8),
        )
        return output, state

    return library.gumbel_muzero_policy(
        params=(),
        rng_key=rng_key,
        root=library.RootFnOutput(
            prior_logits=jnp.asarray(prior_logits),
            value=jnp.asarray(reward.mean(axis=1)),
            embedding=(),
        ),
        recurrent_fn=model,
        num_simulations=4,
        max_depth=1,
        qtransform=functools.partial(
            library.qtransform_completed_by_mix_value, use_mixed_value=False
        ),
    )


@pytest.mark.parametrize("program", [find_path, choose_arm])
def test_a_program_for_mctx_runs_unchanged(program):
    """With the keys of mctx's examples, and JAX's settings of its tests."""
    run = jax.jit(lambda key: [program(library, key) for library in (search, mctx)])
    with jax.numpy_rank_promotion("raise"):
        outputs = jax.device_get(run(jax.random.PRNGKey(42)))
    assert_same_result(program, *outputs)
