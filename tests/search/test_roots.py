import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.search.roots import dirichlet_noise

FEW_LEGAL = np.arange(200) < np.array([[200], [20], [1], [0]])
draw = jax.jit(dirichlet_noise)


@pytest.mark.parametrize("alpha", [0.03, 0.7, None])
def test_noise_is_a_distribution_over_the_legal_actions(alpha):
    noise = np.asarray(draw(jax.random.key(0), FEW_LEGAL, alpha))
    np.testing.assert_allclose(noise.sum(axis=-1), 1, rtol=1e-5)
    np.testing.assert_array_equal(noise[:3][~FEW_LEGAL[:3]], 0)


def test_noise_over_all_actions_equals_jaxs_dirichlet():
    """mctx draws the same noise with the same key."""
    noise = dirichlet_noise(jax.random.key(3), jnp.ones((5, 7), bool), 0.7)
    drawn = jax.random.dirichlet(jax.random.key(3), jnp.full(7, 0.7), (5,))
    np.testing.assert_array_equal(noise, drawn)


@pytest.mark.parametrize("num_legal", [5, 20])
def test_the_default_concentration_is_10_over_the_number_of_legal_actions(num_legal):
    """The mean variance of the components is (L - 1) / (L**2 * (L * alpha + 1))."""
    legal = np.broadcast_to(np.arange(40) < num_legal, (2_000, 40))
    noise = np.asarray(draw(jax.random.key(0), legal, None))[:, :num_legal]
    variance = (num_legal - 1) / (num_legal**2 * 11)
    np.testing.assert_allclose(noise.var(axis=0).mean(), variance, rtol=0.1)
