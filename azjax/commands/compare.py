"""`azjax compare`: the settings, progress and strength of several runs."""

import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import jax
import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from azjax import games as all_games
from azjax.arena.matches import GAMES_AT_ONCE
from azjax.commands.arena import (
    MAX_GAMES,
    ArenaSettings,
    run_tournament,
)
from azjax.commands.custom_modules import ModulesOption, read_custom_modules
from azjax.commands.tables import JsonOption, print_line, tables_console
from azjax.compilation_cache import enable_compilation_cache
from azjax.files import replace_file
from azjax.games import game_title
from azjax.players import (
    DEFAULT_SIMULATIONS,
    MAX_SIMULATIONS,
)
from azjax.program import INTERRUPTED
from azjax.settings import Within
from azjax.text import printable
from azjax.training.analysis.comparison import (
    SavedRun,
    draw_comparison,
    read_runs,
    sections,
    to_json,
)

MAX_NAME = 16  # of a run at the top of a column; longer ones are numbered (characters)
MAX_WIDTH = 28  # of a column whose texts can be folded between words (characters)
GAP = 2  # between columns


def compare_command(
    runs: tyro.conf.Positional[tuple[str, ...]],
    /,
    *,
    plot: Annotated[str | None, tyro.conf.arg(metavar="FILE.png")] = None,
    games: int = 0,
    simulations: Annotated[int, Within(1, MAX_SIMULATIONS)] = DEFAULT_SIMULATIONS,
    modules: ModulesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare runs of one game: the settings that differ, progress, and the strength
    in the last evaluation.

    The 95% intervals count evaluated positions and games, not the randomness of
    training: to compare settings, make several runs with different seeds of each.

    Args:
        runs: two or more run directories.
        plot: a picture to write: strength over time and over positions.
        games: play so many games between the players of every two runs; 0 for none.
        simulations: network evaluations per move of the searches in these games.
    """
    if not 0 <= games <= MAX_GAMES or games % 2:
        raise ValueError(f"--games must be even, from 0 to {MAX_GAMES}: {games}")
    if plot is not None:
        path = Path(plot)
        if path.suffix.lower() != ".png" or path.is_dir():
            raise ValueError(f"--plot must name a file that ends with .png: {plot}")
    own_modules = read_custom_modules(modules)  # first, as it may register a trunk
    found = read_runs(runs)
    players = {run.name: run.player(simulations, own_modules) for run in found if games}
    console = tables_console(as_json)
    if plot is not None:
        buffer = io.BytesIO()
        draw_comparison(found).savefig(buffer, format="png")
        replace_file(Path(plot), buffer.getvalue())
    print_comparison(console, found)
    if plot is not None:
        print_line(console, f"plot: {plot}")
    report = to_json(found)
    if games:
        enable_compilation_cache()
        console.print()
        settings = ArenaSettings(
            all_games.make(found[0].config.game),
            players,
            games,
            opening_moves=None,
            at_once=GAMES_AT_ONCE,
            rng_key=jax.random.key(0),
            directory=None,
            console=console,
        )
        report["tournament"] = run_tournament(settings, None)
    if as_json:
        print(json.dumps(report))
    if games and report["tournament"]["is_interrupted"]:
        raise SystemExit(INTERRUPTED)


def print_comparison(console: Console, runs: Sequence[SavedRun]) -> None:
    """Prints tables with a column for each run, as many as fit the width. Long names of
    runs are numbered; settings that their names have are not repeated."""
    parents = {run.directory.parent for run in runs}
    names = [printable(run.directory.name) for run in runs]
    title = f"{game_title(runs[0].config.game)}: {len(runs)} runs"
    if len(parents) == 1 and all(names):
        title += f" in {parents.pop()}"
    else:
        names = [printable(str(run.directory)) for run in runs]
    console.print(Text(printable(title), "bold"), soft_wrap=True)
    if max(map(len, names)) > MAX_NAME:
        numbers = [str(number) for number in range(1, len(runs) + 1)]
        for number, name in zip(numbers, names, strict=True):
            print_line(console, f"{number:>{len(numbers[-1])}}  {name}")
        names = numbers
    lines: list[tuple[str, list[str]]] = [("", names)]
    for heading, rows in sections(runs):
        shown = []
        for name, texts in rows.items():
            # The names of a sweep's runs have the values of the settings.
            is_in_names = all(
                {f"{setting}={text}" for setting in (name, name.rpartition(".")[2])}
                & set(run.directory.name.split(","))
                for run, text in zip(runs, texts, strict=True)
            )
            if not is_in_names:
                # An interval is below its rate, a second value below the first.
                cells = [
                    printable(text).replace(" (", "\n(").replace(", ", ",\n")
                    for text in texts
                ]
                shown.append((printable(name), cells))
        if shown or not rows:
            lines += [("", []), (heading, []), *shown]
    first_width = _width(name for name, _ in lines)
    widths = [
        _width(texts[run] for _, texts in lines if texts) for run in range(len(runs))
    ]
    start = 0
    while start < len(runs):
        table = Table(box=None, show_header=False, padding=(0, GAP, 0, 0))
        table.add_column(width=first_width, overflow="fold")
        end, room = start, console.width - first_width - GAP
        while end < len(runs) and (end == start or room >= widths[end] + GAP):
            table.add_column(width=widths[end], overflow="fold")
            room -= widths[end] + GAP
            end += 1
        for name, texts in lines:
            style = "" if texts else "bold"
            row = (Text(text) for text in texts[start:end])
            table.add_row(Text(name, style), *row, style="" if name else "cyan")
        if start:
            console.print()
        console.print(table)
        start = end


def _width(texts: Iterable[str]) -> int:
    """Returns the width of a column in which lines are folded between words only."""
    lines = [line for text in texts for line in text.splitlines()]
    longest = max(map(len, lines), default=0)
    words = (len(word) for line in lines for word in line.split())
    return max(min(longest, MAX_WIDTH), max(words, default=0))
