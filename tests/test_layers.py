"""The parts of azjax have layers; imports only go to lower layers."""

import ast
import pathlib

import pytest

import azjax

ROOT = pathlib.Path(azjax.__file__).parent
FLOORS = [
    {"text"},
    {"settings"},
    {"program"},
    {"compilation_cache", "devices", "files"},
    {"hub"},
    {"games", "search", "networks"},
    {"data", "players"},
    {"arena"},
    {"training"},
    {"play"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
FLOOR_OF = {part: floor for floor, parts in enumerate(FLOORS) for part in parts}
# Modules that are imported only when a game of their library is used.
ADAPTERS = {
    "azjax.games.adapters.pgx",
    "azjax.games.adapters.pettingzoo",
    "azjax.players.open_spiel",
}
ADAPTED = {"pgx", "pettingzoo", "gymnasium", "pyspiel"}


@pytest.fixture(scope="module")
def imports():
    """The names that each module of azjax imports, in its functions too."""
    return {
        path.relative_to(ROOT): set(imported_names(path))
        for path in sorted(ROOT.rglob("*.py"))
    }


def imported_names(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_part_has_a_layer():
    found = {path.stem for path in ROOT.iterdir() if path.name != "__pycache__"}
    assert found - {"__init__", "py"} == set(FLOOR_OF)


def test_no_part_imports_from_a_higher_layer(imports):
    upwards = []
    for path, names in imports.items():
        part = path.with_suffix("").parts[0]
        others = {name.split(".")[1] for name in names if name.startswith("azjax.")}
        if part != "__init__":
            upwards += [
                f"{path} imports azjax.{other}"
                for other in sorted(others - {part})
                if FLOOR_OF[other] >= FLOOR_OF[part]
            ]
    assert upwards == []


def test_no_files_import_each_other_in_a_circle(imports):
    """`__init__` files, which collect names, are left out."""
    paths = {
        ".".join(("azjax", *path.with_suffix("").parts)): path
        for path in imports
        if path.stem != "__init__"
    }
    left = {
        module: {other for name in imports[path] for other in parents(name)}
        & (paths.keys() - {module})
        for module, path in paths.items()
    }
    while left:
        done = {module for module, used in left.items() if not used & left.keys()}
        assert done, f"a circle is among {sorted(left)}"
        left = {module: left[module] for module in left.keys() - done}


def parents(name):
    """Returns a dotted name without 0, 1 or more of its last parts."""
    parts = name.split(".")
    return {".".join(parts[:number]) for number in range(1, len(parts) + 1)}


def test_the_libraries_with_games_are_imported_by_their_adapters_only(imports):
    for path, names in imports.items():
        module = ".".join(("azjax", *path.with_suffix("").parts))
        used = {name for name in names if name.split(".")[0] in ADAPTED}
        used |= {name for name in names for a in ADAPTERS if name.startswith(a)}
        assert not used or module in ADAPTERS, f"{module} imports {used}"
