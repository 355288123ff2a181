"""`azjax review`: a player's opinion of every move of a game."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from azjax import games
from azjax.commands.custom_modules import ModulesOption, read_custom_modules
from azjax.commands.tables import JsonOption
from azjax.compilation_cache import enable_compilation_cache
from azjax.games import Game, GameRecord
from azjax.games.game_record import RESULTS
from azjax.play.opponents import default_opponent
from azjax.play.review import (
    POSITIONS_AT_ONCE,
    ReviewedMove,
    exact_text,
    find_game,
    review,
    summaries,
)
from azjax.play.text_output import side_names, signed, sparkline
from azjax.players import load
from azjax.players.player_spec import split_name
from azjax.players.simple import perfect_player
from azjax.program import note
from azjax.settings import Seed, Within
from azjax.text import printable


def review_command(
    file: tyro.conf.Positional[str],
    /,
    *,
    game: str | None = None,
    number: Annotated[int, Within(ge=1)] = 1,
    player: str | None = None,
    seed: Seed = 0,
    modules: ModulesOption = None,
    as_json: JsonOption = False,
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
    """
    enable_compilation_cache()
    made = None if game is None else games.make(game)
    found, record = find_game(Path(file), number, made)
    name, text = split_name(player or default_opponent(found))
    reviewer = load(text, found, read_custom_modules(modules))
    if record.note:
        note(f"{file}: game {number}: {record.note}")
    note(f"{name or text} reviews {len(record.moves)} moves ...")
    moves = []
    solver = None if found.num_outcomes else perfect_player(found)  # of exact results
    for move in review(found, record.moves, reviewer, solver, seed=seed):
        moves.append(move)
        if len(moves) % POSITIONS_AT_ONCE == 0:
            note(f"{len(moves)} of {len(record.moves)} moves")
    if as_json:
        result = None if record.result is None else RESULTS[record.result]
        report = {
            "game": repr(found),
            "players": record.names,
            "result": result,
            "reviewer": name or text,
            "moves": [move._asdict() for move in moves],
        }
        print(json.dumps(report))
    else:
        _print_review(Console(highlight=False), found, record, moves)


def _print_review(
    console: Console, game: Game, record: GameRecord, moves: Sequence[ReviewedMove]
) -> None:
    sides = side_names(game)
    result = "unfinished" if record.result is None else RESULTS[record.result]
    first, second = (printable(name) for name in record.names)
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
            sides[move.player] if move.player >= 0 else "chance",
            signed(move.after),
            f"{move.best}, {signed(move.before)}" if is_other else "",
        ]
        if has_exact:
            cells.append(exact_text(move))
        table.add_row(*map(Text, cells))
    console.print(table)
    values = [moves[0].before, *(move.after for move in moves)]
    curve = sparkline(values, len(values))
    console.print(Text(f"\nvalues for the {sides[0]}: {curve}"))
    for line in summaries(game, moves):
        console.print(Text(line))
