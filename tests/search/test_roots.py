import jax
import numpy as np

from azjax.search.roots import dirichlet_noise

FEW_LEGAL = np.arange(20) < np.array([[20], [5], [1], [0]])
draw = jax.jit(dirichlet_noise)


def check_distribution(noise, legal):
    np.testing.assert_allclose(np.asarray(noise).sum(axis=-1), 1, rtol=1e-5)
    assert (np.asarray(noise)[~legal & legal.any(axis=-1, keepdims=True)] == 0).all()


def test_noise_is_a_distribution_over_the_legal_actions():
    for alpha in 0.03, 0.7:
        check_distribution(draw(jax.random.key(0), FEW_LEGAL, alpha), FEW_LEGAL)


def test_noise_over_all_actions_equals_jaxs_dirichlet():
    """mctx draws the same noise with the same key."""
    noise, drawn = jax.jit(
        lambda key: (
            dirichlet_noise(key, np.ones((5, 7), bool), 0.7),
            jax.random.dirichlet(key, np.full(7, 0.7), (5,)),
        )
    )(jax.random.wrap_key_data(np.uint32([0, 3])))
    np.testing.assert_array_equal(noise, drawn)


def test_the_default_concentration_is_10_over_the_number_of_legal_actions():
    """The mean variance of the components is (L - 1) / (L**2 * (L * alpha + 1))."""
    num_legal = np.repeat([5, 20, 1, 0], [1_000, 1_000, 1, 1])
    legal = np.arange(20) < num_legal[:, None]
    noise = np.asarray(draw(jax.random.key(0), legal, None))
    check_distribution(noise, legal)
    for number in (5, 20):
        variance = noise[num_legal == number, :number].var(axis=0).mean()
        expected = (number - 1) / (number**2 * 11)
        np.testing.assert_allclose(variance, expected, rtol=0.1)
