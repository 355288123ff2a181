import threading

import pytest

from azjax.play.gtp.protocol import Command, Inbox, failure, parse, success


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (b"genmove b", ("", "genmove", ["b"])),
        (b"12 play w D4\r", ("12", "play", ["w", "D4"])),
        (b"\t7\tundo\t\t", ("7", "undo", [])),
        (b"komi 6.5 # as always", ("", "komi", ["6.5"])),
        (b"un\x00d\x07o\x7f", ("", "undo", [])),
        (b"na\xffme\xc3\xa9", ("", "name", [])),
        (b"007 name", ("007", "name", [])),
        (b"12", ("12", "", [])),
        (b"-1 name", ("", "-1", ["name"])),
        *(
            (line, None)
            for line in (b"", b"  \t\r", b"# play b D4", b"\x00\xff", b" #")
        ),
    ],
)
def test_a_command_is_read_from_a_line(line, command):
    assert parse(line) == (command and Command(*command))


def test_an_answer_has_one_empty_line_at_its_end():
    assert success("", "") == "= \n\n"
    assert success("3", "D4") == "=3 D4\n\n"
    assert success("3", "\na\n\n \nb\n") == "=3 \na\nb\n\n"
    assert failure("3", "no\n\nsuch") == "?3 no such\n\n"
    assert failure("", "illegal move") == "? illegal move\n\n"


def test_an_inbox_reports_whether_a_line_is_available():
    go_on = threading.Event()

    def lines():
        yield b"name"
        go_on.wait()

    inbox = Inbox(lines())
    assert inbox.wait(30)
    assert inbox.wait(30)
    assert inbox.get() == b"name"
    assert not inbox.wait(0.01)
    go_on.set()
    assert inbox.wait(30)
    assert inbox.get() is None
