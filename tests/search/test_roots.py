import jax
import numpy as np

from azjax.search.roots import dirichlet_noise

draw = jax.jit(dirichlet_noise)


def test_noise_is_over_the_legal_actions_with_concentration_10_over_their_number():
    """The mean variance of the components is (L - 1) / (L**2 * (L * alpha + 1))."""
    num_legal = np.repeat([5, 20, 1, 0], [1_000, 1_000, 1, 1])
    legal = np.arange(20) < num_legal[:, None]
    for alpha in (0.03, 0.7, None):
        noise = np.asarray(draw(jax.random.key(0), legal, alpha))
        np.testing.assert_allclose(noise.sum(axis=-1), 1, rtol=1e-5)
        assert (noise[~legal & legal.any(axis=-1, keepdims=True)] == 0).all()
    for number in (5, 20):
        variance = noise[num_legal == number, :number].var(axis=0).mean()
        expected = (number - 1) / (number**2 * 11)
        np.testing.assert_allclose(variance, expected, rtol=0.1)
