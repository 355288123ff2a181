import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from azjax.devices import AXIS, compile_for, target_platform, tracing_for


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
        compile_for(mesh, jax.jit(note_target), shape)
    assert found == ["cpu"]
