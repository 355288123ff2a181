"""Chess: the game, and its position, move generator, memory and notation."""

from azjax.games.chess.game import Chess, State

__all__ = ["Chess", "State"]
