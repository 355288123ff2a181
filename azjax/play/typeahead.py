"""Keys that were pressed before a program asked for any."""

import sys


def drop_typeahead() -> None:
    """Drops what was typed on the standard input, if it is a terminal."""
    if not sys.stdin.isatty():
        return
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415  # no other system has it

        while msvcrt.kbhit():
            msvcrt.getwch()
    else:
        import termios  # noqa: PLC0415  # Windows does not have it

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
