import jax
import numpy as np

from azjax.training import Index, uniform_sampler


def test_uniform_draws_are_all_eligible_positions_and_no_others():
    # Of 4 rows and 3 games; the window starts at row 2.
    index = Index(
        first=np.int32(2),
        lengths=np.array([3, 0, 1]),
        is_new=np.zeros((4, 3), bool),
        value_target=np.zeros((4, 3, 3)),
        last=None,
    )
    sampler = uniform_sampler()

    @jax.jit
    def choose(index, rng_key):
        state = sampler.init((4, 3))
        return sampler.choose(state, index, rng_key, 4096), index.is_eligible

    sample, is_eligible = choose(index, jax.random.key(0))
    drawn = np.zeros((4, 3))
    np.add.at(drawn, (sample.row, sample.slot), 1 / 4096)
    eligible = np.zeros((4, 3))
    eligible[[2, 3, 0, 2], [0, 0, 0, 2]] = 1 / 4
    np.testing.assert_array_equal(is_eligible, eligible > 0)
    np.testing.assert_allclose(drawn, eligible, atol=0.03)
    np.testing.assert_array_equal(sample.weight, np.ones(4096))
