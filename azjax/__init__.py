"""AlphaZero, vectorized, in JAX.

Subpackages are imported at first use, so that using the games alone starts fast.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_OF_TRAINING = ("Run", "TrainConfig", "preset", "train")


def __getattr__(name: str) -> Any:
    if name in _OF_TRAINING:
        return getattr(importlib.import_module("azjax.training"), name)
    if name in __all__:
        return importlib.import_module(f"azjax.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
