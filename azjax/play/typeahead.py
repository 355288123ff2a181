"""Keys that were pressed before a program asked for any."""

import sys

if sys.platform == "win32":
    import msvcrt

    def drop_typeahead() -> None:
        """Drops what was typed on the standard input, if it is a terminal."""
        while sys.stdin.isatty() and msvcrt.kbhit():
            msvcrt.getwch()

else:
    import termios

    def drop_typeahead() -> None:
        """Drops what was typed on the standard input, if it is a terminal."""
        if sys.stdin.isatty():
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
