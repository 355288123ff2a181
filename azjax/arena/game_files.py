"""Files of finished games, in the record format of the game."""

from pathlib import Path

from azjax.arena.results import MatchResult
from azjax.games import Game


def games_file(directory: Path, game: Game) -> Path:
    """Returns the path of the games in a directory."""
    return directory / f"games.{game.record_format.suffix}"


def append_games(
    directory: Path, game: Game, names: tuple[str, str], result: MatchResult
) -> None:
    """Appends the games of a match to the file in a directory.

    Args:
        directory: an existing directory.
        game: the game.
        names: of player and opponent.
        result: their games.

    Raises:
        OSError: the file cannot be written.
    """
    text = game.record_format.write(game, result.game_records(names))
    with games_file(directory, game).open("a", encoding="utf-8") as file:
        file.write(text)
