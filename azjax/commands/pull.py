"""`azjax pull`: loads a player from the Hugging Face Hub."""

import os
import shlex
import tempfile
from pathlib import Path

import tyro

from azjax import hub
from azjax.files import as_directory, open_regular
from azjax.players import MissingModulesError, save_player
from azjax.players.serialization import (
    MAX_FILE_BYTES,
    MAX_WEIGHT_BYTES,
    PLAYER_FILE,
    load_player_file,
)
from azjax.program import program_for
from azjax.training.analysis.model_card import (
    CARD_FILE,
    MAX_CARD_BYTES,
    PAGE_FILE,
    card_of_page,
)


def pull_command(
    repository: tyro.conf.Positional[str],
    /,
    *,
    revision: str | None = None,
    to: str | None = None,
) -> None:
    """Load a player from a repository of the Hugging Face Hub.

    The player is checked before anything is written; nothing in it is executed.

    Args:
        repository: USER/NAME of the repository.
        revision: a branch, a tag or a commit; by default the newest commit.
        to: the directory to write, which must not exist; by default NAME.
    """
    hub.check_repository(repository)
    target = to or f"./{repository.partition('/')[2]}"
    directory = as_directory(target)
    if not isinstance(directory, Path):
        raise ValueError(f"--to must be a directory on this machine: {target}")
    if os.path.lexists(directory):
        raise ValueError(f"{target} exists: give a new directory, --to DIRECTORY")
    with tempfile.TemporaryDirectory() as folder:
        paths = hub.download(
            repository,
            {PLAYER_FILE: MAX_FILE_BYTES, PAGE_FILE: MAX_CARD_BYTES},
            Path(folder),
            kind=PLAYER_FILE,
            revision=revision,
        )
        try:
            player = load_player_file(
                paths[PLAYER_FILE], repository, most=MAX_WEIGHT_BYTES
            )
        except MissingModulesError:
            raise ValueError(
                f"the network in {repository} has modules of its author's own, which "
                "the file does not hold"
            ) from None
        card = ""
        if PAGE_FILE in paths:
            with open_regular(paths[PAGE_FILE], MAX_CARD_BYTES) as file:
                card = card_of_page(file.read().decode(errors="replace"))
    # The directory appears complete, or not at all.
    directory = Path(os.path.abspath(directory))
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        dir=directory.parent, prefix=f".{directory.name}."
    ) as folder:
        complete = Path(folder) / "player"
        save_player(complete, player)
        if card.strip():
            (complete / CARD_FILE).write_text(card, encoding="utf-8")
        complete.rename(directory)
    game = player.game
    opponent = shlex.quote(f"alphazero:{target}")
    print(f"{target}: {game!r}")
    print(f"Play against it: {program_for(game)} play {game!r} --opponent {opponent}")
