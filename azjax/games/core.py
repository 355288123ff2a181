"""The contract of a game."""

import abc
import functools
import inspect
import string
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import rendering
from azjax.games.game_record import RecordFormat
from azjax.games.symmetry import Symmetry, identity
from azjax.text import quoted

MAX_LISTED = 20  # legal actions in a message


class State(Protocol):
    """The fields that every game's state has.

    current_player: `[]` int8; the player to move; player 0 moves first. Where the state
        waits for chance, the player for whom values of the position are stated.
    terminated: `[]` bool; whether the game is over.
    """

    @property
    def current_player(self) -> jax.Array:
        """`[]` int8; the player to move."""
        ...

    @property
    def terminated(self) -> jax.Array:
        """`[]` bool; whether the game is over."""
        ...


S = TypeVar("S", bound=State)
T = TypeVar("T")


class Game(abc.ABC, Generic[S]):
    """A zero-sum game of two players with perfect information, with or without chance,
    and with the same numbered actions in all positions.

    All methods are pure functions of one position; the caller vmaps them. A game object
    holds no arrays; two games with the same options are interchangeable.

    `step` on a finished game returns the same state. An illegal action ends the game as
    a loss for the player who chose it.

    In a game with chance, such as dice, `init` and `step` may return a state that waits
    for chance. No player is to move in it: `chance` has the probabilities of the
    outcomes, and `chance_step` leads to a position in which a player is to move or,
    except from the first state, the game is over. Environments, self-play, matches and
    front ends draw the outcomes; the moves of a game are its actions, and the number A
    + k for outcome k of chance.

    name: the name in the registry.
    num_actions: A, the size of the action space.
    observation_shape: (H, W, C).
    max_moves: upper bound of the length of a game (moves).
    actions_per_cell: K, if the first H * W * K actions are K actions for each cell of
        the observation, row by row, such as placing a stone there or moving from there;
        actions without a cell, such as a pass, follow. 0 if actions have no cells.
    max_legal_actions: the most actions that are legal in any position; 0 if unknown.
        If it is known, the nodes of searches have edges for the legal actions only.
    has_extra_turns: whether a player may move several times in a row; otherwise the
        players move strictly in turn. `State.current_player` says who moves.
    num_outcomes: K, the number of outcomes of chance; 0 in games without chance.
    line_length: stones in a row, column or diagonal that win; 0 in games that are not
        won by lines. The first two planes of the observation of a game with lines are
        the stones of the player to move and of the opponent.
    pieces: one letter for each kind of piece, those of player 0 first; `XO` by default.
    style: how boards and pieces look in pictures and on pages: `MARKS` (the default),
        `DISCS`, `STONES`, `OTHELLO`, `HEXAGONS`, `MEN`, `CHESSMEN` of
        `azjax.games.rendering`, or a `Style` with a drawing for each of `pieces`.
    record_format: file format of games; lines of JSON by default.

    Example:
        >>> game = games.make("connect_four")
        >>> states = jax.vmap(lambda _: game.init())(jax.numpy.arange(3))
        >>> columns = jax.numpy.array([0, 3, 7])  # there is no column 7
        >>> states = jax.jit(jax.vmap(game.step))(states, columns)
        >>> states.terminated.tolist()
        [False, False, True]
        >>> jax.vmap(game.rewards)(states)[2].tolist()
        [-1.0, 1.0]
    """

    name: ClassVar[str]
    pieces: ClassVar[str] = "XO"
    style: ClassVar[rendering.Style] = rendering.MARKS
    record_format: ClassVar[RecordFormat]  # the default is set in `reading`
    actions_per_cell: ClassVar[int] = 0
    max_legal_actions: int = 0
    has_extra_turns: bool = False
    num_outcomes: int = 0
    line_length: int = 0
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
        """Returns the shortest text from which `make` builds an equal game, such as
        `hex:5` and `go:9,komi=6.5`."""
        parameters = inspect.signature(type(self)).parameters
        unusual = {
            key: value
            for key, value in self.options.items()
            if key not in parameters or parameters[key].default != value
        }
        # A default of None is derived from the other options, like a move limit.
        for key in list(unusual):
            if key in parameters and parameters[key].default is None:
                others = {name: unusual[name] for name in unusual if name != key}
                if type(self)(**others).options[key] == unusual[key]:
                    unusual = others
        first = next(iter(parameters), None)
        options = [
            f"{value}"
            # The first parameter, a size, is written without its name.
            if key == first and not isinstance(value, bool)
            else f"{key}={value}"
            for key, value in unusual.items()
        ]
        return f"{self.name}:{','.join(options)}" if options else self.name

    @functools.cached_property  # compared in each call of a compiled function
    def options(self) -> dict[str, int | float | str | bool]:
        """The constructor arguments that make an equal game; by default the attributes
        of the same names."""
        names = inspect.signature(type(self)).parameters
        return {name: getattr(self, name) for name in names if hasattr(self, name)}

    @property
    def max_handicap(self) -> int | None:
        """The largest fixed handicap (stones); None in games without a handicap."""
        return None

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The symmetries of the rules, the identity first, by which training turns
        positions; the identity alone by default."""
        return (identity(self.num_actions),)

    @abc.abstractmethod
    def init(self) -> S:
        """Returns the first position."""

    @abc.abstractmethod
    def step(self, state: S, action: jax.Array) -> S:
        """Returns the position after `action` (`[]` int32) of the player to move."""

    @abc.abstractmethod
    def legal_action_mask(self, state: S) -> jax.Array:
        """Returns `[A]` bool, True where the action is legal; in a finished game, the
        actions that the board alone would allow."""

    def chance(self, state: S) -> jax.Array | None:
        """Returns `[K]` float32, the probabilities of the outcomes that `state` waits
        for; zeros where a player is to move or the game is over. None, the default, in
        games without chance."""
        del state
        return None

    def chance_step(self, state: S, outcome: jax.Array) -> S:
        """Returns the position after `outcome` (`[]` int32) of a state that waits for
        chance. It does not wait for chance itself."""
        raise NotImplementedError(f"{self!r} has no chance")

    @abc.abstractmethod
    def observe(self, state: S) -> jax.Array:
        """Returns `[H, W, C]` float32, from the view of the player to move."""

    @abc.abstractmethod
    def rewards(self, state: S) -> jax.Array:
        """Returns `[2]` float32, the result for each player: 1 win, -1 loss, 0 draw;
        zeros until the game is over."""

    def evaluate(self, state: S) -> jax.Array:
        """Returns `[]` float32 in [-1, 1], a heuristic estimate of the result for the
        player to move in an unfinished game; 0 by default."""
        del state
        return jnp.float32(0)

    def score(self, state: S) -> jax.Array | None:
        """Returns `[2]` float32, the points of each player if the game ended now; None
        in games that are not decided by points."""
        del state
        return None

    def owners(self, state: S) -> jax.Array | None:
        """Returns `[H, W]` int8, the owner of each cell of the observation if the game
        ended now: 0 or 1, -1 for neither; None in games that are not decided by
        territory. The symmetries of a game with owners move cells only."""
        del state
        return None

    @abc.abstractmethod
    def board(self, state: S) -> jax.Array:
        """Returns `[H, W]` int8, the pieces on the board, top row first.

        -1 for an empty cell, otherwise the index in `pieces`.
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
        """Returns an action of the player to move in the game's notation.

        The default is for games in which action `a` is cell `a`, counted row by row
        from the top left, and the action after the cells, if there is one, is a pass.
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

    def move_to_text(self, state: S, move: int) -> str:
        """Returns a move in the game's notation: an action of the player to move, or
        the number A + k for outcome k of chance."""
        if move >= self.num_actions and self.num_outcomes:
            return self.outcome_to_text(state, move - self.num_actions)
        return self.action_to_text(state, move)

    def text_to_action(self, state: S, text: str) -> int:
        """Parses the output of `action_to_text`, ignoring case and surrounding spaces.

        Raises:
            ValueError: the position waits for chance, or the text is no action, or an
                illegal one, and the message lists the legal actions.
        """
        if self.num_outcomes and compiled_call("chance", self, state).any():
            raise ValueError("the position waits for chance: nobody is to move")
        wanted = text.strip().lower()
        legal = [] if state.terminated else np.flatnonzero(compiled_mask(self, state))
        texts = {self.action_to_text(state, int(a)): int(a) for a in legal}
        for name, action in texts.items():
            if name.lower() == wanted:
                return action
        if not texts:
            raise ValueError(
                f"{quoted(text.strip())} cannot be played: the game is over"
            )
        every = (self.action_to_text(state, a) for a in range(self.num_actions))
        known = any(name.lower() == wanted for name in every)
        what = "is not legal here" if known else f"is no action of {self!r}"
        some = list(texts)
        if len(some) > MAX_LISTED:  # leaves out the middle
            some = [*some[: MAX_LISTED - 2], "...", some[-1], f"({len(some)} in all)"]
        raise ValueError(f"{quoted(text.strip())} {what}; legal: {' '.join(some)}")

    def outcome_to_text(self, state: S, outcome: int) -> str:
        """Returns an outcome of chance in words, such as `roll 3`."""
        del state
        return f"outcome {outcome}"

    def action_cells(self, state: S, action: int) -> tuple[rendering.Cell, ...]:
        """Returns the (row, column) of the cells that a user clicks, in this order, to
        choose a legal action; empty for actions without a cell."""
        height, width, _ = self.observation_shape
        is_cell = 0 <= action < height * width
        return (divmod(action, width),) if is_cell else ()

    def last_cells(self, state: S, last_action: int) -> tuple[rendering.Cell, ...]:
        """Returns the (row, column) of the cells to mark after `last_action` led to
        `state`."""
        return self.action_cells(state, last_action)

    def result_text(self, state: S) -> str:
        """Returns details of a finished game's result besides the winner: a score such
        as `34 to 30`, or a reason such as `stalemate`; otherwise an empty text."""
        del state
        return ""

    def winning_cells(self, state: S) -> tuple[rendering.Cell, ...]:
        """Returns the (row, column) of the cells that won the game, such as four in a
        row; empty if there are none."""
        del state
        return ()

    def handicap_points(self, num_stones: int) -> Sequence[str]:
        """Returns the points of a fixed handicap in the notation of the game.

        Raises:
            ValueError: there is no handicap of that size.
        """
        raise ValueError(f"{self!r} has no handicap of {num_stones} stones")

    def without_move_limit(self) -> "Game[S]":
        """Returns the game with the highest move limit that its states can represent,
        for front ends without a move limit."""
        return self

    def to_text(self, state: S, last_action: int | None = None) -> str:
        """Draws the position as text; the last move, if given, and the winning cells
        are marked."""
        board = self._one_board(state)
        last = () if last_action is None else self.last_cells(state, last_action)
        return rendering.board_to_text(
            board,
            self.pieces,
            marked=(*last, *self.winning_cells(state)),
            column_labels=self.column_labels,
            row_labels=self.row_labels,
            indent=self.style.text_indent,
        )

    def to_svg(
        self,
        state: S,
        last_action: int | None = None,
        policies: Mapping[str, np.ndarray] | None = None,
    ) -> str:
        """Draws the position as an SVG document; the winning cells are marked.

        Args:
            state: one position.
            last_action: the move that led to it; it is marked.
            policies: `[A]` probabilities of the next move, by a name such as `network`
                or `search`; they are drawn on the board.
        """
        arrays = {name: np.asarray(policy) for name, policy in (policies or {}).items()}
        for name, policy in arrays.items():
            if policy.shape != (self.num_actions,):
                raise ValueError(
                    f"a policy of {self!r} has [{self.num_actions}] probabilities: "
                    f"{name!r} has {list(policy.shape)}"
                )
        board = self._one_board(state)
        last = () if last_action is None else self.last_cells(state, last_action)
        return rendering.board_to_svg(
            self.style,
            board,
            marked=last,
            winning=self.winning_cells(state),
            column_labels=self.column_labels,
            row_labels=self.row_labels,
            policies=self.policies_on_board(state, arrays) if arrays else {},
        )

    def _one_board(self, state: S) -> np.ndarray:
        """Returns `[H, W]` int8, the board of one position."""
        shape = list(np.shape(state.terminated))
        if shape:
            raise ValueError(
                f"one position is drawn at a time, and these are {shape}; take one by "
                "jax.tree.map(lambda leaf: leaf[0], states)"
            )
        return np.asarray(self.board(state))

    def policies_on_board(
        self, state: S, policies: Mapping[str, np.ndarray]
    ) -> rendering.Policies:
        """Returns the drawings of policies for `to_svg`.

        The default is for games whose actions are cells: a bar in each cell; actions
        without a cell, such as a pass, are added to the name.

        Args:
            state: the position.
            policies: `[A]` probabilities of the next move, by name.

        Returns:
            By name, one of: `[W]` probabilities of the columns, drawn as bars above the
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
            label = f"{name} ({', '.join(others)})" if others else name
            placed[label] = policy[:num_cells].reshape(height, width)
        return placed


@functools.partial(jax.jit, static_argnums=(0, 1))
def compiled_call(method: str, game: Game, *args: Any) -> Any:
    """Returns the result of a method of a game, compiled once for each game."""
    return getattr(original(game), method)(*args)


def compiled_mask(game: Game[S], state: S) -> jax.Array:
    """Returns `game.legal_action_mask(state)`, compiled once for each game."""
    return compiled_call("legal_action_mask", game, state)


def original(game: Game[S]) -> Game[S]:
    """Returns the game that `azjax.games.host.compiled` compiled, or `game`."""
    return vars(game).get("_original", game)


def initial_states(game: Game[S], batch_size: int) -> S:
    """Returns the first position of each of B games, leaves `[B, ...]`; in games with
    chance, `azjax.games.chance.after_chance` draws the outcome it may wait for."""
    return jax.vmap(lambda _: game.init())(jnp.arange(batch_size))


def select(predicate: jax.Array, on_true: T, on_false: T) -> T:
    """Returns, leaf by leaf, `on_true` where the scalar `predicate` is True."""
    return jax.tree.map(lambda t, f: jnp.where(predicate, t, f), on_true, on_false)


def zero_sum(outcome: jax.Array) -> jax.Array:
    """Returns `[2]` float32, the rewards if player 0 got `outcome` (`[]`)."""
    result = outcome.astype(jnp.float32)
    return jnp.stack([result, 0.0 - result])  # a draw is 0, never -0
