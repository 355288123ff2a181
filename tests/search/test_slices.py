import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.devices import tracing_for
from azjax.search import AlphaZeroConfig, GumbelConfig, SearchSlice, search

PER_SLICE = 6
TOTALS = np.int32([24, 7])  # a multiple of the slice, and another number
SHORT = 7
NUM_NODES = 40
LINES = ("", "b2 a1")
NOTHING = np.zeros(2, np.int32)
# The configuration of the search, and the platform for which it is traced.
CONFIGS = {
    "gumbel": (GumbelConfig(), "cpu"),
    "few actions": (GumbelConfig(max_num_considered_actions=3), "tpu"),
    "alphazero": (AlphaZeroConfig(), "gpu"),
    "proofs": (GumbelConfig(use_solver=True), "gpu"),
}


class Programs:
    """Compiled searches with noise, which start from trees."""

    def __init__(self, searching, config, platform):
        policy = config.policy(explores=True)
        self.states = searching.positions(*LINES)
        self.empty = searching.empty_tree(
            self.states, NUM_NODES, use_solver=config.use_solver
        )

        def compile_for(num_simulations, search_slice):
            def run(tree, search_slice):
                return searching.call(
                    policy,
                    searching.outputs(sharpness=1.0),
                    jax.random.key(7),
                    self.states,
                    num_simulations,
                    tree=tree,
                    search_slice=search_slice,
                )

            with tracing_for(platform):
                return jax.jit(run).lower(self.empty, search_slice).compile()

        some = SearchSlice(TOTALS, NOTHING)
        self.whole = compile_for(SHORT, None)
        self.longer = compile_for(TOTALS[0], some)
        self.slice = compile_for(PER_SLICE, some)

    def kept(self, output):
        invalid = self.empty.root_invalid_actions
        return output.search_tree.replace(extra_data=None, root_invalid_actions=invalid)


@pytest.fixture(
    scope="module",
    params=[
        "gumbel",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("few actions", "alphazero", "proofs")
        ),
    ],
)
def programs(request, tic_tac_toe):
    return Programs(tic_tac_toe, *CONFIGS[request.param])


def assert_same_search(found, expected, rows):
    found, expected = jax.device_get((found, expected))
    np.testing.assert_array_equal(found.action[rows], expected.action[rows])
    np.testing.assert_allclose(
        found.action_weights[rows], expected.action_weights[rows], rtol=1e-5, atol=1e-7
    )
    for name in ("node_visits", "children_visits", "children_index", "node_values"):
        ours, theirs = (getattr(x.search_tree, name)[rows] for x in (found, expected))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=name)


def test_slices_add_up_to_the_whole_search(programs):
    tree = programs.empty
    for number in range(TOTALS[0] // PER_SLICE):
        made = np.minimum(PER_SLICE * number, TOTALS)
        output = programs.slice(tree, SearchSlice(TOTALS, made))
        tree = programs.kept(output)
    whole = programs.longer(programs.empty, SearchSlice(TOTALS, NOTHING))
    assert_same_search(output, whole, slice(None))
    np.testing.assert_array_equal(whole.search_tree.node_visits[:, 0], 1 + TOTALS)


def test_a_short_search_has_the_same_result_in_a_longer_program(programs):
    """From an empty tree, and from that of a previous search."""
    part = SearchSlice(np.full(2, SHORT, np.int32), NOTHING)
    tree = programs.empty
    for _ in range(2):
        short, long = programs.whole(tree, None), programs.longer(tree, part)
        assert_same_search(long, short, slice(None))
        tree = programs.kept(short)
    assert (np.asarray(short.search_tree.node_visits[:, 0]) > 1 + SHORT).all()
    # Next to a longer search, as well.
    both = programs.longer(programs.empty, SearchSlice(TOTALS, NOTHING))
    assert_same_search(both, programs.whole(programs.empty, None), slice(1, 2))


def test_a_slice_ends_when_no_game_has_simulations_left(tic_tac_toe):
    stops, states = [], tic_tac_toe.positions(*LINES)

    def loop(start, stop, step, carry):
        stops.append(stop)
        return carry

    @jax.jit
    def run(search_slice):
        search(
            None,
            jax.random.key(0),
            root=tic_tac_toe.root(tic_tac_toe.outputs(), states),
            recurrent_fn=tic_tac_toe.model,
            root_action_selection_fn=None,
            interior_action_selection_fn=None,
            num_simulations=24,
            loop_fn=loop,
            search_slice=search_slice,
        )
        return stops[0]

    assert run(SearchSlice(jnp.array([9, 5]), jnp.array([0, 2]))) == 9
    assert len(stops) == 1
