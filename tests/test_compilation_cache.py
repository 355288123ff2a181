import jax
import pytest

from azjax.compilation_cache import enable_compilation_cache

DIRECTORY = "jax_compilation_cache_dir"


@pytest.fixture
def no_cache(monkeypatch):
    before = {
        name: jax.config.values[name]
        for name in (DIRECTORY, "jax_persistent_cache_min_compile_time_secs")
    }
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    jax.config.update(DIRECTORY, None)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


@pytest.mark.usefixtures("no_cache")
def test_the_cache_is_in_the_users_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    enable_compilation_cache()
    assert jax.config.values[DIRECTORY] == str(tmp_path / "azjax" / "jax")


@pytest.mark.usefixtures("no_cache")
def test_a_configured_cache_is_not_replaced():
    jax.config.update(DIRECTORY, "elsewhere")
    enable_compilation_cache()
    assert jax.config.values[DIRECTORY] == "elsewhere"


@pytest.mark.usefixtures("no_cache")
def test_an_empty_variable_disables_the_cache(monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "")
    enable_compilation_cache()
    assert jax.config.values[DIRECTORY] is None
