import dataclasses

import jax
import numpy as np
import pytest

from azjax import games, players
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.play.incremental_search import (
    MAX_STRENGTH,
    STRENGTHS,
    Batch,
    IncrementalSearch,
    SlicePlan,
    plan_for,
    search_text,
    sliced_player,
)
from azjax.players import AlphaZeroPlayer, first_network
from azjax.search import AlphaZeroConfig, GumbelConfig

PLAN = SlicePlan(24, 7)
WHOLE = 24  # simulations, in four slices; the last one is shorter
NUM_SLICES = 4


def batch(states, made, total=WHOLE):
    """Returns positions; `made` is the number of finished slices of their searches."""
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
    made = PLAN.per_slice * np.array(made, np.int32)
    return Batch(stacked, np.full(len(made), total, np.int32), made)


def search(slices, state, total=WHOLE):
    """Searches in slices; returns the decision after each."""
    trees, decisions = slices.empty_trees(1), []
    for number in range(-(-total // PLAN.per_slice)):
        found, trees = slices.search(number, batch([state], [number], total), trees)
        decisions += found
    return decisions


def test_slices_build_the_same_tree_as_one_search(
    slices, player, positions, found_alone
):
    assert player.search.algorithm == "gumbel"
    for actions, state in positions:
        decisions = search(slices, state)
        visits = [int(decision.analysis.visits.sum()) for decision in decisions]
        assert visits == [7, 14, 21, 24]
        action, visits = found_alone[actions]
        assert decisions[-1].action == action
        np.testing.assert_array_equal(decisions[-1].analysis.visits, visits)


def test_positions_searched_together_do_not_influence_each_other(
    slices, positions, visits_alone
):
    together = positions[:4]
    trees, decisions = slices.empty_trees(4), []
    for number in range(NUM_SLICES):
        everyone = batch([state for _, state in together], [number] * 4)
        decisions, trees = slices.search(number, everyone, trees)
    for (actions, state), decision in zip(together, decisions, strict=True):
        np.testing.assert_array_equal(decision.analysis.visits, visits_alone[actions])
        (alone,), _ = slices.search(0, batch([state], [0]), slices.empty_trees(1))
        assert decision.draw == pytest.approx(alone.draw, abs=1e-5)


def test_a_new_search_does_not_reuse_the_previous_tree(slices, positions):
    (_, state), other = positions[1], positions[4][1]
    trees = slices.empty_trees(4)
    _, trees = slices.search(0, batch([state] * 4, [0] * 4), trees)
    # Same position, same row: the tree of the previous client is not used.
    states = [state, state, other, state]
    decisions, _ = slices.search(1, batch(states, [0, 1, 0, 1]), trees)
    visits = [decision.analysis.visits.sum() for decision in decisions]
    assert visits == [7, 14, 7, 14]


def test_trees_move_with_their_positions(slices, positions, visits_alone):
    states = dict(positions)
    first, second, third = (3,), (3, 3), (0, 6, 1, 5)
    trees = slices.empty_trees(4)
    everyone = [states[first], states[second], states[third], states[first]]
    for number in range(2):
        _, trees = slices.search(number, batch(everyone, [number] * 4), trees)
    # The second ends; the third becomes the first of a smaller batch.
    trees = slices.rearranged(trees, np.array([2], np.int32))
    for number in range(2, 4):
        (decision,), trees = slices.search(
            number, batch([states[third]], [number]), trees
        )
    np.testing.assert_array_equal(decision.analysis.visits, visits_alone[third])


def test_a_batch_can_grow(slices, positions, visits_alone):
    states = dict(positions)
    trees = slices.empty_trees(1)
    for number in range(2):
        one = batch([states[(3,)]], [number])
        _, trees = slices.search(number, one, trees)
    trees = slices.rearranged(trees, np.array([0, 1, 1, 1], np.int32))
    for number in range(2, 4):
        four = [states[(3,)], states[(3, 3)], states[(3, 3)], states[(3, 3)]]
        made = [number] + [number - 2] * 3
        decisions, trees = slices.search(number, batch(four, made), trees)
    np.testing.assert_array_equal(decisions[0].analysis.visits, visits_alone[(3,)])
    assert decisions[1].analysis.visits.sum() == 2 * PLAN.per_slice


def test_slices_of_random_playouts_add_up(connect_four, positions):
    slices = IncrementalSearch(
        players.load("mcts:400", connect_four), PLAN, connect_four.init()
    )
    slices.compile(1)
    decisions = search(slices, positions[0][1], total=10)
    assert [int(decision.analysis.visits.sum()) for decision in decisions] == [7, 10]


def test_a_player_without_search_needs_no_tree(connect_four, positions):
    slices = IncrementalSearch(
        players.load("greedy", connect_four), None, connect_four.init()
    )
    slices.compile(1)
    assert slices.empty_trees(1) is None
    assert slices.bytes(1) == 0
    # Three discs are adjacent: a fourth one wins.
    step = jax.jit(connect_four.step)
    state = connect_four.init()
    for action in (1, 1, 2, 2, 3, 3):
        state = step(state, np.int32(action))
    (decision,), _ = slices.search(0, batch([state], [0]), None)
    assert decision.action in (0, 4)
    assert decision.analysis is None


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


def test_the_text_of_a_search_names_differences_from_the_arena(player):
    assert search_text(player) == "It uses Gumbel search, as in the arena."
    search = AlphaZeroConfig(tree_reuse_nodes=500)
    text = search_text(dataclasses.replace(player, search=search))
    assert text.startswith("It uses PUCT search. Here each move starts from an empty")
    assert "up to 500 positions" in text
    assert search_text(players.load("greedy", player.game)) is None


@pytest.mark.slow
def test_a_player_of_the_same_shapes_replaces_another(connect_four):
    game = games.make("tic_tac_toe")

    def made(seed, width):
        config = NetworkConfig(trunk=DenseTrunkConfig(width=width, num_blocks=1))
        network, variables = first_network(seed, game, config)
        return AlphaZeroPlayer(game, GumbelConfig(), 10, network, variables)

    slices = IncrementalSearch(made(0, 8), PLAN, game.init())
    assert slices.fits(made(1, 8))
    assert not slices.fits(made(1, 16))
    assert not slices.fits(players.load("mcts:400", game))
    slices.compile(1)
    state = jax.tree.map(np.asarray, game.init())
    (before,), _ = slices.search(0, batch([state], [0]), slices.empty_trees(1))
    slices.replace_player(made(1, 8))
    (after,), _ = slices.search(0, batch([state], [0]), slices.empty_trees(1))
    assert before.value != after.value


def test_players_of_two_kinds_do_not_replace_each_other(connect_four):
    state = connect_four.init()
    for column in (3, 0, 3, 0, 3):  # greedy has only one answer
        state = connect_four.step(state, np.int32(column))
    random, greedy = (
        IncrementalSearch(players.load_compiled(name, connect_four), None, state)
        for name in ("random", "greedy")
    )
    assert not random.fits(players.load_compiled("greedy", connect_four))
    policies = []
    for slices in (random, greedy):
        slices.compile(1)
        (decision,), _ = slices.search(0, batch([state], [0]), None)
        policies.append(np.count_nonzero(decision.policy))
    assert policies == [7, 1]
