"""What stands beside the board: who plays, what was played, what was thought."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from azjax.play.session import Session
from azjax.play.text_output import (
    candidates,
    clock,
    curve,
    line,
    opinion,
    side_names,
    signed,
    value_text,
)

MOVES = 60  # that are shown
CANDIDATES = 8
BAR = 8  # characters
QUIET = "#8a949e"
LOUD = "#12a5a0"


def beside(session: Session) -> RenderableType:
    """Returns all that stands beside the board."""
    parts: list[RenderableType] = [_players(session)]
    if session.is_analysing:
        parts += [Text(), *_analysis(session)]
    parts += [Text(), _moves(session)]
    return Group(*parts)


def _players(session: Session) -> Table:
    controller = session.controller
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(width=1)
    table.add_column(ratio=1, overflow="ellipsis", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    sides, names = side_names(session.game), session.player_names
    for player in (0, 1):
        is_turn = controller.result is None and controller.player == player
        who = Text(names[player], "bold" if is_turn else "")
        who.append(f" {sides[player]}", QUIET)
        table.add_row(
            Text("▶" if is_turn else " ", LOUD),
            who,
            clock(controller.seconds(player)),
        )
    return table


def _moves(session: Session) -> Text:
    moves = session.controller.moves
    first = max(0, len(moves) - MOVES) // 2 * 2
    text = Text("… " if first else "", QUIET)
    for ply in range(first, len(moves)):
        if ply % 2 == 0:
            text.append(f"{ply // 2 + 1}.\N{NO-BREAK SPACE}", QUIET)
        is_last = ply == len(moves) - 1
        text.append(moves[ply].text, "bold" if is_last else "not dim")
        text.append("  " if ply % 2 else " ")
    return text


def _analysis(session: Session) -> Iterator[RenderableType]:
    latest = session.latest_decision()
    if latest is None:
        yield Text("nothing was thought yet", QUIET)
        return
    ply, decision = latest
    game, state = session.game, session.controller.states[ply]
    player = int(state.current_player)
    about = Text(f"{session.name} on move {ply + 1}", QUIET)
    value = opinion(decision)
    if value is not None:
        about.append(f": expects {value_text(game, player, value)}", "bold not dim")
    yield about
    shown = candidates(game, state, decision, CANDIDATES)
    if shown:
        yield _table(shown, has_search=decision.analysis is not None)
    expected = line(game, state, decision)
    if expected:
        yield Text("then ", QUIET).append(" ".join(expected), "not dim")
    values = session.values()
    if values:
        yield Text(f"{side_names(game)[0]}: ", QUIET).append(curve(values, 24), LOUD)


def _table(shown, *, has_search: bool) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    headings = ["move", "prior"]
    if has_search:
        headings += ["visits", "value"]
    for _ in headings[1:]:
        table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_row(*(Text(heading, QUIET) for heading in headings), "")
    weights = [c.visits if has_search else c.prior for c in shown]
    for number, (candidate, weight) in enumerate(zip(shown, weights, strict=True)):
        row = [candidate.text, f"{100 * candidate.prior:.1f}%"]
        if has_search:
            value = candidate.value
            row += [str(candidate.visits), "" if value is None else signed(value)]
        bar = Text("█" * round(BAR * weight / max(*weights, 1e-9)), LOUD)
        table.add_row(*(Text(t, "" if number else "bold") for t in row), bar)
    return table
