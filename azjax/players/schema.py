"""Version and migration of the config files of runs and saved players.

To change the fields of such a file, raise `VERSION` and add a function to `_STEPS` that
converts the previous version.
"""

from collections.abc import Callable, Mapping
from typing import Any

from azjax.checks import quoted

VERSION = 10


def migrate(config: object) -> dict[str, Any]:
    """Converts the content of a config file to the current version.

    Args:
        config: settings of a run or a player of AlphaZero or Q-learning; not modified.

    Raises:
        ValueError: it is not a JSON object, or its version is missing or unknown.
    """
    if not isinstance(config, dict):
        raise ValueError("it is not a JSON object")
    version = config.get("format")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise ValueError(
            f"its format is {quoted(version, 40)}, and this version of azjax reads "
            f"formats 1 to {VERSION}"
        )
    migrated = dict(config)
    for step in range(version, VERSION):
        migrated = {**_STEPS[step](migrated), "format": step + 1}
    return migrated


def _from_2(config: Mapping[str, Any]) -> dict[str, Any]:
    """Version 3 renames the settings of AlphaZero and nests those of a trunk."""
    if config.get("kind") == "q_learning":
        return _q_from_2(config)
    migrated = {
        section: _renamed(values, _NAMES_OF_3.get(section, {}))
        for section, values in config.items()
    }
    if "network" in migrated:
        migrated["network"] = _nested_trunk(migrated["network"])
    return migrated


def _from_4(config: Mapping[str, Any]) -> dict[str, Any]:
    """Version 5 removes two settings of the search and keeps those of its algorithm."""
    search = config.get("search")
    if not isinstance(search, dict):
        return dict(config)
    algorithm = search.get("algorithm", "gumbel")
    removed = {"leaves_per_step", "prior_dtype"}
    for other, names in _SEARCHES_OF_4.items():
        removed |= set() if other == algorithm else set(names)
    search = {name: search[name] for name in search if name not in removed}
    return {**config, "search": {"algorithm": algorithm, **search}}


def _from_9(config: Mapping[str, Any]) -> dict[str, Any]:
    """Version 10 lets the dense trunk pass on its input; older ones do not."""
    network = config.get("network")
    if not isinstance(network, dict):
        return dict(config)
    trunk = network.get("trunk")
    if not isinstance(trunk, dict) or trunk.get("name") != "dense":
        return dict(config)
    return {**config, "network": {**network, "trunk": {**trunk, "input_skip": False}}}


def _in_run(config: Mapping[str, Any], **added: Any) -> dict[str, Any]:
    """Adds settings to AlphaZero runs."""
    return {**config, **added} if "learner" in config else dict(config)


def _with(
    config: Mapping[str, Any], name: str, needed: str | None = None, **added: Any
) -> dict[str, Any]:
    """Adds settings to a section, if it is there and has the needed setting."""
    section = config.get(name)
    if not isinstance(section, dict) or needed not in (None, *section):
        return dict(config)
    return {**config, name: {**section, **added}}


def _q_from_2(config: Mapping[str, Any]) -> dict[str, Any]:
    """Version 3 nests the evaluation settings of Q-learning runs and requires their
    length; player files have neither."""
    if "minutes" not in config:
        return dict(config)
    names = {
        "evaluations": "num_evaluations",
        "evaluation_games": "num_games",
        "evaluation_opponents": "opponents",
    }
    migrated = {name: value for name, value in config.items() if name not in names}
    migrated["evaluation"] = {
        new: config[old] for old, new in names.items() if old in config
    }
    if config["minutes"] is None and config.get("iterations") is None:
        migrated["minutes"] = _Q_MINUTES
    return migrated


def _nested_trunk(network: Any) -> Any:
    """Moves the settings of the trunk into a nested record."""
    if not isinstance(network, dict) or network.get("trunk") not in ("conv", "dense"):
        return network
    names = _TRUNK_SETTINGS[network["trunk"]]
    trunk = {name: network[name] for name in names if name in network}
    others = (*_TRUNK_SETTINGS["conv"], *_TRUNK_SETTINGS["dense"])
    rest = {name: value for name, value in network.items() if name not in others}
    return {**rest, "trunk": {"name": network["trunk"], **trunk}}


_SEARCHES_OF_4 = {
    "gumbel": ("max_num_considered_actions", "value_scale", "rescale_values"),
    "alphazero": (
        "c_init",
        "c_base",
        "first_play_reduction",
        "forced_playouts",
        "dirichlet_alpha",
        "dirichlet_fraction",
    ),
}
_TRUNK_SETTINGS = {
    "conv": ("num_blocks", "channels", "global_pooling"),
    "dense": ("num_blocks", "width", "stem_channels", "window"),
}


def _renamed(values: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(values, dict):  # an error when the settings are read
        return values
    return {names.get(name, name): value for name, value in values.items()}


_NAMES_OF_3 = {
    "search": {
        "kept_nodes": "tree_reuse_nodes",
        "max_considered_actions": "max_num_considered_actions",
        "proves": "use_solver",
    },
    "self_play": {
        "cheap_simulations": "fast_simulations",
        "empty_openings": "initial_position_fraction",
        "full_searches": "full_search_fraction",
        "games": "num_games",
        "sampled_moves": "temperature_moves",
        "short_openings": "short_opening_fraction",
        "simulations": "num_simulations",
    },
    "learner": {
        "averaging": "ema_decay",
        "final_rate": "final_lr_fraction",
        "trace": "td_lambda",
        "uses": "replay_ratio",
        "warm_up": "warmup_fraction",
    },
    "evaluation": {
        "games": "num_games",
        "positions": "num_positions",
        "simulations": "num_simulations",
        "times": "num_evaluations",
    },
}
_Q_MINUTES = 2.0  # default length of a Q-learning run in version 2
_STEPS: Mapping[int, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    # The optimizer; None if unknown.
    1: lambda config: _in_run(config, optimizer=None),
    2: _from_2,
    # Lanes; older runs have one.
    3: lambda config: _in_run(config, num_lanes=1),
    4: _from_4,
    # The kind of the heads of networks with policy and value; older ones are dense.
    5: lambda config: _with(config, "network", "value_head", heads="dense"),
    # The regret of moves that count in value targets; in older runs all moves counted.
    6: lambda config: _with(config, "learner", max_regret=2.0),
    # Line planes, which older networks lack, and the fraction of stored games: older
    # runs with stored games learn from these alone.
    7: lambda config: _in_run(
        _with(config, "network", "value_head", line_length=0), stored_fraction=1.0
    ),
    # The heads of owners and margin; older runs have none.
    8: lambda config: _with(config, "learner", owners_weight=0.0),
    9: _from_9,
}
