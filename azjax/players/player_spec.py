"""A player's text taken apart: `KIND:ARGUMENT?NAME=VALUE&NAME=VALUE`."""

import dataclasses
import math
from collections.abc import Mapping
from urllib.parse import parse_qsl

from azjax.games import Game
from azjax.networks import Parts
from azjax.suggestions import did_you_mean

_MAX_DIGITS = 7


@dataclasses.dataclass(frozen=True)
class PlayerSpec:
    """A parsed player string, and the arguments given with it.

    text: all of it, for messages.
    kind: what stands before the colon.
    argument: what stands behind it, empty where there is none.
    settings: the values by their names.
    parts: modules of the user's own, for a network that was made with them.
    """

    text: str
    kind: str
    argument: str
    settings: Mapping[str, str]
    parts: Parts | None = None

    def whole(self, name: str, low: int, high: int, default: int) -> int:
        """Returns a setting that is a whole number.

        Raises:
            ValueError: it is none, or out of range.
        """
        return self._whole(name, self.settings.get(name, str(default)), low, high)

    def whole_argument(self, name: str, low: int, high: int) -> int:
        """Returns the argument, a whole number that is called `name` in messages.

        Raises:
            ValueError: it is none, or out of range.
        """
        return self._whole(name, self.argument, low, high)

    def real(self, name: str, low: float, high: float, default: float) -> float:
        """Returns a setting that is a number.

        Raises:
            ValueError: it is none, or out of range.
        """
        text = self.settings.get(name, str(default))
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise ValueError(
                f"{name} must be a number from {low:g} to {high:g} in player "
                f"{self.text!r}: {text!r}"
            )
        return value

    def one_of(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        """Returns a setting that is one of some words.

        Raises:
            ValueError: it is another.
        """
        value = self.settings.get(name, default)
        if value not in allowed:
            raise ValueError(
                f"{name} must be {' or '.join(allowed)} in player {self.text!r}: "
                f"{value!r}"
            )
        return value

    def flag(self, name: str, default: bool) -> bool:
        """Returns a setting that is `true` or `false`.

        Raises:
            ValueError: it is neither.
        """
        return self.one_of(name, ("true", "false"), str(default).lower()) == "true"

    def _whole(self, name: str, text: str, low: int, high: int) -> int:
        is_number = text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
        if not is_number or not low <= int(text) <= high:
            raise ValueError(
                f"{name} must be a whole number from {low} to {high} in player "
                f"{self.text!r}: {text!r}"
            )
        return int(text)


def parse_settings(text: str, query: str, allowed: tuple[str, ...]) -> dict[str, str]:
    """Reads `NAME=VALUE&NAME=VALUE`.

    Args:
        text: the whole text, for messages.
        query: what stands behind the question mark.
        allowed: the names that the player knows.

    Raises:
        ValueError: a name is unknown or stands twice.
    """
    given = parse_qsl(query, keep_blank_values=True)
    settings = dict(given)
    for key in settings:
        if key not in allowed:
            known = (
                f"its settings are {', '.join(allowed)}" if allowed else "it has none"
            )
            close = did_you_mean(key, allowed)
            raise ValueError(f"player {text!r} has no setting {key!r}; {known}{close}")
    if len(settings) < len(given):
        names = [name for name, _ in given]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"player {text!r} has the setting {twice!r} twice")
    return settings


def needed(spec: PlayerSpec, game: Game | None) -> Game:
    """Returns the game of a player that cannot be without one.

    Raises:
        ValueError: it is None.
    """
    if game is None:
        raise ValueError(f"the player {spec.text!r} needs to know the game")
    return game
