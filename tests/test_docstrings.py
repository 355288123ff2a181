"""Every public name has a docstring: the API reference is made from them."""

import importlib
import inspect

import pytest

MODULES = (
    "azjax",
    "azjax.games",
    "azjax.search",
    "azjax.networks",
    "azjax.training",
    "azjax.players",
    "azjax.arena",
    "azjax.play",
)


def undocumented(module):
    """Returns the public names of a module, and public methods of its classes, that have
    no docstring."""
    missing = [] if inspect.getdoc(module) else [module.__name__]
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if inspect.isclass(value):
            members = [
                (f"{name}.{key}", getattr(value, key))
                for key, member in vars(value).items()
                if not key.startswith("_")
                and (inspect.isfunction(member) or isinstance(member, property))
            ]
            missing += [key for key, member in members if not inspect.getdoc(member)]
        if inspect.isclass(value) or inspect.isfunction(value):
            has_own = value.__doc__ and not value.__doc__.startswith(f"{name}(")
            missing += [] if has_own else [name]
    return missing


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_has_a_docstring(name):
    assert undocumented(importlib.import_module(name)) == []


def test_a_missing_docstring_is_found():
    module = type(inspect)("module", "A module.")
    module.__all__ = ["function"]
    module.function = lambda: None
    assert undocumented(module) == ["function"]
