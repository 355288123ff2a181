import jax
import numpy as np
import pytest

from azjax import games, players
from azjax.networks import NetworkConfig
from azjax.play.server.slices import (
    PLANS,
    STRENGTHS,
    Batch,
    Plan,
    Slicer,
    in_slices,
    plan_for,
    rearranged,
)
from azjax.players import AlphaZeroPlayer, first_network
from azjax.search import SearchConfig

PLAN = Plan(24, 6)
WHOLE = 24  # simulations, in four slices


def batch(states, is_new):
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
    return Batch(stacked, np.array(is_new))


def test_slices_add_up_to_the_search_alone(slicer, positions, visits_alone):
    for actions, state in positions:
        memory, thought = slicer.memory(1), None
        for number in range(WHOLE // PLAN.per_slice):
            (thought,), memory = slicer.search(
                number, batch([state], [number == 0]), memory
            )
            assert thought.analysis.visits.sum() == PLAN.per_slice * (number + 1)
        np.testing.assert_array_equal(thought.analysis.visits, visits_alone[actions])


def test_positions_searched_together_do_not_influence_each_other(
    slicer, positions, visits_alone
):
    together = positions[:4]
    memory, thoughts = slicer.memory(4), []
    for number in range(WHOLE // PLAN.per_slice):
        everyone = batch([state for _, state in together], [number == 0] * 4)
        thoughts, memory = slicer.search(number, everyone, memory)
    for (actions, state), thought in zip(together, thoughts, strict=True):
        np.testing.assert_array_equal(thought.analysis.visits, visits_alone[actions])
        (alone,), _ = slicer.search(0, batch([state], [True]), slicer.memory(1))
        assert thought.draw == pytest.approx(alone.draw, abs=1e-5)


def test_a_newcomer_never_finds_the_tree_of_the_one_before(slicer, positions):
    (_, state), other = positions[1], positions[4][1]
    memory = slicer.memory(4)
    _, memory = slicer.search(0, batch([state] * 4, [True] * 4), memory)
    # The same position in the same row: what was found for somebody else is not used.
    states = [state, state, other, state]
    thoughts, _ = slicer.search(1, batch(states, [True, False, True, False]), memory)
    visits = [thought.analysis.visits.sum() for thought in thoughts]
    assert visits == [6, 12, 6, 12]


def test_trees_move_with_their_positions(slicer, positions, visits_alone):
    states = dict(positions)
    first, second, third = (3,), (3, 3), (0, 6, 1, 5)
    memory = slicer.memory(4)
    everyone = [states[first], states[second], states[third], states[first]]
    for number in range(2):
        _, memory = slicer.search(number, batch(everyone, [number == 0] * 4), memory)
    # The second leaves; the third becomes the first of a smaller batch.
    memory = rearranged(memory, np.array([2], np.int32))
    for number in range(2, 4):
        (thought,), memory = slicer.search(
            number, batch([states[third]], [False]), memory
        )
    np.testing.assert_array_equal(thought.analysis.visits, visits_alone[third])


def test_a_batch_that_grows_has_room_for_newcomers(slicer, positions, visits_alone):
    states = dict(positions)
    memory = slicer.memory(1)
    for number in range(2):
        one = batch([states[(3,)]], [number == 0])
        _, memory = slicer.search(number, one, memory)
    memory = rearranged(memory, np.array([0, 1, 1, 1], np.int32))
    for number in range(2, 4):
        four = [states[(3,)], states[(3, 3)], states[(3, 3)], states[(3, 3)]]
        is_new = [False] + [number == 2] * 3
        thoughts, memory = slicer.search(number, batch(four, is_new), memory)
    np.testing.assert_array_equal(thoughts[0].analysis.visits, visits_alone[(3,)])
    assert thoughts[1].analysis.visits.sum() == 2 * PLAN.per_slice


def test_random_playouts_add_up_as_well(connect_four, positions):
    slicer = Slicer(players.load("mcts:400", connect_four), PLAN, connect_four.init())
    slicer.compile(1)
    memory = slicer.memory(1)
    for number in range(4):
        (thought,), memory = slicer.search(
            number, batch([positions[0][1]], [number == 0]), memory
        )
        assert thought.analysis.visits.sum() == PLAN.per_slice * (number + 1)


def test_a_player_that_does_not_search_answers_at_once(connect_four, positions):
    slicer = Slicer(players.load("greedy", connect_four), None, connect_four.init())
    slicer.compile(1)
    assert slicer.memory(1) is None
    assert slicer.bytes(1) == 0
    # Three discs lie side by side: the next one there wins.
    step = jax.jit(connect_four.step)
    state = connect_four.init()
    for action in (1, 1, 2, 2, 3, 3):
        state = step(state, np.int32(action))
    (thought,), _ = slicer.search(0, batch([state], [True]), None)
    assert thought.action in (0, 4)
    assert thought.analysis is None


def test_every_strength_is_made_of_whole_slices():
    for simulations in STRENGTHS:
        plan = plan_for(simulations)
        assert simulations <= plan.capacity
        assert simulations % plan.per_slice == 0
    assert all(plan.capacity % plan.per_slice == 0 for plan in PLANS)


def test_a_search_that_learnt_by_sequential_halving_is_made_by_puct(player):
    assert player.search.algorithm == "gumbel"
    sliced = in_slices(player, PLAN)
    assert sliced.search.algorithm == "alphazero"
    assert sliced.search.num_nodes(sliced.simulations) == PLAN.capacity + 1


@pytest.mark.slow
def test_a_newer_player_takes_the_place_of_one_like_it(connect_four):
    game = games.make("tic_tac_toe")

    def made(seed, width):
        config = NetworkConfig(width=width, num_blocks=1)
        network, variables = first_network(seed, game, config)
        return AlphaZeroPlayer(game, SearchConfig(), 10, network, variables)

    slicer = Slicer(made(0, 8), PLAN, game.init())
    assert slicer.fits(made(1, 8))
    assert not slicer.fits(made(1, 16))
    assert not slicer.fits(players.load("mcts:400", game))
    slicer.compile(1)
    state = jax.tree.map(np.asarray, game.init())
    (before,), _ = slicer.search(0, batch([state], [True]), slicer.memory(1))
    slicer.take(made(1, 8))
    (after,), _ = slicer.search(0, batch([state], [True]), slicer.memory(1))
    assert before.value != after.value


def test_players_of_two_kinds_are_not_taken_for_each_other(connect_four):
    state = connect_four.init()
    for column in (3, 0, 3, 0, 3):  # greedy has but one answer
        state = connect_four.step(state, np.int32(column))
    random, greedy = (
        Slicer(players.load_compiled(name, connect_four), None, state)
        for name in ("random", "greedy")
    )
    assert not random.fits(players.load_compiled("greedy", connect_four))
    policies = []
    for slicer in (random, greedy):
        slicer.compile(1)
        (thought,), _ = slicer.search(0, batch([state], [True]), None)
        policies.append(np.count_nonzero(thought.policy))
    assert policies == [7, 1]
