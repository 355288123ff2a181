import jax
import jax.numpy as jnp

from azjax.devices import Product, products


def shape(*sizes):
    return jax.ShapeDtypeStruct(sizes, "float32")


def total(function, *arguments):
    found = products(function, *arguments)
    return sum(number * product.flops for product, number in found.items())


def test_a_matrix_product_multiplies_and_adds_for_each_number():
    found = products(jnp.matmul, shape(3, 5), shape(5, 7))
    (product,) = found
    assert product == Product("product", (3, 5), (5, 7), (3, 7), terms=5)
    assert product.flops == 2 * 3 * 7 * 5


def test_a_convolution_counts_its_window_and_features():
    def convolve(x, kernel):
        return jax.lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    arguments = shape(2, 6, 7, 3), shape(3, 3, 3, 8)
    assert total(convolve, *arguments) == 2 * (2 * 6 * 7 * 8) * (3 * 3 * 3)


def test_products_in_loops_and_inner_functions_are_counted_as_often_as_they_run():
    def function(x):
        def step(x, _):
            return jax.jit(jnp.matmul)(x, x), None

        x = jax.lax.scan(step, x, length=5)[0]
        return jax.lax.while_loop(lambda x: (x < 0).any(), lambda x: x @ x, x)

    assert products(function, shape(4, 4)).total() == 5 + 1
    assert total(function, shape(4, 4)) == 6 * 2 * 4**3


def test_the_work_of_all_devices_is_counted():
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",))
    one = jax.shard_map(jnp.matmul, mesh=mesh, in_specs=jax.P(), out_specs=jax.P())
    assert total(one, shape(2, 2), shape(2, 2)) == 2 * 2**3


def test_a_gradient_has_the_products_of_both_sides():
    def loss(weights, x):
        return (x @ weights).sum()

    gradient = jax.grad(loss, argnums=(0, 1))
    arguments = shape(5, 7), shape(3, 5)
    assert total(gradient, *arguments) == 3 * (2 * 3 * 5 * 7)
