"""`azjax games`: lists the games."""

from rich.console import Console
from rich.table import Table

from azjax import games


def games_command() -> None:
    """List the games, their sizes and options."""
    table = Table("game", "actions", "observation", "longest game", "options", box=None)
    for name in games.available():
        game = games.make(name)
        table.add_row(
            name,
            str(game.num_actions),
            "×".join(map(str, game.observation_shape)),  # noqa: RUF001
            f"{game.max_moves} moves",
            ", ".join(f"{key}={value}" for key, value in game.options.items()) or "-",
        )
    console = Console()
    console.print(table)
    console.print(
        "Options follow a colon: go:19 or go:19,komi=6.5. pgx:ID is a game of pgx, if "
        "installed, for example pgx:animal_shogi."
    )
