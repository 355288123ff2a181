"""Matrix products of the dense trunk, with factors of float32 or bfloat16."""

from typing import Any

import jax
import jax.numpy as jnp


def _bfloat16_dot_general(
    x: jax.Array, kernel: jax.Array, *_args: Any, **_kwargs: Any
) -> jax.Array:
    """Returns `x @ kernel`, in place of `jax.lax.dot_general` of a linear layer."""
    return _bfloat16_product(x, kernel)


def _convolution(
    x: jax.Array, kernel: jax.Array, *_args: Any, **_kwargs: Any
) -> jax.Array:
    """Convolves without padding, as one product, which is faster on a CPU.

    Args:
        x: `[B, H, W, C]`.
        kernel: `[h, w, C, K]`.
        _args, _kwargs: other arguments of `jax.lax.conv_general_dilated`.

    Returns:
        `[B, H - h + 1, W - w + 1, K]`.
    """
    return jnp.matmul(_windows(x, kernel), kernel.reshape(-1, kernel.shape[-1]))


def _bfloat16_convolution(
    x: jax.Array, kernel: jax.Array, *_args: Any, **_kwargs: Any
) -> jax.Array:
    """Returns `_convolution` with a product of bfloat16."""
    flat = kernel.reshape(-1, kernel.shape[-1])
    return _bfloat16_product(_windows(x, kernel), flat)


def _windows(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Returns the cells of each window, `[B, H - h + 1, W - w + 1, h * w * C]`."""
    height, width = kernel.shape[:2]
    rows, columns = x.shape[1] - height + 1, x.shape[2] - width + 1
    cells = [
        x[:, row : row + rows, column : column + columns]
        for row in range(height)
        for column in range(width)
    ]
    return jnp.concatenate(cells, -1)


@jax.custom_vjp
def _bfloat16_product(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Multiplies `[..., N]` and `[N, M]` float32 as bfloat16, to `[..., M]` float32.

    Gradients are float32 products: with a transposed factor XLA's CPU backend is not
    faster in bfloat16.
    """
    factors = x.astype(jnp.bfloat16), kernel.astype(jnp.bfloat16)
    return jnp.matmul(*factors, preferred_element_type=jnp.float32)


def _forward(x: jax.Array, kernel: jax.Array):
    return _bfloat16_product(x, kernel), (x, kernel)


def _backward(factors: tuple[jax.Array, jax.Array], gradient: jax.Array):
    x, kernel = factors
    rows = x.reshape(-1, x.shape[-1])
    return gradient @ kernel.T, rows.T @ gradient.reshape(-1, gradient.shape[-1])


_bfloat16_product.defvjp(_forward, _backward)
# By the dtype of the factors.
DOT_GENERAL = {"float32": jax.lax.dot_general, "bfloat16": _bfloat16_dot_general}
CONVOLUTION = {"float32": _convolution, "bfloat16": _bfloat16_convolution}
