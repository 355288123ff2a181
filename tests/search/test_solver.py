"""Proven results of tic-tac-toe, compared with a plain minimax search."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from minimax import exact_move_scores, exact_scores, marks

from azjax.arena.exhaustive import solve
from azjax.search import SEARCHES, AlphaZeroConfig, GumbelConfig, ProvenTree, empty_tree
from azjax.search.conversion import root_bounds
from azjax.search.score_bounds import (
    ILLEGAL,
    WIN,
    Bounds,
    best_moves,
    is_proven,
    move_bounds,
    proven_value,
    turned,
)

NUM_SIMULATIONS = 300
NUM_POSITIONS = 48
# The configuration of the search, and the platform for which it is traced.
SETTINGS = {
    "alphazero": (AlphaZeroConfig(use_solver=True), "cpu"),
    "gumbel with packed tables": (GumbelConfig(use_solver=True), "tpu"),
}
NAMES = pytest.mark.parametrize("name", SETTINGS)
SHARPNESS = pytest.mark.parametrize("sharpness", [0.0, 1.0])


@pytest.fixture(scope="module")
def solution(tic_tac_toe):
    return solve(tic_tac_toe.game)


def select(solution, chosen, count=NUM_POSITIONS):
    """Returns some of the selected positions, evenly spaced."""
    rows = np.flatnonzero(chosen)
    rows = rows[np.linspace(0, len(rows) - 1, count).astype(int)]
    return jax.tree.map(lambda leaf: leaf[rows], solution.states)


# Functions


def test_the_bounds_of_a_move_are_the_childs_one_move_later():
    #                lost in 2  won in 3   drawn  anything  not lost
    own = Bounds(
        np.int16([2 - WIN, WIN - 3, 0, -WIN, 0]),
        np.int16([2 - WIN, WIN - 3, 0, WIN, WIN]),
    )
    bounds = jax.jit(turned)(own, -np.ones(5, np.float32))
    low, high = jax.jit(move_bounds)(bounds, np.arange(5), np.ones(5, bool))
    np.testing.assert_array_equal(low, [WIN - 3, 4 - WIN, 0, 1 - WIN, 1 - WIN])
    np.testing.assert_array_equal(high, [WIN - 3, 4 - WIN, 0, WIN - 1, 0])
    same = jax.jit(turned)(own, np.ones(5, np.float32))
    low, high = jax.jit(move_bounds)(same, np.arange(5), np.ones(5, bool))
    np.testing.assert_array_equal(low, [3 - WIN, WIN - 4, 0, 1 - WIN, 0])
    np.testing.assert_array_equal(high, [3 - WIN, WIN - 4, 0, WIN - 1, WIN - 1])
    chex.assert_type([low, high], jnp.int16)


def test_an_unsearched_move_has_the_widest_bounds_and_an_illegal_one_the_lowest():
    bounds = np.int16([WIN])
    child, legal = np.array([[-1, -1], [0, 0]]), np.array([[True, False]] * 2)
    low, high = jax.jit(move_bounds)(Bounds(bounds, bounds), child, legal)
    np.testing.assert_array_equal(low, [[-WIN, ILLEGAL], [WIN - 1, ILLEGAL]])
    np.testing.assert_array_equal(high, [[WIN, ILLEGAL], [WIN - 1, ILLEGAL]])
    assert np.iinfo(np.int16).min <= ILLEGAL


def test_a_result_is_proven_when_the_bounds_exclude_the_others():
    for lower, upper, value in (
        *((-WIN, WIN, None), (0, WIN, None), (-WIN, 0, None), (3 - WIN, WIN - 1, None)),
        *((0, 0, 0), (WIN - 5, WIN, 1), (WIN - 5, WIN - 5, 1)),
        *((-WIN, 6 - WIN, -1), (-WIN, -WIN, -1)),
    ):
        bounds = Bounds(np.int16(lower), np.int16(upper))
        assert is_proven(bounds) == (value is not None)
        assert proven_value(bounds) == (value or 0)


def test_the_best_moves_win_soonest_or_draw_or_lose_latest():
    for lower, upper, best in (
        # The shorter of two wins, regardless of the other moves.
        ([WIN - 5, WIN - 3, 0, -WIN], [WIN, WIN, WIN, WIN], [1]),
        ([WIN - 3, WIN - 3, 0, -WIN], [WIN, WIN - 3, WIN, WIN], [0, 1]),
        # A draw and an unknown move: both, but no loss.
        ([0, -WIN, 4 - WIN, -WIN], [0, WIN, 4 - WIN, 8 - WIN], [0, 1]),
        # The longest of the losses.
        ([2 - WIN, 4 - WIN, -WIN, ILLEGAL], [2 - WIN, 4 - WIN, 2 - WIN, ILLEGAL], [1]),
        # An illegal move is not the best one on a full board.
        ([ILLEGAL, -WIN, ILLEGAL, ILLEGAL], [ILLEGAL, WIN, ILLEGAL, ILLEGAL], [1]),
    ):
        found = jax.jit(best_moves)(Bounds(np.int16([lower]), np.int16([upper])))[0]
        np.testing.assert_array_equal(np.flatnonzero(found), best)


# Searches

bounds_of_roots = jax.jit(root_bounds)


def search_with(name, searching, states, sharpness=0.0):
    config, platform = SETTINGS[name]
    return searching.search(
        config, NUM_SIMULATIONS, states, sharpness=sharpness, platform=platform
    )


class Found:
    """The result of a search of some positions, with the exact scores."""

    def __init__(self, states, output):
        self.states = states
        self.output = output
        self.tree = self.output.search_tree
        self.used = self.tree.node_visits > 0
        self.is_proven = is_proven(Bounds(self.tree.lower, self.tree.upper))
        self.exact = exact_scores(self.tree.embeddings)
        #: `[B]`, the exact scores of the chosen moves.
        self.chosen = np.array(
            [
                exact_move_scores(*map(int, pair))[int(action)]
                for pair, action in zip(marks(states), self.output.action, strict=True)
            ]
        )


# Numbers of moves.
STAGES = ((0, 3), (3, 5), (5, 9))


@pytest.fixture(scope="module")
def found(tic_tac_toe, solution):
    """Returns a function that searches equally many positions of each stage."""
    moves, size = solution.num_moves, NUM_POSITIONS // len(STAGES)
    parts = [
        select(
            solution,
            (moves >= first) & (moves < last) & ~solution.states.terminated,
            size,
        )
        for first, last in STAGES
    ]
    states = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)

    @functools.cache
    def find(name, sharpness=0.0):
        return Found(states, search_with(name, tic_tac_toe, states, sharpness))

    for name in SETTINGS:
        find(name)
    return find


def by_stage(array):
    return array.reshape(len(STAGES), -1)


@NAMES
@SHARPNESS
def test_the_bounds_of_all_nodes_and_root_moves_contain_the_exact_score(
    name, sharpness, found
):
    it = found(name, sharpness)
    assert isinstance(it.tree, ProvenTree)
    assert (it.tree.lower <= it.exact)[it.used].all()
    assert (it.tree.upper >= it.exact)[it.used].all()
    assert by_stage(it.is_proven & it.used).any(axis=1).all()
    lower, upper = jax.device_get(bounds_of_roots(it.tree))
    game = np.arange(NUM_POSITIONS)
    assert (lower[game, it.output.action] <= it.chosen).all()
    assert (upper[game, it.output.action] >= it.chosen).all()
    assert (lower.max(axis=1) >= it.tree.lower[:, 0]).all()
    assert (upper.max(axis=1) <= it.tree.upper[:, 0]).all()


@NAMES
def test_all_endgames_of_four_moves_are_solved(name, found):
    it = found(name)
    end = slice(-NUM_POSITIONS // len(STAGES), None)
    assert it.is_proven[end, 0].all()
    root = Bounds(it.tree.lower[end, 0], it.tree.upper[end, 0])
    np.testing.assert_array_equal(proven_value(root), np.sign(it.exact[end, 0]))
    np.testing.assert_array_equal(np.sign(it.chosen[end]), np.sign(it.exact[end, 0]))


@NAMES
@SHARPNESS
def test_a_proven_position_is_played_without_mistakes(name, sharpness, found):
    it = found(name, sharpness)
    proven = it.is_proven[:, 0]
    best = it.exact[:, 0]
    assert by_stage(proven).any(axis=1).all()
    np.testing.assert_array_equal(np.sign(it.chosen)[proven], np.sign(best)[proven])
    # A win within the number of moves of the bound, against all replies.
    lower = it.tree.lower[:, 0]
    assert (it.chosen >= lower)[lower > 0].all()
    # If the number of moves is also proven, no move is wasted.
    is_exact = it.tree.lower[:, 0] == it.tree.upper[:, 0]
    np.testing.assert_array_equal(it.chosen[is_exact], best[is_exact])


@NAMES
@SHARPNESS
def test_proven_nodes_have_their_exact_value(name, sharpness, found):
    it = found(name, sharpness)
    inner = it.used & it.is_proven & ~it.tree.embeddings.terminated
    assert set(it.tree.node_values[inner].tolist()) == {-1.0, 0.0, 1.0}
    np.testing.assert_array_equal(it.tree.node_values[inner], np.sign(it.exact)[inner])


@NAMES
def test_a_lost_position_is_lost_as_late_as_possible(name, tic_tac_toe, solution):
    moves = [
        set(np.sign(list(scores.values()))) == {-1} and len(set(scores.values())) > 1
        for scores in (
            exact_move_scores(*map(int, pair)) for pair in marks(solution.states)
        )
    ]
    is_lost = np.array(moves) & ~solution.states.terminated
    # Only positions near the end: a win that the search has not found counts as no
    # loss.
    states = select(solution, is_lost & (solution.num_moves >= 4))
    it = Found(states, search_with(name, tic_tac_toe, states))
    assert it.is_proven[:, 0].mean() > 0.8
    is_exact = it.tree.lower[:, 0] == it.tree.upper[:, 0]
    assert is_exact.sum() > NUM_POSITIONS // 4
    np.testing.assert_array_equal(it.chosen[is_exact], it.exact[is_exact, 0])


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["gumbel", "alphazero"])
def test_proofs_are_kept_and_a_refuted_move_gets_no_visits_while_others_remain(
    algorithm, tic_tac_toe, solution
):
    """Bounds only become tighter."""
    states = select(solution, (solution.num_moves < 6) & ~solution.states.terminated)
    config = SEARCHES.find(algorithm)(use_solver=True)
    trees = [empty_tree(states, 9, 300, use_solver=True)]
    for _ in range(2):
        output = tic_tac_toe.search(config, 100, states, tree=trees[-1])
        trees.append(output.search_tree.replace(extra_data=None))
    _, before, after = trees
    used = before.node_visits > 0
    assert (after.lower >= before.lower)[used].all()
    assert (after.upper <= before.upper)[used].all()
    assert (after.lower > before.lower)[used].any()
    was_refuted, _ = refuted(before)
    _, others_left = refuted(after)
    stays = was_refuted & others_left
    assert stays[:, 0].any()
    assert stays[:, 1:].any()
    for nodes in (slice(1, None), slice(1)):
        np.testing.assert_array_equal(
            after.children_visits[:, nodes][stays[:, nodes]],
            before.children_visits[:, nodes][stays[:, nodes]],
            err_msg="at the root" if nodes.start is None else "below the root",
        )


def refuted(tree):
    """Returns `[B, N, A]` bool: whether a move is proven to lose.

    Also returns `[B, N, 1]` bool: whether another legal move remains.
    """
    game = np.arange(len(tree.lower))[:, None, None]
    known = (tree.children_index >= 0) & (tree.node_visits > 0)[..., None]
    loses = known & (tree.lower[game, np.maximum(tree.children_index, 0)] > 0)
    legal = tree.children_prior_logits > np.finfo(np.float32).min / 2
    return loses, (legal & ~loses).any(axis=-1, keepdims=True)
