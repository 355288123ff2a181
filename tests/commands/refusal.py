"""Checks of commands that refuse their arguments."""

import pytest

from azjax import cli


def refusal(capsys, *args):
    """Returns the line with which a command refuses its arguments, and its output.

    The command ends with status 2. Before, it may say what it loads.
    """
    with pytest.raises(SystemExit) as end:
        cli.main([str(arg) for arg in args])
    assert end.value.code == 2
    out, err = capsys.readouterr()
    *notes, line = err.splitlines()
    assert all(note.endswith(" ...") for note in notes)
    assert line.startswith("azjax: ")
    return line, out


def assert_refused(capsys, message, *args, prints=False):
    """Checks that a command ends with status 2 and a line with the message.

    prints: whether it may have printed something before.
    """
    line, out = refusal(capsys, *args)
    assert message in line
    assert prints or not out
