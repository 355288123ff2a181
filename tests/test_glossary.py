"""The glossary names symbols that exist."""

import dataclasses
import importlib
import re
from pathlib import Path

GLOSSARY = Path(__file__).parent.parent / "docs" / "glossary.md"
ROWS = re.findall(r"^\| (.+?) \| .* \| (`azjax\..*`) \|$", GLOSSARY.read_text(), re.M)


def exists(name: str) -> bool:
    """Returns whether a dotted name is a module, one of its attributes, or a field."""
    *parents, last = name.split(".")
    try:
        owner = importlib.import_module(".".join(parents))
    except ModuleNotFoundError:
        module = importlib.import_module(".".join(parents[:-1]))
        owner = getattr(module, parents[-1], None)
    is_field = dataclasses.is_dataclass(owner) and last in {
        field.name for field in dataclasses.fields(owner)
    }
    return is_field or hasattr(owner, last)


def test_the_glossary_has_a_row_for_each_term_and_its_symbols_exist():
    assert len(ROWS) > 30
    assert len({term for term, _ in ROWS}) == len(ROWS)
    for term, symbols in ROWS:
        names = re.findall(r"`([^`]*)`", symbols)
        assert names, term
        assert [name for name in names if not exists(name)] == [], term
    assert not exists("azjax.training.LearnerConfig.no_such_field")
    assert not exists("azjax.training.no_such_symbol")
