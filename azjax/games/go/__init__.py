"""Go: the game, and its chains, board hashes, handicap and game records."""

from azjax.games.go.game import Go, State

__all__ = ["Go", "State"]
