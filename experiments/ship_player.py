"""Adds a run's player to the pretrained players, with float16 weights.

python experiments/ship_player.py runs/connect_four
"""

import tyro

from azjax import cli
from azjax.players import load_run, save_player, shipped_players


def main(run: tyro.conf.Positional[str], /) -> None:
    """Writes the player that `pretrained` loads for its game.

    Args:
        run: the run's directory.
    """
    player = load_run(run)
    if player.has_own_parts:
        raise ValueError(
            f"the player in {run} has custom modules and cannot be loaded without them"
        )
    directory = shipped_players() / player.game.name
    save_player(directory, player, dtype="float16")
    print(f"wrote {directory}")


if __name__ == "__main__":
    with cli.one_line_errors():
        tyro.cli(main)
