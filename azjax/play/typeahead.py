"""Discarding of keys typed before the program reads input."""

import sys


def drop_typeahead() -> None:
    """Discards unread keys if the standard input is a terminal."""
    if not sys.stdin.isatty():
        return
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415  # Windows only

        while msvcrt.kbhit():
            msvcrt.getwch()
    else:
        import termios  # noqa: PLC0415  # not on Windows

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
