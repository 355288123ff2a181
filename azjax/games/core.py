"""The contract that every game keeps, and the register of games."""

import abc
import functools
import importlib
import inspect
import string
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import rendering
from azjax.games.symmetry import Symmetry, identity
from azjax.suggestions import did_you_mean


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
G = TypeVar("G", bound="Game")


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
    pieces: a letter for each kind of piece, those of player 0 first.
    style: how the board is drawn.
    """

    name: ClassVar[str]
    pieces: ClassVar[str] = "XO"
    style: ClassVar[rendering.Style] = rendering.MARKS
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
        """Returns the shortest text that `make` builds an equal game from, as `hex:5`
        and `go:9,komi=6.5`."""
        parameters = inspect.signature(type(self)).parameters
        first = next(iter(parameters), None)
        options = [
            f"{value}"
            # A number that stands first needs no name: it is the size.
            if key == first and not isinstance(value, bool)
            else f"{key}={value}"
            for key, value in self._unusual_options(parameters).items()
        ]
        return f"{self.name}:{','.join(options)}" if options else self.name

    def _unusual_options(
        self, parameters: Mapping[str, inspect.Parameter]
    ) -> Mapping[str, int | float | str | bool]:
        """Returns the options that have other values than if they were left out."""
        unusual = {
            key: value
            for key, value in self.options.items()
            if key not in parameters or parameters[key].default != value
        }
        # None stands for what follows from the others, as a limit of moves may.
        for key in list(unusual):
            if key in parameters and parameters[key].default is None:
                others = {name: unusual[name] for name in unusual if name != key}
                if type(self)(**others).options[key] == unusual[key]:
                    unusual = others
        return unusual

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

    def evaluate(self, state: S) -> jax.Array:
        """Returns `[]` float32 in [-1, 1], a guess at the result for the player to
        move in an unfinished game, by a rule of thumb; 0 from a game that has none."""
        del state
        return jnp.float32(0)

    @abc.abstractmethod
    def board(self, state: S) -> jax.Array:
        """Returns `[H, W]` int8, the pieces as they lie, the top row first.

        -1 where a cell is empty, else the piece's place in `pieces`.
        """

    @property
    def column_labels(self) -> Sequence[str]:
        """The W names of the columns, `a` on the left."""
        return string.ascii_lowercase[: self.observation_shape[1]]

    @property
    def row_labels(self) -> Sequence[str]:
        """The H names of the rows, from the top one down to `1`."""
        return [str(row) for row in range(self.observation_shape[0], 0, -1)]

    def action_to_text(self, state: S, action: int) -> str:
        """Returns an action of the player to move as people write it.

        As it stands here, for games in which action `a` is cell `a`, counted row by
        row from the top left, and the action after the cells, if there is one, a pass.
        """
        height, width, _ = self.observation_shape
        if not 0 <= action < self.num_actions:
            raise ValueError(
                f"action {action} of {self!r}: actions are 0 to {self.num_actions - 1}"
            )
        if action == height * width:
            return "pass"
        row, column = divmod(action, width)
        return f"{self.column_labels[column]}{self.row_labels[row]}"

    def text_to_action(self, state: S, text: str) -> int:
        """Reads what `action_to_text` writes; capitals and spaces around are allowed.

        Raises:
            ValueError: the text names no action, or one that is not legal here; the
                message says which are.
        """
        wanted = text.strip().lower()
        legal = [] if state.terminated else np.flatnonzero(compiled_mask(self, state))
        texts = {self.action_to_text(state, int(a)): int(a) for a in legal}
        for name, action in texts.items():
            if name.lower() == wanted:
                return action
        if not texts:
            raise ValueError(f"{text.strip()!r} cannot be played: the game is over")
        every = (self.action_to_text(state, a) for a in range(self.num_actions))
        known = any(name.lower() == wanted for name in every)
        what = "is not legal here" if known else f"is no action of {self!r}"
        raise ValueError(f"{text.strip()!r} {what}; legal: {_enumerate(list(texts))}")

    def action_cells(self, state: S, action: int) -> tuple[rendering.Cell, ...]:
        """Returns the (row, column) of the cells at which a person points, one after
        the other, to choose a legal action; none where it has no place on the board."""
        height, width, _ = self.observation_shape
        is_cell = 0 <= action < height * width
        return (divmod(action, width),) if is_cell else ()

    def last_cells(self, state: S, last_action: int) -> tuple[rendering.Cell, ...]:
        """Returns the (row, column) of the cells to mark after `last_action` led to
        `state`."""
        return self.action_cells(state, last_action)

    def ending(self, state: S) -> str:
        """Returns what there is to say about the end of a finished game beside who has
        won: a score, as `34 to 30`, or a reason, as `stalemate`; else, and before the
        end, an empty text."""
        del state
        return ""

    def winning_cells(self, state: S) -> tuple[rendering.Cell, ...]:
        """Returns the (row, column) of the cells that won the game, such as those of
        four in a row; none where it was not won by cells, or not yet."""
        del state
        return ()

    def to_text(self, state: S, last_action: int | None = None) -> str:
        """Draws the position as text; the last move, if it is given, and the cells that
        won are marked."""
        return rendering.board_to_text(
            self._board_to_draw(state),
            self.pieces,
            marked=(*self._marked(state, last_action), *self.winning_cells(state)),
            column_labels=self.column_labels,
            row_labels=self.row_labels,
        )

    def to_svg(
        self,
        state: S,
        last_action: int | None = None,
        policies: Mapping[str, np.ndarray] | None = None,
        is_turned: bool = False,
    ) -> str:
        """Draws the position as an SVG document; the cells that won are marked.

        Args:
            state: the position.
            last_action: the move that led to it, to be marked.
            policies: `[A]` probabilities of the next move, by the name of the one who
                holds them, for instance network and search; drawn into the picture.
            is_turned: whether the board is seen from the opposite side.

        Raises:
            ValueError: there is not one position, or not one probability an action.
        """
        held = {name: np.asarray(policy) for name, policy in (policies or {}).items()}
        for name, policy in held.items():
            if policy.shape != (self.num_actions,):
                raise ValueError(
                    f"a policy of {self!r} has [{self.num_actions}] probabilities: "
                    f"{name!r} has {list(policy.shape)}"
                )
        return rendering.board_to_svg(
            self.style,
            self._board_to_draw(state),
            marked=self._marked(state, last_action),
            winning=self.winning_cells(state),
            column_labels=self.column_labels,
            row_labels=self.row_labels,
            policies=self.policies_on_board(state, held) if held else {},
            is_turned=is_turned,
        )

    def policies_on_board(
        self, state: S, policies: Mapping[str, np.ndarray]
    ) -> rendering.Policies:
        """Returns what `to_svg` draws of policies.

        As it stands here, for games whose actions are cells: a bar in each cell, with
        the probabilities of what has no cell in the name.

        Args:
            state: the position.
            policies: `[A]` probabilities of the next move, by name.

        Returns:
            by name, one of: `[W]` probabilities of the columns, drawn as bars above the
            board; `[H, W]` probabilities of the cells, drawn in the empty ones; a list
            of `rendering.Arrow(start, end, probability)` from cell to cell.
        """
        height, width, _ = self.observation_shape
        num_cells = height * width
        placed = {}
        for name, policy in policies.items():
            others = [
                f"{self.action_to_text(state, action)} {100 * policy[action]:.0f}%"
                for action in range(num_cells, self.num_actions)
            ]
            words = f"{name} ({', '.join(others)})" if others else name
            placed[words] = policy[:num_cells].reshape(height, width)
        return placed

    def _board_to_draw(self, state: S) -> np.ndarray:
        """Returns `board(state)`; of many positions, the board would be nonsense."""
        shape = list(np.shape(state.terminated))
        if shape:
            raise ValueError(
                f"one position is drawn at a time, and these are {shape}; take one "
                "by jax.tree.map(lambda leaf: leaf[0], states)"
            )
        return np.asarray(self.board(state))

    def _marked(self, state: S, last_action: int | None) -> tuple[rendering.Cell, ...]:
        return () if last_action is None else self.last_cells(state, last_action)


@functools.partial(jax.jit, static_argnames="game")
def compiled_mask(game: Game[S], state: S) -> jax.Array:
    """Returns `game.legal_action_mask(state)`, compiled once for each game."""
    return game.legal_action_mask(state)


def _enumerate(texts: Sequence[str], most: int = 20) -> str:
    """Returns the texts in a row, the middle ones left out where there are many."""
    if len(texts) <= most:
        return " ".join(texts)
    return f"{' '.join(texts[: most - 2])} ... {texts[-1]} ({len(texts)} in all)"


class UnknownGameError(ValueError):
    """No game is registered under a name.

    name: the name.
    """

    def __init__(self, name: str):
        self.name = name
        super().__init__(
            f"unknown game {name!r}; known games: {', '.join(available())}; for a game "
            f"of your own, run the file that defines it{did_you_mean(name, _GAMES)}"
        )


_GAMES: dict[str, type[Game]] = {}

# Games of other libraries: the modules that register them, imported when asked for.
_ADAPTERS = {"pgx": "azjax.games.adapters.pgx"}


def register(game_class: type[G]) -> type[G]:
    """Makes a game known to `make` under its name; usable as a class decorator.

    The same class defined again, as when a notebook cell is executed again, replaces
    the old one.

    Raises:
        ValueError: another class already has the name.
    """
    known = _GAMES.get(game_class.name, game_class)
    if _place(known) != _place(game_class):
        raise ValueError(
            f"a game named {game_class.name!r} is already registered: {known}"
        )
    _GAMES[game_class.name] = game_class
    return game_class


def _place(game_class: type[Game]) -> tuple[str, str]:
    """Returns where a class is defined."""
    return game_class.__module__, game_class.__qualname__


def available() -> tuple[str, ...]:
    """Returns the names of the registered games, sorted; `pgx:ID`, which stands for the
    games of another library, is not among them."""
    return tuple(sorted(_GAMES.keys() - _ADAPTERS.keys()))


def game_options(name: str) -> Mapping[str, inspect.Parameter]:
    """Returns the options of a registered game, by name, in their order."""
    return inspect.signature(_find(name)).parameters


def make(spec: str, **options: Any) -> Game:
    """Builds a game by name.

    `make("go", size=5)`, `make("go:5")` and `make("go:size=5")` are the same: what
    follows the colon are options, separated by commas, by position or by name. `repr`
    gives the shortest text, `go:5`.

    Args:
        spec: a name, as `available()` lists them, and possibly options.
        **options: arguments of the game's constructor; numbers may be NumPy's.

    Raises:
        UnknownGameError: there is no such game.
        ValueError: an option is unknown, or its value is not allowed.
    """
    name, _, text = spec.partition(":")
    game_class = _find(name)
    parameters = list(game_options(name))
    parts = text.split(",") if text else []
    if "" in parts:
        raise ValueError(
            f"an option in {spec!r} is empty; to leave some out, give others by name"
        )
    for position, part in enumerate(parts):
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
    plain = {
        key: value.item() if isinstance(value, np.generic) else value
        for key, value in options.items()
    }
    return game_class(**plain)


def _find(name: str) -> type[Game]:
    if name in _ADAPTERS:
        try:
            importlib.import_module(_ADAPTERS[name])
        except ModuleNotFoundError as error:
            raise ValueError(str(error)) from error
    if name not in _GAMES:
        raise UnknownGameError(name)
    return _GAMES[name]


def _unknown_option(name: str, option: str, parameters: list[str]) -> str:
    allowed = f"its options: {', '.join(parameters)}" if parameters else "it has none"
    close = did_you_mean(option, parameters)
    return f"{name} has no option {option!r}; {allowed}{close}"


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


def zero_sum(outcome: jax.Array) -> jax.Array:
    """Returns `[2]` float32, the rewards if player 0 got `outcome` (`[]`)."""
    result = outcome.astype(jnp.float32)
    return jnp.stack([result, 0.0 - result])  # a draw is 0, never -0
