import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.training import Index, uniform_sampler


@pytest.fixture
def index():
    """Returns an index of 4 rows and 3 games; the window starts at row 2."""
    return Index(
        first=jnp.int32(2),
        lengths=jnp.array([3, 0, 1]),
        is_new=jnp.zeros((4, 3), bool),
        value_target=jnp.zeros((4, 3, 3)),
        last=None,
    )


def test_uniform_draws_are_all_eligible_positions_and_no_others(index):
    sampler = uniform_sampler()
    sample = sampler.choose(sampler.init((4, 3)), index, jax.random.key(0), 4096)
    drawn = np.zeros((4, 3))
    np.add.at(drawn, (sample.row, sample.slot), 1 / 4096)
    eligible = np.zeros((4, 3))
    eligible[[2, 3, 0, 2], [0, 0, 0, 2]] = 1 / 4
    np.testing.assert_array_equal(index.is_eligible, eligible > 0)
    np.testing.assert_allclose(drawn, eligible, atol=0.03)
    np.testing.assert_array_equal(sample.weight, np.ones(4096))
