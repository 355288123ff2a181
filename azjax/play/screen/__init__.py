"""The full-screen interface of `azjax play`."""

from azjax.play.screen.app import PlayApp

__all__ = ["PlayApp"]
