"""`azjax push`: writes a trained player to the Hugging Face Hub."""

import tyro

from azjax import hub
from azjax.files import as_directory, open_regular
from azjax.players import load_player
from azjax.players.serialization import MAX_WEIGHT_BYTES, PLAYER_FILE, player_bytes
from azjax.training.analysis.model_card import (
    CARD_FILE,
    MAX_CARD_BYTES,
    PAGE_FILE,
    hub_page,
    model_card,
)
from azjax.training.run.metrics import METRICS_FILE


def push_command(
    run: tyro.conf.Positional[str],
    repository: tyro.conf.Positional[str],
    /,
    *,
    private: bool = False,
    hardware: str = "",
    message: str = "",
) -> None:
    """Write a trained player to a repository of the Hugging Face Hub.

    The repository gets the weights with their settings as player.safetensors, and the
    player's card as README.md. It is created if it does not exist. The token is that of
    HF_TOKEN or of `hf auth login`.

    Args:
        run: a run's directory, or a player's directory with a card.md.
        repository: USER/NAME of the repository.
        private: create a private repository.
        hardware: on which the run was made, for the card.
        message: of the commit.
    """
    hub.check_repository(repository)
    directory = as_directory(run)
    player = load_player(directory, most=MAX_WEIGHT_BYTES)
    game = player.game
    path = directory / CARD_FILE
    if path.exists():
        if hardware:
            raise ValueError(f"--hardware is for the card of a run: {path} is the card")
        with open_regular(path, MAX_CARD_BYTES) as file:
            card = file.read(MAX_CARD_BYTES).decode(errors="replace")
    elif (directory / METRICS_FILE).exists():
        card = model_card(directory, hardware=hardware)
    else:
        raise ValueError(
            f"{directory} is no run and has no {CARD_FILE}, so that the player's "
            "strength is unknown"
        )
    page = hub_page(card, game, repository)
    address = hub.upload(
        repository,
        {PLAYER_FILE: player_bytes(player), PAGE_FILE: page.encode()},
        kind=PLAYER_FILE,
        private=private,
        message=message or f"Upload a player of {game!r}",
    )
    print(address)
    print(f"Play against it: azjax pull {repository}")
