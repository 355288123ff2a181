"""The parts of azjax have layers; imports only go to lower layers."""

import ast
import pathlib

import azjax

ROOT = pathlib.Path(azjax.__file__).parent
FLOORS = [
    {"checks", "suggestions"},
    {"compilation_cache", "devices", "program", "records", "remote"},
    {"config_registry", "hub"},
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


def imported_parts(path):
    """Returns the parts of azjax that a file imports, as names such as `games` or
    `cli`.
    """
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "azjax":
            names = [f"azjax.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == "azjax" and rest:
                yield rest.split(".")[0]


def test_every_part_has_a_layer():
    found = {path.stem for path in ROOT.iterdir() if path.name != "__pycache__"}
    assert found - {"__init__", "py"} == set(FLOOR_OF)


def test_no_part_imports_from_a_higher_layer():
    upwards = []
    for path in sorted(ROOT.rglob("*.py")):
        part = path.relative_to(ROOT).with_suffix("").parts[0]
        if part == "__init__":
            continue
        for other in imported_parts(path):
            is_below = FLOOR_OF[other] < FLOOR_OF[part]
            if other != part and not is_below:
                upwards.append(f"{path.relative_to(ROOT)} imports azjax.{other}")
    assert upwards == []
