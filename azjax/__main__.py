"""`azjax` and `python -m azjax`: the command line."""

from azjax.commands.common import INTERRUPTED


def main() -> None:
    """Runs the command that the program's arguments name."""
    try:
        from azjax.cli import main as run  # noqa: PLC0415, it takes its time
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    run()


if __name__ == "__main__":
    main()
