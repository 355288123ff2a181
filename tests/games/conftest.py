"""Comparisons with other engines, shared with `experiments/verify_games.py`."""

import importlib.util
import pathlib
import sys
from types import ModuleType

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "experiments" / "verify_games.py"


@pytest.fixture(scope="session")
def verify_games() -> ModuleType:
    sys.path.insert(0, str(SCRIPT.parent))
    spec = importlib.util.spec_from_file_location("verify_games", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
