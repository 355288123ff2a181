"""The main loop of the GTP engine."""

from collections.abc import Callable

from azjax.play.gtp.engine import Engine, Report
from azjax.play.gtp.protocol import CommandError, Inbox, failure, parse, success


def serve(engine: Engine, inbox: Inbox, write: Callable[[str], object]) -> None:
    """Answers commands until `quit` or the end of the input.

    Args:
        engine: executes the commands.
        inbox: their lines.
        write: sends text without buffering.
    """
    while (line := inbox.get()) is not None:
        command = parse(line)
        if command is None:
            continue
        try:
            answer = engine.execute(command.name, command.arguments)
        except CommandError as error:
            write(failure(command.id, str(error)))
            continue
        if isinstance(answer, Report):
            _report(answer, command.id, inbox, write)
        else:
            write(success(command.id, answer))
        if command.name == "quit":
            return


def _report(
    report: Report, command_id: str, inbox: Inbox, write: Callable[[str], object]
) -> None:
    """Sends lines until the next line of input, which may be empty, arrives."""
    write(f"={command_id}\n")
    for line in report.lines:
        write(f"{line}\n")
        if inbox.wait(report.interval):
            break
    write("\n")
