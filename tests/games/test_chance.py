"""Outcomes of chance are drawn by their probabilities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coin_toss import CoinToss

from azjax import games
from azjax.games.chance import after_chance, random_outcome
from azjax.games.core import initial_states
from azjax.games.host import first_state


def test_a_certain_outcome_is_always_drawn_and_none_without_probabilities():
    for probabilities, outcome in ([0, 1, 0], 1), ([0, 0, 0], -1):
        rows = jnp.float32([probabilities] * 4096)
        drawn = random_outcome(jax.random.key(0), rows)
        assert (drawn == outcome).all()


def test_outcomes_are_as_frequent_as_probable():
    game, number = games.make("ur"), 2**16
    states = initial_states(game, number)
    after, rolls = after_chance(game, jax.random.key(0), states)
    np.testing.assert_array_equal(after.roll, rolls)
    found = np.bincount(rolls, minlength=5) / number
    expected = np.array([1, 4, 6, 4, 1]) / 16
    errors = np.sqrt(expected * (1 - expected) / number)
    assert (abs(found - expected) < 5 * errors).all()
    # No position waits now.
    assert (after_chance(game, jax.random.key(1), after)[1] == -1).all()


def test_no_text_is_an_action_where_the_position_waits():
    game = CoinToss()
    for text in "b2", "heads", "?":
        with pytest.raises(ValueError, match="waits for chance: nobody is to move"):
            game.text_to_action(first_state(game), text)
