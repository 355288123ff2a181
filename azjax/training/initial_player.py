"""Loads the initial weights of a run from another player."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from flax import nnx

from azjax.games import Game
from azjax.networks import DenseTrunkConfig, NetworkConfig, Parts, Variables
from azjax.networks.line_planes import NUM_PLANES
from azjax.players import load_player
from azjax.players.serialization import PRETRAINED, pretrained_directory
from azjax.training.config import TrainConfig

# Paths of the weights that inputs are multiplied with.
_STEM = ("trunk", "stem", "kernel")
_PROJECT = ("trunk", "project", "kernel")


def initial_variables(
    config: TrainConfig, game: Game, parts: Parts | None, variables: Variables
) -> Variables:
    """Returns the weights of `config.initial_player`.

    With `network.heads` of `board`, the options of the game may differ, such as the
    size of the board or the komi, if the network has the same shapes. The dtype of the
    computation may differ. A player without line planes, or whose dense layers do not
    get the cells themselves (`DenseTrunkConfig.input_skip`), gets zeros as weights of
    these inputs if this run has them, so that its network computes the same.

    Args:
        config: the run's settings.
        game: the game.
        parts: custom network modules.
        variables: of the run's own network; only their shapes matter.

    Raises:
        ValueError: the player does not exist, or has another game or network.
    """
    source = config.initial_player or ""
    directory = pretrained_directory(game) if source == PRETRAINED else source
    player = load_player(directory, parts)
    is_other_size = config.network.heads == "board" and player.game.name == game.name
    if player.game != game and not is_other_size:
        hint = ""
        if player.game.name == game.name and player.config.heads == "board":
            hint = "; give --network.heads board and the settings of its trunk"
        raise ValueError(
            f"the player in {source} is for {player.game}, not for {game}{hint}"
        )
    saved, wanted = (
        _flattened(network.to_json()) for network in (player.config, config.network)
    )
    may_differ = {"dtype"}
    if not player.config.line_length:
        may_differ.add("line_length")
    if not saved.get("trunk.input_skip", True):
        may_differ.add("trunk.input_skip")
    differences = [
        f"network.{name} is {saved[name]} there"
        + (f" and {wanted[name]} here" if name in wanted else "")
        for name in saved
        if saved[name] != wanted.get(name) and name not in may_differ
    ]
    if differences:
        raise ValueError(
            f"the player in {source} has another network ({'; '.join(differences)}): "
            "give its settings; they are the options of azjax train, "
            "network.trunk.name is --trunk"
        )
    found = player.variables
    if jax.tree.structure(found) == jax.tree.structure(variables):
        found = _with_new_inputs(found, player.config, config.network, game)
    if jax.tree.map(np.shape, found) != jax.tree.map(np.shape, variables):
        raise ValueError(
            f"the network of the player in {source}, for {player.game}, has other "
            f"shapes than one for {game}"
        )
    return found


def _with_new_inputs(
    variables: Variables, saved: NetworkConfig, wanted: NetworkConfig, game: Game
) -> Variables:
    """Returns the variables of a network with zeros as weights of the inputs that only
    the network `wanted` has."""
    height, width, num_planes = game.observation_shape
    planes, wanted_planes = (
        num_planes + (NUM_PLANES if network.line_length else 0)
        for network in (saved, wanted)
    )
    params = dict(nnx.to_flat_state(variables.params))
    stem, project = params.get(_STEM), params.get(_PROJECT)
    if stem is not None and np.ndim(stem) == 4:
        params[_STEM] = _padded(stem, 2, wanted_planes - planes)
    if project is not None and _skips(wanted):
        # The rows of the windows, then those of each plane of each cell.
        num_cells, num_outputs = height * width, project.shape[1]
        planes = planes if _skips(saved) else 0
        of_windows = project[: len(project) - num_cells * planes]
        of_cells = project[len(of_windows) :]
        of_cells = of_cells.reshape(num_cells, planes, num_outputs)
        of_cells = _padded(of_cells, 1, wanted_planes - planes)
        of_cells = of_cells.reshape(-1, num_outputs)
        params[_PROJECT] = np.concatenate([of_windows, of_cells])
    return variables._replace(params=nnx.from_flat_state(params))


def _skips(network: NetworkConfig) -> bool:
    return isinstance(network.trunk, DenseTrunkConfig) and network.trunk.input_skip


def _padded(weights: jax.Array | np.ndarray, axis: int, number: int) -> np.ndarray:
    """Returns the weights with `number` zeros more at the end of an axis."""
    widths = [(0, number if place == axis else 0) for place in range(weights.ndim)]
    return np.pad(weights, widths)


def _flattened(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns nested settings by dotted names."""
    flat = {}
    for name, value in values.items():
        if isinstance(value, dict):
            flat |= _flattened(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
