import io
import os
import pty

from azjax.play.input_lines import drop_typeahead


def test_unread_keys_are_discarded(monkeypatch):
    ours, theirs = pty.openpty()
    with open(theirs) as stdin, open(ours, "wb", buffering=0) as keys:
        monkeypatch.setattr("sys.stdin", stdin)
        keys.write(b"b2\nc")
        drop_typeahead()
        keys.write(b"a1\n")
        assert os.read(theirs, 100) == b"a1\n"


def test_a_pipe_keeps_its_lines(monkeypatch):
    lines = io.StringIO("b2\n")
    monkeypatch.setattr("sys.stdin", lines)
    drop_typeahead()
    assert lines.readline() == "b2\n"
