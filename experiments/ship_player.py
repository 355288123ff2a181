"""Adds a run's player to the pretrained players: float16 weights and a model card.

python experiments/ship_player.py runs/connect_four --hardware "one H100"
"""

import dataclasses

import tyro

from azjax import cli
from azjax.files import as_directory
from azjax.players import load_run, save_player, shipped_players
from azjax.players.serialization import shipped_name
from azjax.training.analysis.model_card import CARD_FILE, model_card


def main(run: tyro.conf.Positional[str], /, hardware: str = "") -> None:
    """Writes the player that `pretrained` loads for its game and options.

    It computes in float32, as not every machine is fast in bfloat16.

    Args:
        run: the run's directory.
        hardware: on which the run was made, for the card.
    """
    player = load_run(run)
    if player.has_custom_modules:
        raise ValueError(
            f"the player in {run} has custom modules and cannot be loaded without them"
        )
    config = dataclasses.replace(player.config, dtype="float32")
    player = dataclasses.replace(player, config=config)
    card = model_card(as_directory(run), hardware=hardware)
    directory = shipped_players() / shipped_name(player.game)
    save_player(directory, player, dtype="float16")
    (directory / CARD_FILE).write_text(card)
    print(f"wrote {directory}")


if __name__ == "__main__":
    with cli.one_line_errors():
        tyro.cli(main)
