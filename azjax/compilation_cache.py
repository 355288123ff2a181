"""The persistent compilation cache, which avoids recompilation at later starts."""

import os
from pathlib import Path

import jax


def enable_compilation_cache() -> None:
    """Enables JAX's compilation cache in the user's cache directory.

    Keeps a directory set by `JAX_COMPILATION_CACHE_DIR` or in `jax.config`; an empty
    variable disables the cache.
    """
    is_chosen = jax.config.values["jax_compilation_cache_dir"] is not None
    if is_chosen or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not os.path.isabs(cache):  # there is no home directory
        return
    jax.config.update("jax_compilation_cache_dir", str(Path(cache) / "azjax" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
