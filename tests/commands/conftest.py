import sys

import pytest


@pytest.fixture
def talkative(tmp_path, monkeypatch):
    """The option for modules whose import prints something."""
    (tmp_path / "talkative.py").write_text(
        "from azjax.networks import CustomModules\n"
        "print('a library says hello')\nMODULES = CustomModules()\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield "--modules", "talkative:MODULES"
    del sys.modules["talkative"]
