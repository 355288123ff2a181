import dataclasses

import jax
import numpy as np
import pytest
from coin_toss import CoinToss
from untrained import untrained_player

from azjax import games, players
from azjax.games.host import first_state, next_state
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.play.incremental_search import (
    MAX_STRENGTH,
    STRENGTHS,
    IncrementalSearch,
    SlicePlan,
    plan_for,
    search_text,
    sliced_player,
)
from azjax.search import AlphaZeroConfig

PLAN = SlicePlan(24, 7)
WHOLE = 24  # simulations, in four slices; the last one is shorter
NUM_SLICES = 4


GAME = games.make("tic_tac_toe")


@pytest.fixture(scope="module")
def player():
    return untrained_player(GAME).player(WHOLE)


@pytest.fixture(scope="module")
def slices(player):
    """A search in four slices, compiled for batches of 1 and 4."""
    slices = IncrementalSearch(player, PLAN, first_state(GAME))
    slices.compile(1)
    slices.compile(4)
    return slices


@pytest.fixture(scope="module")
def positions():
    """Positions by the actions that lead to them."""
    found = {}
    for actions in [(), (4,), (4, 3), (4, 2, 3), (0, 6, 1, 5), (2, 3)]:
        found[actions] = first_state(GAME)
        for action in actions:
            found[actions] = next_state(GAME, found[actions], action)
    return found


@pytest.fixture(scope="module")
def found_alone(player, positions):
    """Action and visits of an unsliced search with 24 simulations, by actions."""
    analyze = jax.jit(lambda state: player.analyze(jax.random.key(0), state, None)[:2])
    found = {}
    for actions, state in positions.items():
        choice, analysis = analyze(jax.tree.map(lambda leaf: leaf[None], state))
        found[actions] = int(choice.action[0]), np.asarray(analysis.visits[0])
    return found


def batch(states, made, total=WHOLE):
    """Returns positions; `made` is the number of finished slices of their searches."""
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
    made = PLAN.per_slice * np.array(made, np.int32)
    return stacked, np.full(len(made), total, np.int32), made


def search(slices, state, total=WHOLE):
    """Searches in slices; returns the decision after each."""
    trees, decisions = slices.empty_trees(1), []
    for number in range(-(-total // PLAN.per_slice)):
        found, trees = slices.search(number, *batch([state], [number], total), trees)
        decisions += found
    return decisions


def test_slices_build_the_same_tree_as_one_search(
    slices, player, positions, found_alone
):
    assert player.search.algorithm == "gumbel"
    for actions, state in positions.items():
        decisions = search(slices, state)
        visits = [int(decision.analysis.visits.sum()) for decision in decisions]
        assert visits == [7, 14, 21, 24]
        action, visits = found_alone[actions]
        assert decisions[-1].action == action
        np.testing.assert_array_equal(decisions[-1].analysis.visits, visits)


def test_positions_searched_together_do_not_influence_each_other(
    slices, positions, found_alone
):
    together = list(positions.items())[:4]
    trees, decisions = slices.empty_trees(4), []
    for number in range(NUM_SLICES):
        everyone = batch([state for _, state in together], [number] * 4)
        decisions, trees = slices.search(number, *everyone, trees)
    for (actions, state), decision in zip(together, decisions, strict=True):
        np.testing.assert_array_equal(decision.analysis.visits, found_alone[actions][1])
        (alone,), _ = slices.search(0, *batch([state], [0]), slices.empty_trees(1))
        assert decision.draw == pytest.approx(alone.draw, abs=1e-5)


def test_a_new_search_does_not_reuse_the_previous_tree(slices, positions):
    state, other = positions[(4,)], positions[(0, 6, 1, 5)]
    trees = slices.empty_trees(4)
    _, trees = slices.search(0, *batch([state] * 4, [0] * 4), trees)
    # Same position, same row: the tree of the previous client is not used.
    states = [state, state, other, state]
    decisions, _ = slices.search(1, *batch(states, [0, 1, 0, 1]), trees)
    visits = [decision.analysis.visits.sum() for decision in decisions]
    assert visits == [7, 14, 7, 14]


def test_trees_move_with_their_positions_when_a_batch_grows_and_shrinks(
    slices, positions, found_alone, compilations
):
    first, second, third = ((4,), (4, 3), (0, 6, 1, 5))
    _, trees = slices.search(0, *batch([positions[third]], [0]), slices.empty_trees(1))
    trees = slices.rearranged(trees, np.array([1, 1, 0, 1], np.int32))
    everyone = [positions[actions] for actions in (first, second, third, first)]
    decisions, trees = slices.search(1, *batch(everyone, [0, 0, 1, 0]), trees)
    assert [decision.analysis.visits.sum() for decision in decisions] == [7, 7, 14, 7]
    # The others end; the third becomes the first of a smaller batch.
    trees = slices.rearranged(trees, np.array([2], np.int32))
    for number in range(2, 4):
        one = batch([positions[third]], [number])
        (decision,), trees = slices.search(number, *one, trees)
    np.testing.assert_array_equal(decision.analysis.visits, found_alone[third][1])
    assert compilations == []


def test_slices_of_random_playouts_add_up():
    state = first_state(GAME)
    slices = IncrementalSearch(players.load("mcts:400", GAME), PLAN, state)
    slices.compile(1)
    decisions = search(slices, state, total=10)
    assert [int(decision.analysis.visits.sum()) for decision in decisions] == [7, 10]


def test_players_without_search_need_no_tree_and_do_not_replace_each_other():
    connect_four = games.make("connect_four")
    state = first_state(connect_four)
    for column in (3, 0, 3, 0, 3):  # greedy has only one answer
        state = next_state(connect_four, state, column)
    random, greedy = (
        IncrementalSearch(players.load_compiled(name, connect_four), None, state)
        for name in ("random", "greedy")
    )
    assert not random.replace_player(players.load_compiled("greedy", connect_four))
    decisions = []
    for slices in (random, greedy):
        slices.compile(1)
        assert slices.empty_trees(1) is None
        assert slices.bytes(1) == 0
        (decision,), _ = slices.search(0, *batch([state], [0]), None)
        decisions.append(decision)
    assert [np.count_nonzero(decision.policy) for decision in decisions] == [7, 1]
    assert [decision.analysis for decision in decisions] == [None, None]
    assert decisions[1].action == 3


def test_every_strength_has_a_plan_with_room_for_it():
    for simulations in (*STRENGTHS, 64, 1000):
        assert simulations <= plan_for(simulations).capacity <= MAX_STRENGTH


def test_slices_keep_the_search(player):
    search = dataclasses.replace(player.search, tree_reuse_nodes=1000)
    sliced = sliced_player(dataclasses.replace(player, search=search), PLAN)
    # Room for the nodes of all slices before the last one.
    assert sliced.search == dataclasses.replace(search, tree_reuse_nodes=22)
    assert sliced.simulations == PLAN.per_slice
    assert sliced.search.num_nodes(sliced.simulations) > PLAN.capacity


def test_slices_have_room_for_the_chance_nodes():
    # A simulation adds up to two nodes: after the move and after the outcome.
    sliced = sliced_player(players.load("mcts:400", CoinToss()), PLAN)
    assert sliced.tree_reuse_nodes == 1 + 2 * 21


def test_the_text_of_a_search_names_differences_from_the_arena(player):
    assert search_text(player) == "It uses Gumbel search, as in the arena."
    search = AlphaZeroConfig(tree_reuse_nodes=500)
    text = search_text(dataclasses.replace(player, search=search))
    assert text.startswith("It uses PUCT search. Here each move starts from an empty")
    assert "up to 500 positions" in text
    assert search_text(players.load("greedy", player.game)) is None


@pytest.mark.slow
def test_a_player_of_the_same_shapes_replaces_another(player):
    state = first_state(GAME)
    slices = IncrementalSearch(player, PLAN, state)
    wide = NetworkConfig(DenseTrunkConfig(width=16, num_blocks=1))
    assert not slices.replace_player(untrained_player(GAME, wide).player(WHOLE))
    assert not slices.replace_player(players.load("mcts:400", GAME))
    slices.compile(1)
    (before,), _ = slices.search(0, *batch([state], [0]), slices.empty_trees(1))
    assert slices.replace_player(untrained_player(GAME, seed=1).player(WHOLE))
    (after,), _ = slices.search(0, *batch([state], [0]), slices.empty_trees(1))
    assert before.value != after.value
