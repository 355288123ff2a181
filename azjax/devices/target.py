"""The platform for which programs are traced."""

import contextlib
from collections.abc import Iterator

import jax

_targets: list[str] = []


@contextlib.contextmanager
def tracing_for(platform: str) -> Iterator[None]:
    """A context in which programs are traced for a platform: `cpu`, `gpu` or `tpu`."""
    _targets.append(platform)
    try:
        yield
    finally:
        _targets.pop()


def target_platform() -> str:
    """Returns the platform of the program being traced; outside `tracing_for` that of
    the default backend.

    For code with a faster variant on some platforms; all variants return the same.
    """
    return _targets[-1] if _targets else jax.default_backend()
