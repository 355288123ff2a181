"""Loads the initial weights of a run from another player."""

import jax
import numpy as np
from flax import nnx

from azjax.games import Game
from azjax.networks import CustomModules, DenseTrunkConfig, NetworkConfig, Variables
from azjax.networks.line_planes import NUM_PLANES
from azjax.players import load_player
from azjax.players.serialization import PRETRAINED, pretrained_directory
from azjax.settings import flattened
from azjax.training.config import TrainConfig

# Path of the weights of a dense trunk's residual layers' inputs.
_PROJECT = ("trunk", "project", "kernel")


def initial_variables(
    config: TrainConfig, game: Game, modules: CustomModules | None, variables: Variables
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
        modules: custom network modules.
        variables: of the run's own network; only their shapes matter.

    Raises:
        ValueError: the player does not exist, or has another game or network.
    """
    source = config.initial_player or ""
    directory = pretrained_directory(game) if source == PRETRAINED else source
    player = load_player(directory, modules)
    is_other_size = config.network.heads == "board" and player.game.name == game.name
    if player.game != game and not is_other_size:
        hint = ""
        if player.game.name == game.name and player.config.heads == "board":
            hint = "; give --network.heads board and the settings of its trunk"
        raise ValueError(
            f"the player in {source} is for {player.game}, not for {game}{hint}"
        )
    differences = _differences(player.config, config.network)
    if differences:
        raise ValueError(
            f"the player in {source} has another network ({'; '.join(differences)}): "
            "give its settings; they are the options of azjax train, "
            "network.trunk.name is --trunk"
        )
    found = player.variables
    if jax.tree.structure(found) == jax.tree.structure(variables):
        found = jax.tree.map(_with_line_planes, found, variables)
        if modules is None or modules.trunk is None:
            found = _with_input_skip(found, player.config, config.network, game)
    if jax.tree.map(np.shape, found) != jax.tree.map(np.shape, variables):
        raise ValueError(
            f"the network of the player in {source}, for {player.game}, has other "
            f"shapes than one for {game}"
        )
    return found


def _differences(there: NetworkConfig, here: NetworkConfig) -> list[str]:
    """Describes the settings of a saved network that this run's may not change."""
    saved, wanted = (dict(flattened(network.to_json())) for network in (there, here))
    may_differ = {"dtype"}
    # Inputs that the saved network does not have are added.
    for name in ("line_length", "trunk.input_skip"):
        if not saved.get(name, True):
            may_differ.add(name)
    return [
        f"network.{name} is {saved[name]} there"
        + (f" and {wanted[name]} here" if name in wanted else "")
        for name in saved
        if saved[name] != wanted.get(name) and name not in may_differ
    ]


def _with_line_planes(weights: jax.Array, wanted: jax.Array) -> jax.Array | np.ndarray:
    """Returns the kernel `[H, W, inputs, outputs]` of a convolution with zeros for the
    line planes if `wanted` has weights for them; other weights are unchanged."""
    with_planes = list(np.shape(weights))
    if len(with_planes) != 4:
        return weights
    with_planes[2] += NUM_PLANES
    if tuple(with_planes) != np.shape(wanted):
        return weights
    return np.pad(weights, ((0, 0), (0, 0), (0, NUM_PLANES), (0, 0)))


def _with_input_skip(
    variables: Variables, saved: NetworkConfig, wanted: NetworkConfig, game: Game
) -> Variables:
    """Returns the variables of a dense trunk with zeros for the planes of the cells
    that only the network `wanted` passes on (`DenseTrunkConfig.input_skip`); those of
    other trunks are unchanged."""
    height, width, num_planes = game.observation_shape
    planes, wanted_planes = (
        num_planes + (NUM_PLANES if network.line_length else 0)
        if isinstance(network.trunk, DenseTrunkConfig) and network.trunk.input_skip
        else 0
        for network in (saved, wanted)
    )
    params = dict(nnx.to_flat_state(variables.params))
    if wanted_planes <= planes or _PROJECT not in params:
        return variables
    # The rows of the windows, then those of each plane of each cell.
    kernel = np.asarray(params[_PROJECT])
    num_cells, num_outputs = height * width, kernel.shape[1]
    of_windows, of_cells = np.split(kernel, [len(kernel) - num_cells * planes])
    of_cells = of_cells.reshape(num_cells, planes, num_outputs)
    of_cells = np.pad(of_cells, ((0, 0), (0, wanted_planes - planes), (0, 0)))
    of_cells = of_cells.reshape(-1, num_outputs)
    params[_PROJECT] = np.concatenate([of_windows, of_cells])
    return variables._replace(params=nnx.from_flat_state(params))
