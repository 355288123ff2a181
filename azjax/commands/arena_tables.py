"""Text output of `azjax arena`."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from azjax.arena.results import MatchResult, WinDrawLoss
from azjax.arena.tournament import Standing, Tournament
from azjax.checks import printable

_FORFEITS_SHOWN = 3  # per match


def print_standings(
    console: Console,
    tournament: Tournament,
    table: Sequence[Standing],
    anchor: tuple[str, float] | None,
) -> None:
    """Prints the ratings, strongest player first, and the scores of all pairs."""
    grid = Table(box=None, header_style="cyan", padding=(0, 2, 0, 0))
    grid.add_column("", justify="right", no_wrap=True)
    grid.add_column("player", overflow="fold")
    for name in ("Elo", "95% interval", "score", "W-D-L", "repeated"):
        grid.add_column(name, justify="right", no_wrap=True)
    cross = Table(box=None, header_style="cyan", padding=(0, 2, 0, 0))
    for name in ("", *map(str, range(1, len(table) + 1))):
        cross.add_column(name, justify="right", no_wrap=True)
    for rank, line in enumerate(table, 1):
        low, high = line.interval
        grid.add_row(
            str(rank),
            Text(line.name),
            f"{line.elo:+.0f}",
            f"{low:+.0f} to {high:+.0f}",
            f"{line.total.score:.1%}",
            "-".join(map(str, line.total)),
            f"{line.repeated:.0%}",
        )
        scores = (
            "" if other is line else _percent(tournament, line, other)
            for other in table
        )
        cross.add_row(str(rank), *scores)
    counts = {line.total.games for line in table}
    number = f"{max(counts)} games each" if len(counts) == 1 else "unfinished"
    zero = "mean 0" if anchor is None else f"{anchor[0]} at {anchor[1]:g}"
    console.print(Text(f"\n{tournament.game!r}, {number}: ratings, {zero}", "bold"))
    console.print(grid)
    console.print(Text("\nscore of each player (rows) against each (columns)", "bold"))
    console.print(cross)


def _percent(tournament: Tournament, player: Standing, opponent: Standing) -> str:
    results = tournament.against(player.place, opponent.place)
    return f"{results.score:.1%}" if results.games else "-"


def print_match(console: Console, name: str, opponent: str, match: MatchResult) -> None:
    """Prints the result of a match with the 95% interval of its score, the openings
    won, and its first forfeits."""
    low, high = (100 * end for end in match.interval)
    interval = f"95% interval {low:.1f} to {high:.1f}"
    text = f"{name} against {opponent}: {score_text(match.total)}, {interval}"
    print_line(console, text)
    if match.opening_moves:
        won, shared, lost = match.by_opening
        text = f"{won} won, {shared} shared, {lost} lost"
        print_line(console, f"  openings, both colors together: {text}")
    games = match.game_records((name, opponent))
    forfeits = [ended for ended in games if ended.is_forfeit]
    for ended in forfeits[:_FORFEITS_SHOWN]:
        loser = ended.names[0 if ended.result == -1 else 1]
        print_line(console, f"  {loser} forfeits a game: {ended.fault}")
    if len(forfeits) > _FORFEITS_SHOWN:
        more = len(forfeits) - _FORFEITS_SHOWN
        print_line(console, f"  and {more} more games were forfeited")


def openings_text(match: MatchResult) -> str:
    """Returns a description of a match's start positions."""
    number = len(match.moves) // 2
    if not match.opening_moves:
        return "the initial position"
    moves = "random move" if match.opening_moves == 1 else "random moves"
    return f"{number} different positions after {match.opening_moves} {moves}"


def score_text(total: WinDrawLoss) -> str:
    """Returns results as text, such as `75.0% (7 won, 1 drawn, 2 lost)`."""
    return (
        f"{total.score:.1%} ({total.wins} won, {total.draws} drawn, "
        f"{total.losses} lost)"
    )


def print_line(console: Console, text: str) -> None:
    """Prints a line without interpreting markup or control characters."""
    console.print(Text(printable(text)), soft_wrap=True)
