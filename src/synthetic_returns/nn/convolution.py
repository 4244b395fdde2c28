"""Convolutions without padding, on arrays with any leading axes, as a CPU likes them.

Tiny kernels are patch extraction and a matmul: inside a scan, a convolution of XLA's is many times
slower. Large ones that overlap would take several times the memory of the image as patches; they
are convolutions forwards, and their gradients are written out: XLA's own take most of an update.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from synthetic_returns.nn.linear import affine

__all__ = ["as_patches", "convolve"]


def as_patches(kernel: int, stride: int) -> bool:
    """Whether such a convolution is a matmul of patches, which costs the same inside a loop."""
    return kernel <= 2 or stride >= kernel


def convolve(
    layer: eqx.nn.Linear, x: Float[Array, "*batch h w d"], kernel: int, stride: int
) -> Float[Array, "..."]:
    """The layer applied to the window under each position of a square kernel."""
    if as_patches(kernel, stride):
        return affine(layer, _patches(x, kernel, stride))
    weight = layer.weight.T.reshape(kernel, kernel, x.shape[-1], -1)
    y = _overlapping(x.reshape(-1, *x.shape[-3:]), weight, stride)
    y = y.reshape(*x.shape[:-3], *y.shape[1:])
    return y if layer.bias is None else y + jnp.broadcast_to(layer.bias, y.shape)


def _plain(
    x: Float[Array, "batch h w d"], weight: Float[Array, "kernel kernel d out"], stride: int
) -> Float[Array, "batch h_out w_out out"]:
    return _dense(x, weight, stride, "VALID")


_overlapping = jax.custom_vjp(_plain, nondiff_argnums=(2,))


def _forwards(x, weight, stride):
    return _plain(x, weight, stride), (x, weight)


def _backwards(stride, saved, g):
    x, weight = saved
    patches = _patches(x, weight.shape[0], stride)
    d_weight = jnp.einsum("bhwp,bhwo->po", patches, g).reshape(weight.shape)
    return _input_gradient(g, weight, stride, x.shape), d_weight


_overlapping.defvjp(_forwards, _backwards)


def _input_gradient(
    g: Float[Array, "batch h_out w_out out"],
    weight: Float[Array, "kernel kernel d out"],
    stride: int,
    shape: tuple[int, ...],
) -> Float[Array, "batch h w d"]:
    """What each pixel gets back from the windows that it is in.

    Pixels whose row and column leave the same rest when divided by the stride are under the same
    weights: for each such grid it is a dense convolution.
    """
    batch, height, width, depth = shape
    rows, columns = -(-height // stride), -(-width // stride)

    def grid(row: int, column: int) -> Float[Array, "batch rows columns d"]:
        taps = jnp.flip(weight[row::stride, column::stride], (0, 1)).swapaxes(2, 3)
        padding = (
            (taps.shape[0] - 1, rows - g.shape[1]),
            (taps.shape[1] - 1, columns - g.shape[2]),
        )
        return _dense(g, taps, 1, padding)

    grids = jnp.stack(
        [jnp.stack([grid(i, j) for j in range(stride)], axis=3) for i in range(stride)], axis=2
    )
    whole = grids.reshape(batch, rows * stride, columns * stride, depth)
    return whole[:, :height, :width]


def _dense(x, weight, stride, padding):
    return jax.lax.conv_general_dilated(
        x, weight, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def _patches(x: Float[Array, "*batch h w d"], kernel: int, stride: int) -> Float[Array, "..."]:
    """The flattened window under each position of a convolution kernel, without padding."""
    if stride == kernel:
        return _tiles(x, kernel)
    height, width = (size - kernel + 1 for size in x.shape[-3:-1])
    windows = [
        x[..., i : i + height : stride, j : j + width : stride, :]
        for i in range(kernel)
        for j in range(kernel)
    ]
    return jnp.concatenate(windows, axis=-1)


def _tiles(x: Float[Array, "*batch h w d"], side: int) -> Float[Array, "..."]:
    """Windows that do not overlap, flattened; what does not fill one is left out."""
    *batch, height, width, depth = x.shape
    rows, columns = height // side, width // side
    x = x[..., : rows * side, : columns * side, :]
    x = x.reshape(*batch, rows, side, columns, side, depth)
    x = jnp.swapaxes(x, -4, -3)
    return x.reshape(*batch, rows, columns, side * side * depth)
