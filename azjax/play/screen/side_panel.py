"""The side panel: players, moves and analysis."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from azjax.play.session import Session
from azjax.play.text_output import (
    SHOWN_MOVES,
    RankedMove,
    clock,
    expected_line,
    expected_value,
    rank_moves,
    side_names,
    signed,
    sparkline,
    value_text,
)

MAX_MOVES = 60  # of the list of played moves
BAR_WIDTH = 8  # characters
MUTED = "#8a949e"
ACCENT = "#12a5a0"


def side_panel(session: Session) -> RenderableType:
    """Returns the content of the side panel."""
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(width=1)
    table.add_column(ratio=1, overflow="ellipsis", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    sides, names = side_names(session.game), session.player_names
    for player in (0, 1):
        is_turn = session.result is None and session.player == player
        who = Text(names[player], "bold" if is_turn else "")
        who.append(f" {sides[player]}", MUTED)
        table.add_row(
            Text("▶" if is_turn else " ", ACCENT),
            who,
            clock(session.seconds(player)),
        )
    parts: list[RenderableType] = [table]
    if session.is_analyzing:
        parts += [Text(), *_analysis(session)]
    moves = session.moves
    first = max(0, len(moves) - MAX_MOVES) // 2 * 2
    text = Text("… " if first else "", MUTED)
    for ply in range(first, len(moves)):
        if ply % 2 == 0:
            text.append(f"{ply // 2 + 1}.\N{NO-BREAK SPACE}", MUTED)
        is_last = ply == len(moves) - 1
        text.append(moves[ply].text, "bold" if is_last else "not dim")
        text.append("  " if ply % 2 else " ")
    return Group(*parts, Text(), text)


def _analysis(session: Session) -> Iterator[RenderableType]:
    latest = session.latest_decision()
    if latest is None:
        yield Text("no analysis yet", MUTED)
        return
    ply, decision = latest
    game, state = session.game, session.states[ply]
    player = int(state.current_player)
    about = Text(f"{session.name} on move {ply + 1}", MUTED)
    value = expected_value(decision)
    if value is not None:
        about.append(f": expects {value_text(game, player, value)}", "bold not dim")
    yield about
    ranked = rank_moves(decision)[:SHOWN_MOVES]
    if ranked:
        texts = [game.action_to_text(state, move.action) for move in ranked]
        yield _table(texts, ranked, has_search=decision.analysis is not None)
    line = expected_line(game, state, decision)
    if line:
        yield Text("then ", MUTED).append(" ".join(line), "not dim")
    values = session.values()
    if values:
        yield Text(f"{side_names(game)[0]}: ", MUTED).append(
            sparkline(values, 24), ACCENT
        )


def _table(texts: list[str], ranked: list[RankedMove], *, has_search: bool) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    headings = ["move", "prior"]
    if has_search:
        headings += ["visits", "value"]
    for _ in headings[1:]:
        table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_row(*(Text(heading, MUTED) for heading in headings), "")
    weights = [m.prior if m.visits is None else m.visits for m in ranked]
    largest = max(*weights, 1e-9)
    for number, (text, move) in enumerate(zip(texts, ranked, strict=True)):
        row = [text, f"{100 * move.prior:.1f}%"]
        if has_search:
            value = "" if move.value is None else signed(move.value)
            row += [str(move.visits), value]
        bar = Text("█" * round(BAR_WIDTH * weights[number] / largest), ACCENT)
        table.add_row(*(Text(t, "" if number else "bold") for t in row), bar)
    return table
