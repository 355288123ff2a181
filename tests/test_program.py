import importlib.machinery
import sys
import types

import pytest

from azjax import games
from azjax.program import error_line, program, program_for


class Nim(games.TicTacToe):
    name = "nim"


@pytest.mark.parametrize(
    ("argument", "file", "module", "text"),
    [
        ("/usr/bin/azjax", "/usr/bin/azjax", None, "azjax"),
        ("C:/bin/azjax.exe", "C:/bin/azjax.exe/__main__.py", None, "azjax"),
        ("/lib/azjax/__main__.py", "/lib/azjax/__main__.py", "azjax.__main__", "azjax"),
        ("nim.py", "/home/me/nim.py", None, "python nim.py"),
        ("my games/nim.py", "/home/me/nim.py", None, "python 'my games/nim.py'"),
        ("/home/me/nim.py", "/home/me/nim.py", "mine.nim", "python -m mine.nim"),
        ("/lib/ipykernel_launcher.py", None, None, "azjax"),
    ],
)
def test_a_printed_command_starts_like_the_running_program(
    monkeypatch, argument, file, module, text
):
    main = types.ModuleType("__main__")
    if file is not None:
        main.__file__ = file
    main.__spec__ = module and importlib.machinery.ModuleSpec(module, None)
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(sys, "argv", [argument, "train"])
    assert program() == text
    assert program_for(Nim()) == text
    assert program_for(games.TicTacToe()) == "azjax"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no game \x1b[31mred\n"),
        FileNotFoundError(2, "red\n", "no game \x1b[31m"),
    ],
)
def test_the_line_of_an_error_has_no_control_characters(error):
    line = error_line(error)
    assert line.startswith("no game ?[31m")
    assert line.isprintable()
