import sys

import pytest

from azjax.commands.custom_modules import read_custom_modules
from azjax.networks import CustomModules

OWN = """
from flax import nnx
from azjax.networks import CustomModules

class FlatTrunk(nnx.Module):
    def __init__(self, observation_shape, rngs):
        pass

    def __call__(self, observation):
        return observation.reshape(len(observation), -1)

MODULES = CustomModules(trunk=FlatTrunk)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a user's module."""
    (tmp_path / "own_net.py").write_text(OWN)
    (tmp_path / "needs_more.py").write_text("import no_such_thing")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in ("own_net", "needs_more", "imports_it"):
        sys.modules.pop(name, None)


def test_custom_modules_are_found_in_a_module_of_the_working_directory(here):
    found = read_custom_modules("own_net:MODULES")
    assert isinstance(found, CustomModules)
    assert found.trunk.__name__ == "FlatTrunk"


def test_nothing_is_read_if_nothing_is_named():
    assert read_custom_modules(None) is None


def test_the_main_module_is_not_imported_again(here, monkeypatch):
    program = type(sys)("__main__")
    program.__file__ = str(here / "needs_more.py")
    program.MODULES = CustomModules()
    monkeypatch.setitem(sys.modules, "__main__", program)
    assert read_custom_modules("needs_more:MODULES") is program.MODULES
    (here / "imports_it.py").write_text("from needs_more import MODULES")
    assert read_custom_modules("imports_it:MODULES") is program.MODULES


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("own_net", "must be MODULE:NAME, such as my_net:MODULES: 'own_net'"),
        ("..own_net:MODULES", "must be MODULE:NAME"),
        ("own_net.py", "module, not a file: write own_net:NAME where own_net.py is in"),
        (
            "nets/own_net.py:MODULES",
            "write own_net:MODULES where own_net.py is in the wor",
        ),
        (
            r"C:\own_net.py:MODULES",
            "write own_net:MODULES where own_net.py is in the work",
        ),
        ("other_net:MODULES", "there is no module 'other_net' in"),
        (
            "own_net:OTHER",
            "must be an azjax.networks.CustomModules: None; own_net has MODULES$",
        ),
        (
            "own_net:nnx",
            "nnx in own_net must be an azjax.networks.CustomModules: <module",
        ),
    ],
)
def test_invalid_modules_raise(here, text, says):
    with pytest.raises(ValueError, match=says):
        read_custom_modules(text)


def test_an_error_in_the_users_module_passes_unchanged(here):
    with pytest.raises(ModuleNotFoundError, match="no_such_thing"):
        read_custom_modules("needs_more:MODULES")
