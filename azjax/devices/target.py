"""For which platform programs are traced now."""

import contextlib
from collections.abc import Iterator

import jax

_targets: list[str] = []


@contextlib.contextmanager
def tracing_for(platform: str) -> Iterator[None]:
    """What is traced in this context is for a platform: `cpu`, `gpu` or `tpu`."""
    _targets.append(platform)
    try:
        yield
    finally:
        _targets.pop()


def target_platform() -> str:
    """Returns the platform that a program traced now is for: the default backend's
    outside of `tracing_for`.

    For code with a faster form for some platforms; all forms have the same result.
    """
    return _targets[-1] if _targets else jax.default_backend()
