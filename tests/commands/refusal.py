"""Checks of commands that refuse their arguments."""

import pytest

from azjax import cli


def assert_refused(capsys, message, *args, prints=False):
    """Checks that a command ends with status 2 and one line with the message.

    prints: whether it may have printed something before.
    """
    with pytest.raises(SystemExit) as end:
        cli.main([str(arg) for arg in args])
    assert end.value.code == 2
    out, err = capsys.readouterr()
    (line,) = err.splitlines()
    assert line.startswith("azjax: ")
    assert message in line
    assert prints or not out
