"""The contract that every game keeps, and the register of games."""

import abc
import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np


class State(Protocol):
    """What every game's state has, beside the fields of its own.

    current_player: `[]` int8; the player to move, 0 moves first.
    terminated: `[]` bool; whether the game is over.
    """

    @property
    def current_player(self) -> jax.Array: ...  # noqa: D102

    @property
    def terminated(self) -> jax.Array: ...  # noqa: D102


S = TypeVar("S", bound=State)
T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Symmetry:
    """A transformation of the board that maps the rules onto themselves.

    For a state `s` and its image `s'`: `observation(observe(s)) == observe(s')` and
    `legal_action_mask(s)[actions] == legal_action_mask(s')`.

    observation: maps `[..., H, W, C]` observations, for any number of leading axes.
    actions: `[A]` int; entry `a` of a transformed policy is entry `actions[a]` of the
        policy.
    """

    observation: Callable[[jax.Array], jax.Array]
    actions: np.ndarray


def identity(num_actions: int) -> Symmetry:
    """Returns the symmetry that changes nothing."""
    return Symmetry(lambda observation: observation, np.arange(num_actions))


class Game(abc.ABC, Generic[S]):
    """A two-player, zero-sum, turn-taking game of perfect information.

    All methods are pure functions of one position; the caller vmaps them. A game has no
    arrays of its own, and two games made with the same options are interchangeable.

    `step` on a finished game changes nothing, and an illegal action ends the game as a
    loss for the player who chose it.

    name: the name under which `make` knows the game.
    num_actions: A, the number of actions, legal or not.
    observation_shape: (H, W, C).
    max_moves: no game is longer than this (moves).
    """

    name: ClassVar[str]
    num_actions: int
    observation_shape: tuple[int, int, int]
    max_moves: int

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Game)
            and type(self) is type(other)
            and self.options == other.options
        )

    def __hash__(self) -> int:
        return hash((type(self), *sorted(self.options.items())))

    def __repr__(self) -> str:
        options = ",".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.name}:{options}" if options else self.name

    @property
    def options(self) -> dict[str, int | float | str | bool]:
        """The constructor arguments that make an equal game."""
        return {}

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The symmetries of the rules, the identity first."""
        return (identity(self.num_actions),)

    @abc.abstractmethod
    def init(self) -> S:
        """Returns the first position."""

    @abc.abstractmethod
    def step(self, state: S, action: jax.Array) -> S:
        """Returns the position after `action` (`[]` int32) of the player to move."""

    @abc.abstractmethod
    def legal_action_mask(self, state: S) -> jax.Array:
        """Returns `[A]` bool, True where the action is legal; for a finished game, the
        actions that the board alone would allow."""

    @abc.abstractmethod
    def observe(self, state: S) -> jax.Array:
        """Returns `[H, W, C]` float32, seen by the player to move."""

    @abc.abstractmethod
    def rewards(self, state: S) -> jax.Array:
        """Returns `[2]` float32, the result for each player: 1 win, -1 loss, 0 draw;
        zeros until the game is over."""

    @abc.abstractmethod
    def action_to_text(self, action: int) -> str:
        """Returns the action as people write it."""

    @abc.abstractmethod
    def text_to_action(self, text: str) -> int:
        """Reads what `action_to_text` writes.

        Raises:
            ValueError: the text names no action; the message says what would.
        """

    @abc.abstractmethod
    def to_text(self, state: S, last_action: int | None = None) -> str:
        """Draws the position as text, with the last move marked if it is given."""

    @abc.abstractmethod
    def to_svg(
        self,
        state: S,
        last_action: int | None = None,
        policies: Mapping[str, np.ndarray] | None = None,
    ) -> str:
        """Draws the position as an SVG document.

        Args:
            state: the position.
            last_action: the move that led to it, to be marked.
            policies: `[A]` probabilities of the next move, by the name of the one who
                holds them, for instance network and search; drawn into the picture.
        """


_GAMES: dict[str, type[Game]] = {}


def register(game_class: type[Game]) -> type[Game]:
    """Makes a game known to `make` under its name; usable as a class decorator.

    Raises:
        ValueError: another class already has the name.
    """
    known = _GAMES.setdefault(game_class.name, game_class)
    if known is not game_class:
        raise ValueError(
            f"a game named {game_class.name!r} is already registered: {known}"
        )
    return game_class


def available() -> tuple[str, ...]:
    """Returns the names of the registered games, sorted."""
    return tuple(sorted(_GAMES))


def game_options(name: str) -> Mapping[str, inspect.Parameter]:
    """Returns the options of a registered game, by name, in their order."""
    return inspect.signature(_find(name)).parameters


def make(spec: str, **options: Any) -> Game:
    """Builds a game by name.

    `make("go", size=9)`, `make("go:9")` and `make("go:size=9")` are the same: what
    follows the colon are options, separated by commas, by position or by name.

    Args:
        spec: a name, as `available()` lists them, and possibly options.
        **options: arguments of the game's constructor.

    Raises:
        ValueError: the game or an option is unknown, or an option's value is not
            allowed.
    """
    name, _, text = spec.partition(":")
    game_class = _find(name)
    parameters = list(game_options(name))
    for position, part in enumerate(filter(None, text.split(","))):
        key, equals, value = part.rpartition("=")
        if not equals:
            if position >= len(parameters):
                raise ValueError(_unknown_option(name, part, parameters))
            key = parameters[position]
        if key in options:
            raise ValueError(f"option {key!r} of {name} is given twice")
        options[key] = _parse_value(value)
    for key in options:
        if key not in parameters:
            raise ValueError(_unknown_option(name, key, parameters))
    return game_class(**options)


def _find(name: str) -> type[Game]:
    if name not in _GAMES:
        raise ValueError(
            f"unknown game {name!r}; known games: {', '.join(available())}"
        )
    return _GAMES[name]


def _unknown_option(name: str, option: str, parameters: list[str]) -> str:
    allowed = f"its options: {', '.join(parameters)}" if parameters else "it has none"
    return f"{name} has no option {option!r}; {allowed}"


def _parse_value(text: str) -> int | float | str | bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for parse in (int, float):
        try:
            return parse(text)
        except ValueError:
            pass
    return text


def select(predicate: jax.Array, on_true: T, on_false: T) -> T:
    """Returns, leaf by leaf, `on_true` where the scalar `predicate` is True."""
    return jax.tree.map(lambda t, f: jnp.where(predicate, t, f), on_true, on_false)
