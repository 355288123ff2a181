import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.players import AlphaZeroPlayer, choose
from azjax.search import SearchConfig

ALGORITHMS = pytest.mark.parametrize("algorithm", ["gumbel", "alphazero"])
# Both sides have two in a row. X to move wins at c3:    O to move wins at c2:
#                                X X .                     X X .
#                                O O .                     O O .
#                                . . .                     X . .
X_TO_MOVE = ("a3", "a2", "b3", "b2")
O_TO_MOVE = ("a3", "a2", "b3", "b2", "a1")
# X threatens c3, and O has nothing of its own:
#   X X .
#   . O .
#   . . .
O_MUST_BLOCK = ("a3", "b2", "b3")


@pytest.fixture(scope="module")
def choice_of(trained):
    """The choices in the three positions of a player whose network knows nothing."""
    game = trained.game
    step = jax.jit(game.step)
    states = [
        functools.reduce(
            lambda state, move: step(state, game.text_to_action(move)),
            moves,
            game.init(),
        )
        for moves in (X_TO_MOVE, O_TO_MOVE, O_MUST_BLOCK)
    ]
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    variables = jax.tree.map(jnp.zeros_like, trained.variables)

    @functools.cache
    def choice(algorithm, seed=0):
        config = SearchConfig(algorithm=algorithm)
        player = AlphaZeroPlayer(game, config, 300, trained.network, variables)
        return choose(player, jax.random.key(seed), states)

    return choice


@ALGORITHMS
def test_either_player_takes_a_win(algorithm, choice_of):
    action = choice_of(algorithm).action
    np.testing.assert_array_equal(action[:2], [2, 5])


@ALGORITHMS
def test_a_threat_is_blocked(algorithm, choice_of):
    assert choice_of(algorithm).action[2] == 2


@ALGORITHMS
def test_the_value_is_that_of_the_player_to_move(algorithm, choice_of):
    value = choice_of(algorithm).value
    assert (value[:2] > 0.5).all()


@ALGORITHMS
def test_the_policy_likes_the_chosen_move_best(algorithm, choice_of):
    choice = choice_of(algorithm)
    np.testing.assert_array_equal(choice.policy.argmax(axis=-1), choice.action)


@ALGORITHMS
def test_the_best_move_does_not_depend_on_the_key(algorithm, choice_of):
    choices = [choice_of(algorithm, seed) for seed in (1, 2)]
    np.testing.assert_array_equal(choices[0].action, choices[1].action)


def test_gumbel_play_does_not_depend_on_the_key_at_all(choice_of):
    choices = [choice_of("gumbel", seed) for seed in (1, 2)]
    chex.assert_trees_all_equal(*choices)
