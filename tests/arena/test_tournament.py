import jax
import pytest

from azjax import arena, games, players

GAME = games.make("tic_tac_toe")
