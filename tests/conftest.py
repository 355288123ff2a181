"""What all tests share."""

import os
import tempfile

import jax
import pytest

# Several processes test at once: none may take all of a GPU's memory for itself.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


@pytest.fixture(scope="session", autouse=True)
def keep_compiled_programs():
    """Keeps them in files while the tests run: many tests compile the same ones.

    Each process has its own directory, for JAX may read a file half written by
    another. The user's directory is neither used nor filled.
    """
    with (
        tempfile.TemporaryDirectory(prefix="azjax-") as directory,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("JAX_COMPILATION_CACHE_DIR", directory)
        jax.config.update("jax_compilation_cache_dir", directory)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.02)
        yield
        jax.config.update("jax_compilation_cache_dir", None)


@pytest.fixture(scope="module", autouse=True)
def drop_compiled_programs():
    """Thousands of them in one process exhaust its memory mappings, and it dies."""
    yield
    jax.clear_caches()
