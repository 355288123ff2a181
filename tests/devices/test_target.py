import contextlib
import runpy
from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from azjax.devices import (
    AXIS,
    compile_for,
    jit_network,
    network_compiler_options,
    target,
    target_platform,
    tracing_for,
)
from azjax.training.lanes import spread_lanes


def test_target_platform_defaults_to_the_backend():
    assert target_platform() == jax.default_backend()
    with tracing_for("tpu"):
        with tracing_for("gpu"):
            assert target_platform() == "gpu"
        assert target_platform() == "tpu"
    assert target_platform() == jax.default_backend()


def test_a_function_is_traced_for_its_target_device():
    found = []
    mesh = Mesh(jax.devices("cpu")[:1], (AXIS,))
    sharding = NamedSharding(mesh, PartitionSpec())

    def note_target(x):
        found.append(target_platform())
        return x

    shape = jax.ShapeDtypeStruct((2,), jnp.float32, sharding=sharding)
    with tracing_for("tpu"):
        compiled = compile_for(mesh, jax.jit(note_target), shape)
    assert found == ["cpu"]
    assert "f32[2]" in (compiled.as_text() or "")


def test_convolutions_on_a_cpu_are_not_computed_by_ynnpack():
    def convolve(kernel, x):
        dimensions = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=dimensions
        )

    devices = jax.devices("cpu")[:1]
    arrays = jnp.ones((3, 3, 32, 32)), jnp.ones((64, 6, 7, 32))
    kernel, x = jax.device_put(arrays, devices[0])
    lanes, alone = (
        spread_lanes(1, one_by_one=False, devices=devices),
        jit_network(convolve),
    )
    for compiled in (alone, lanes.jit_network(convolve, num_replicated=1)):
        program = compiled.lower(kernel, x).compile().as_text()
        assert "convolution" in program
        assert "__ynn_fusion" not in program
    # JAX takes options for the outermost program only.
    nested = jax.jit(lambda kernel: alone(kernel, x))(kernel)
    np.testing.assert_allclose(nested, alone(kernel, x), rtol=1e-5)


def test_other_platforms_and_versions_have_no_options(monkeypatch):
    assert network_compiler_options("tpu") is None
    jit = jax.jit

    def jit_with_unknown_option(function, *, compiler_options):
        return jit(function, compiler_options={**compiler_options, "xla_unknown": "1"})

    assert network_compiler_options("cpu") is not None
    with monkeypatch.context() as patch:
        patch.setattr(jax, "jit", jit_with_unknown_option)
        found = runpy.run_path(target.__file__)["network_compiler_options"]("cpu")
    assert found is None


class Gpu(NamedTuple):
    """A device that JAX could find; programs run on the CPU."""

    client: SimpleNamespace
    platform: str = "gpu"
    device_kind: str = "NVIDIA H100"


@pytest.mark.parametrize(
    ("version", "result", "has_options"),
    [
        ("cuda 12090", None, True),
        ("cuda 12090", 7, False),
        ("rocm 70000", None, False),
        (None, None, True),  # compiles for an absent GPU
    ],
)
def test_loops_are_graphs_on_gpus_that_run_them(
    version, result, has_options, monkeypatch, caplog
):
    jit = jax.jit

    def jit_on_cpu(function, *, compiler_options):
        assert "WHILE" in compiler_options["xla_gpu_enable_command_buffer"]
        return jit(function) if result is None else lambda number: result

    gpu = Gpu(SimpleNamespace(platform_version=version))
    with monkeypatch.context() as patch:
        patch.setattr(jax, "local_devices", lambda: [gpu] if version else [])
        patch.setattr(jax, "default_device", lambda device: contextlib.nullcontext())
        patch.setattr(jax, "jit", jit_on_cpu)
        find = runpy.run_path(target.__file__)["network_compiler_options"]
        found = find("gpu")
        patch.setenv("XLA_FLAGS", "--xla_gpu_enable_command_buffer=")
        assert find("gpu") is None  # what the user set stays
    assert ("xla_gpu_enable_command_buffer" in (found or {})) == has_options
    warned = [record.getMessage() for record in caplog.records]
    assert ["NVIDIA H100" in text for text in warned] == [True] * (result is not None)
