"""What all tests share."""

import jax
import pytest


@pytest.fixture(scope="module", autouse=True)
def drop_compiled_programs():
    """Thousands of them in one process exhaust its memory mappings, and it dies."""
    yield
    jax.clear_caches()
