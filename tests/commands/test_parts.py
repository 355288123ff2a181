import sys

import pytest

from azjax.commands.parts import read_parts
from azjax.networks import Parts

OWN = """
from flax import nnx
from azjax.networks import Parts

class FlatTrunk(nnx.Module):
    def __init__(self, observation_shape, rngs):
        pass

    def __call__(self, observation):
        return observation.reshape(len(observation), -1)

PARTS = Parts(trunk=FlatTrunk)
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


def test_parts_are_found_in_a_module_of_the_working_directory(here):
    parts = read_parts("own_net:PARTS")
    assert isinstance(parts, Parts)
    assert parts.trunk.__name__ == "FlatTrunk"


def test_no_parts_are_read_if_none_are_named():
    assert read_parts(None) is None


def test_the_main_module_is_not_imported_again(here, monkeypatch):
    program = type(sys)("__main__")
    program.__file__ = str(here / "needs_more.py")
    program.PARTS = Parts()
    monkeypatch.setitem(sys.modules, "__main__", program)
    assert read_parts("needs_more:PARTS") is program.PARTS
    (here / "imports_it.py").write_text("from needs_more import PARTS")
    assert read_parts("imports_it:PARTS") is program.PARTS


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("own_net", "must be MODULE:NAME, such as my_net:PARTS: 'own_net'"),
        ("..own_net:PARTS", "must be MODULE:NAME"),
        ("own_net.py", "module, not a file: write own_net:NAME where own_net.py is in"),
        ("nets/own_net.py:PARTS", "write own_net:PARTS where own_net.py is in the wor"),
        (r"C:\own_net.py:PARTS", "write own_net:PARTS where own_net.py is in the work"),
        ("other_net:PARTS", "there is no module 'other_net' in"),
        ("own_net:OTHER", "must be an azjax.networks.Parts: None; own_net has PARTS$"),
        ("own_net:nnx", "nnx in own_net must be an azjax.networks.Parts: <module"),
    ],
)
def test_invalid_parts_raise(here, text, says):
    with pytest.raises(ValueError, match=says):
        read_parts(text)


def test_an_error_in_the_users_module_passes_unchanged(here):
    with pytest.raises(ModuleNotFoundError, match="no_such_thing"):
        read_parts("needs_more:PARTS")
