"""Modules are imported wherever what they need is installed."""

import importlib
import pkgutil
import subprocess
import sys

import azjax


def test_an_interrupt_finds_the_program_before_jax_is_imported():
    code = "import sys, azjax.commands.common; sys.exit('jax' in sys.modules)"
    imported = subprocess.run([sys.executable, "-c", code], check=False)
    assert imported.returncode == 0


def test_every_module_can_be_imported():
    names = [found.name for found in pkgutil.walk_packages(azjax.__path__, "azjax.")]
    assert "azjax.play.server.running" in names
    for name in names:
        if name != "azjax.__main__":
            importlib.import_module(name)
