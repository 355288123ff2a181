import io
import os
import pty
import threading

from azjax.play.input_lines import MAX_LINE, drop_typeahead, read_lines


def lines_of(*chunks):
    """Returns the lines of chunks of input."""
    read_end, write_end = os.pipe()

    def send():
        for chunk in chunks:
            os.write(write_end, chunk)
        os.close(write_end)

    threading.Thread(target=send).start()
    try:
        return list(read_lines(read_end))
    finally:
        os.close(read_end)


def test_lines_are_read_from_chunks():
    assert lines_of(b"name\nver", b"sion\n\nqu", b"it\n") == [
        b"name",
        b"version",
        b"",
        b"quit",
    ]


def test_a_last_line_without_an_end_is_read():
    assert lines_of(b"name\nqui") == [b"name", b"qui"]
    assert lines_of() == []


def test_a_very_long_line_is_cut_and_the_next_one_is_whole():
    long = b"x" * (3 * MAX_LINE + 17)
    assert lines_of(long + b"\nname\n", long) == [
        b"x" * MAX_LINE,
        b"name",
        b"x" * MAX_LINE,
    ]


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
