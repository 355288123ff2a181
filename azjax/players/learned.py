"""Builds trained players from a directory, without parsing player strings."""

from pathlib import Path

from azjax.checks import quoted
from azjax.games import Game
from azjax.networks import Parts
from azjax.players.core import Player
from azjax.players.network import NetworkPlayer
from azjax.players.q_serialization import KIND, load_q_player
from azjax.players.registry import DEFAULT_SIMULATIONS
from azjax.players.serialization import load_player

MAX_WEIGHT_BYTES = 2**29  # as float32
LEARNED_KINDS = ("alphazero", "network", KIND)


def load_learned(
    kind: str, directory: Path, game: Game, parts: Parts | None = None
) -> Player:
    """Builds a player from a run directory, with the settings of the run.

    Unlike `load`, this parses no player string: kinds and directories may come from
    untrusted files. Networks of more than `MAX_WEIGHT_BYTES` are refused.

    Args:
        kind: kind of player, one of `LEARNED_KINDS`.
        directory: a run directory or a player directory.
        game: the expected game.
        parts: the user's own modules, traceable by JAX, for a run whose network was
            made with them.

    Raises:
        MissingPartsError: `parts` are required.
        ValueError: the kind is unknown, or the player is missing, damaged, too large or
            for another game.
    """
    if kind not in LEARNED_KINDS:
        known = ", ".join(LEARNED_KINDS)
        raise ValueError(f"kind must be one of {known}: {quoted(kind)}")
    if kind == KIND:
        player = load_q_player(directory, most=MAX_WEIGHT_BYTES).player()
    else:
        trained = load_player(directory, parts, most=MAX_WEIGHT_BYTES)
        player = trained.player(DEFAULT_SIMULATIONS)
        if kind == "network":
            player = NetworkPlayer(trained.game, trained.network, trained.variables)
    if player.game != game:
        raise ValueError(
            f"the player in {directory} is for {player.game}, not for {game}"
        )
    return player
