"""AlphaZero, vectorised, in JAX."""

from azjax import arena, games, networks, players, search, training
from azjax.training import Run, TrainConfig, preset, train

__version__ = "0.1.0"

__all__ = [
    "Run",
    "TrainConfig",
    "__version__",
    "arena",
    "games",
    "networks",
    "players",
    "preset",
    "search",
    "train",
    "training",
]
