import jax
import pytest

from azjax.compilation_cache import enable_compilation_cache

DIRECTORY = "jax_compilation_cache_dir"


@pytest.mark.parametrize(
    ("variable", "configured", "expected"),
    [
        pytest.param(None, None, "cache/azjax/jax", id="in the user's directory"),
        pytest.param(None, "elsewhere", "elsewhere", id="not replaced"),
        pytest.param("", None, None, id="disabled by an empty variable"),
        pytest.param("no home", None, None, id="without a home directory"),
    ],
)
def test_the_cache_is_enabled_unless_it_is_configured(
    monkeypatch, tmp_path, variable, configured, expected
):
    names = (DIRECTORY, "jax_persistent_cache_min_compile_time_secs")
    before = {name: jax.config.values[name] for name in names}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    if variable == "no home":
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setenv("HOME", "~")  # as `expanduser` leaves it
    elif variable is not None:
        monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", variable)
    jax.config.update(DIRECTORY, configured)
    try:
        enable_compilation_cache()
        found = jax.config.values[DIRECTORY]
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
    assert (found and found.removeprefix(f"{tmp_path}/")) == expected
