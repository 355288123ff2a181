"""`azjax review`: a player's opinion of every move of a game."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from azjax import games
from azjax.checks import check_int, check_seed
from azjax.commands.common import note
from azjax.commands.parts import read_parts
from azjax.compilation_cache import enable_compilation_cache
from azjax.games import Game, GameRecord
from azjax.games.game_record import RESULTS
from azjax.play.opponents import default_opponent
from azjax.play.review import MARKS, ReviewedMove, review
from azjax.play.text_output import side_names, signed, sparkline
from azjax.players import load
from azjax.players.names import split_name

_EXACT = {1: "win", 0: "draw", -1: "loss"}


def review_command(
    file: tyro.conf.Positional[str],
    /,
    *,
    game: str | None = None,
    number: int = 1,
    player: str | None = None,
    seed: int = 0,
    parts: str | None = None,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> None:
    """Review a game: a player's value of every position, and the mistakes.

    `?!`, `?` and `??` mark moves that lose at least 0.1, 0.2 and 0.3 of the expected
    result, from -1 to 1. With a solver (Connect Four, if bitbully is installed) they
    mark moves that lose the win or the draw instead.

    Args:
        file: PGN (chess), SGF (Go), the arena's lines of JSON, a saved game of azjax,
            or with --game a text file with the moves of a game in each line.
        game: the game, whose options replace those in the file.
        number: which game of the file, from 1.
        player: the reviewer, with settings as in azjax play, such as
            alphazero:RUN?simulations=800. Default: the pretrained player of the game,
            else a search.
        seed: seed of the reviewer.
        parts: MODULE:NAME, the azjax.networks.Parts of the reviewer's network, if it
            has modules of your own.
        as_json: print one JSON object.
    """
    check_int("--number", number, 1)
    check_seed("--seed", seed)
    enable_compilation_cache()
    made = None if game is None else games.make(game)
    found, record = _read(Path(file), number, made)
    name, text = split_name(player or default_opponent(found))
    reviewer = load(text, found, read_parts(parts))
    note(f"{name or text} reviews {len(record.moves)} moves ...")
    moves = review(found, record.moves, reviewer, seed=seed, report=note)
    if as_json:
        print(json.dumps(_to_json(found, record, name or text, moves)))
    else:
        _print_review(Console(highlight=False), found, record, moves)


def _read(path: Path, number: int, game: Game | None) -> tuple[Game, GameRecord]:
    """Reads one game of a file.

    Raises:
        ValueError: there is no such game, or it has no moves.
    """
    records = games.read_games(path, game)
    before = len(list(itertools.islice(records, number - 1)))
    chosen = next(records, None)
    if chosen is None:
        raise ValueError(f"{path} has {before} games: there is no game {number}")
    if not chosen[1].moves:
        raise ValueError(f"{path}: game {number} has no moves")
    return chosen


def _print_review(
    console: Console, game: Game, record: GameRecord, moves: Sequence[ReviewedMove]
) -> None:
    sides = side_names(game)
    result = "unfinished" if record.result is None else RESULTS[record.result]
    first, second = (_printable(name) for name in record.names)
    console.print(Text(f"{first} ({sides[0]}) - {second} ({sides[1]}): {result}"))
    has_exact = moves[0].exact_before is not None
    table = Table(box=None)
    for name in ("move", "", "by", "value", "better"):
        table.add_column(name)
    if has_exact:
        table.add_column("solver")
    for ply, move in enumerate(moves):
        is_other = move.best != move.text and (move.mark or not has_exact)
        cells = [
            f"{ply + 1}. {move.text}",
            move.mark,
            sides[move.player],
            signed(move.after),
            f"{move.best}, {signed(move.before)}" if is_other else "",
        ]
        if has_exact:
            cells.append(_exact_text(move))
        table.add_row(*map(Text, cells))
    console.print(table)
    values = [moves[0].before, *(move.after for move in moves)]
    curve = sparkline(values, len(values))
    console.print(Text(f"\nvalues for the {sides[0]}: {curve}"))
    for player, side in enumerate(sides):
        console.print(Text(_summary(side, [m for m in moves if m.player == player])))


def _exact_text(move: ReviewedMove) -> str:
    """Returns the result for the player to move before and after a move."""
    sign = 1 - 2 * move.player
    before, after = (
        _EXACT[sign * (value or 0)] for value in (move.exact_before, move.exact_after)
    )
    return before if before == after else f"{before} to {after}"


def _summary(side: str, moves: Sequence[ReviewedMove]) -> str:
    """Returns the numbers of marks and the mean loss of a player in one line."""
    loss = np.mean([move.loss for move in moves]) if moves else 0.0
    marks = (
        f"{sum(move.mark == mark for move in moves)} {mark}"
        for _, mark in reversed(MARKS)
    )
    return f"{side}: {', '.join(marks)}; loses {loss:.3f} a move"


def _to_json(
    game: Game, record: GameRecord, reviewer: str, moves: Sequence[ReviewedMove]
) -> dict[str, Any]:
    return {
        "game": repr(game),
        "players": record.names,
        "result": None if record.result is None else RESULTS[record.result],
        "reviewer": reviewer,
        "moves": [move._asdict() for move in moves],
    }


def _printable(name: str) -> str:
    """Returns a name without control characters, which could change a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)
