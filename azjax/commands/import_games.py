"""`azjax import-games`: stores games of people and of other programs to learn from."""

import functools
import itertools
from pathlib import Path

import tyro

from azjax import games
from azjax.arena import import_positions
from azjax.arena.teaching import make_teacher
from azjax.compilation_cache import enable_compilation_cache
from azjax.data.importing import Teacher, import_games, reasons
from azjax.files import as_directory
from azjax.games import Game
from azjax.players import PerfectPlayer, PerfectUrPlayer, UciPlayer, load
from azjax.program import note

MAX_REMARKS = 100  # printed lines about games


def import_games_command(
    files: tyro.conf.Positional[tuple[str, ...]],
    /,
    *,
    to: str,
    game: str | None = None,
    teacher: str | None = None,
    skip_unreadable: bool = False,
) -> None:
    """Store games of people and of other programs, to learn from and to query.

    Reads PGN (chess), SGF (Go), the arena's lines of JSON, saved games of azjax, and
    text files with the moves of a game in each line; or CSV files of solved positions,
    each of which becomes a game of one best move that ends with the solved result.
    Evaluations in PGN and JSON, such as `[%eval 0.35]`, become values of positions.

    Args:
        files: the files.
        to: the new directory, for `azjax train --learn-from` and `azjax data`.
        game: the game, whose options replace those in the files; needed for lines of
            moves and for solved positions.
        teacher: a player whose moves and evaluations take the place of those of the
            games, such as uci:stockfish?nodes=1000 or perfect.
        skip_unreadable: leave out games that cannot be read, and say which and why.
    """
    if not files:
        raise ValueError("give at least one file of games")
    directory = as_directory(to)
    if not isinstance(directory, Path):
        raise ValueError(f"--to must be a directory on this machine: {to}")
    enable_compilation_cache()
    made = None if game is None else games.make(game)
    paths = [Path(name) for name in files]
    is_solved = {path.suffix.lower() == ".csv" for path in paths}
    if len(is_solved) > 1:
        raise ValueError("import games and solved positions to different directories")
    if teacher is not None and is_solved == {True}:
        raise ValueError("--teacher is for games; solved positions have their values")
    if skip_unreadable and is_solved == {True}:
        raise ValueError("--skip-unreadable is for games, not for solved positions")
    numbers = itertools.count(1)

    def remark(text: str) -> None:
        number = next(numbers)
        if number <= MAX_REMARKS:
            note(text[:500])
        elif number == MAX_REMARKS + 1:
            note("more games are left out or doubtful")

    if is_solved == {False}:
        found = import_games(
            paths,
            directory,
            made,
            teacher=None if teacher is None else _teacher(teacher),
            skip_unreadable=skip_unreadable,
            remark=remark,
            report=lambda positions: note(f"{positions:,} positions"),
        )
    elif made is None:
        raise ValueError(f"give the game of the solved positions in {files[0]}: --game")
    else:
        found = import_positions(paths, directory, made)
    print(
        f"{found.games:,} games of {found.game!r} with {found.positions:,} positions "
        f"in {to}"
    )
    if found.left_out:
        print(f"left out: {reasons(found.left_out)}")


def _teacher(spec: str) -> Teacher:
    """Returns the function by which a player labels games; it raises ValueError if the
    player is unknown, or cannot label games of this kind."""

    @functools.cache
    def of(game: Game) -> Teacher:
        player = load(spec, game)
        if not isinstance(player, UciPlayer | PerfectPlayer | PerfectUrPlayer):
            raise ValueError(
                f"--teacher must be uci:COMMAND or perfect: {spec!r}; azjax reanalyze "
                "searches stored games with alphazero:RUN"
            )
        return make_teacher(player)

    return lambda game, record: of(game)(game, record)
