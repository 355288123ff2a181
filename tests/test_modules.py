"""Modules are imported wherever what they need is installed."""

import importlib
import pkgutil

import azjax


def test_every_module_can_be_imported():
    names = [found.name for found in pkgutil.walk_packages(azjax.__path__, "azjax.")]
    assert "azjax.play.server.running" in names
    for name in names:
        if name != "azjax.__main__":
            importlib.import_module(name)
