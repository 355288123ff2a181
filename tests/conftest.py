"""What all tests share."""

import os

import jax
import pytest

# Several processes test at once: none may take all of a GPU's memory for itself.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


@pytest.fixture(scope="module", autouse=True)
def drop_compiled_programs():
    """Thousands of them in one process exhaust its memory mappings, and it dies."""
    yield
    jax.clear_caches()
