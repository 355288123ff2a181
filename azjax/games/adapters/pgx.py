"""Games of azjax behind pgx's interface, and pgx's games as games of azjax.

Code written for pgx runs on a game of azjax:

>>> import jax
>>> from azjax import games
>>> from azjax.games.adapters.pgx import to_pgx
>>> env = to_pgx(games.make("connect_four"))
>>> state = jax.jit(env.init)(jax.random.key(0))
>>> state = jax.jit(env.step)(state, 3)
>>> state.observation.shape, int(state.legal_action_mask.sum())
((6, 7, 2), 7)

and azjax plays and learns a game of pgx, on the command line as well, as in
`azjax train pgx:animal_shogi`:

>>> game = games.make("pgx:tic_tac_toe")
>>> state = game.step(game.init(), 4)
>>> print(game.to_text(state))
  a  b  c
3 .  .  .
2 .  X  .
1 .  .  .
"""

import functools
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from azjax.games import rendering
from azjax.games.chance import after_chance
from azjax.games.core import Game, select
from azjax.games.registry import make, register
from azjax.text import quoted

try:
    import pgx
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "this needs the library pgx: pip install 'azjax[pgx]'", name="pgx"
    ) from error


@struct.dataclass
class PgxState(pgx.State):
    """A position of a game of azjax, with all that pgx's states have.

    _position: the game's own state.
    _first_player: `[]` int32; the id of the player who moves first.
    """

    _position: Any
    _first_player: jax.Array
    _game: Game = struct.field(pytree_node=False)
    _env_id: str = struct.field(pytree_node=False)

    @property
    def env_id(self) -> Any:
        """The environment's id."""
        return self._env_id

    def to_svg(
        self,
        *,
        color_theme: Literal["light", "dark"] | None = None,
        scale: float | None = None,
    ) -> str:
        """Draws the position, or many of them side by side.

        Args:
            color_theme: makes no difference; the picture suits light and dark pages.
            scale: changes the picture's size.
        """
        del color_theme
        count = self.current_player.size
        batch_axes = self.current_player.ndim
        positions = jax.tree.map(
            lambda leaf: leaf.reshape(count, *leaf.shape[batch_axes:]), self._position
        )
        pictures = [
            self._game.to_svg(jax.tree.map(lambda leaf, i=i: leaf[i], positions))
            for i in range(count)
        ]
        return _side_by_side(pictures, scale or 1.0)

    def save_svg(
        self,
        filename: str | Path,
        *,
        color_theme: Literal["light", "dark"] | None = None,
        scale: float | None = None,
    ) -> None:
        """Writes what `to_svg` returns."""
        Path(filename).write_text(self.to_svg(color_theme=color_theme, scale=scale))


class PgxEnv(pgx.Env):
    """A game of azjax as an environment of pgx.

    As in pgx, the key of `init` decides which player moves first, all actions are legal
    once the game is over, and a step on a finished game pays nothing. The observation
    is that of the player to move, also where the deprecated `player_id` names another.

    In games with chance the keys of `init` and `step` determine the outcomes, and
    `step` needs a key, as in pgx's own: `env.step(state, action, key)`.

    game: what is played.
    id: its name.
    """

    def __init__(self, game: Game, id: str):
        super().__init__()
        self.game = game
        self._id = id

    def _init(self, key: jax.Array) -> PgxState:
        position = self.game.init()
        if self.game.num_outcomes:
            key, chance_key = jax.random.split(key)
            position = _after_chance(self.game, chance_key, position)
        first_player = jax.random.bernoulli(key).astype(jnp.int32)
        # pgx hides its dataclass from type checkers, hence the dictionary.
        fields = {
            "current_player": first_player ^ position.current_player,
            "observation": self.game.observe(position),
            "rewards": jnp.zeros(2),
            "terminated": jnp.bool(False),
            "truncated": jnp.bool(False),
            "legal_action_mask": self.game.legal_action_mask(position),
            "_step_count": jnp.int32(0),
        }
        return PgxState(
            **fields,
            _position=position,
            _first_player=first_player,
            _game=self.game,
            _env_id=self._id,
        )

    def _step(self, state: Any, action: jax.Array, key: jax.Array | None) -> PgxState:
        position = self.game.step(state._position, action)
        if self.game.num_outcomes:
            if key is None:
                raise ValueError(
                    f"{self.game!r} has chance: step(state, action, key) needs a key"
                )
            position = _after_chance(self.game, key, position)
        rewards = self.game.rewards(position)
        return state.replace(
            current_player=state._first_player ^ position.current_player,
            rewards=jnp.where(state._first_player == 0, rewards, rewards[::-1]),
            terminated=position.terminated,
            legal_action_mask=self.game.legal_action_mask(position),
            _position=position,
        )

    def _observe(self, state: Any, player_id: jax.Array) -> jax.Array:
        del player_id
        return self.game.observe(state._position)

    @property
    def id(self) -> Any:
        """The name of the environment."""
        return self._id

    @property
    def version(self) -> str:
        """The version of the rules."""
        return "v0"

    @property
    def num_players(self) -> int:
        """Two."""
        return 2

    @property
    def num_actions(self) -> int:
        """A, the number of actions."""
        return self.game.num_actions

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """(H, W, C)."""
        return self.game.observation_shape


def to_pgx(game: Game, id: str | None = None) -> PgxEnv:
    """Returns a game of azjax as an environment of pgx.

    What pgx does by an environment's name is left out: its own drawings of states
    (`state.to_svg()` draws azjax's) and `save_svg_animation`.

    Args:
        game: what is played.
        id: the environment's name, that of the game by default. `pgx.api_test` accepts
            no other names than pgx's, for example `go_9x9`.
    """
    if not isinstance(game, Game):
        raise ValueError(
            f"game must be a Game, as azjax.games.make returns it: {game!r}"
        )
    return PgxEnv(game, game.name if id is None else id)


def _after_chance(game: Game, rng_key: jax.Array, position: Any) -> Any:
    """Returns a position after an outcome of chance, if it waits for one."""
    batch = jax.tree.map(lambda leaf: leaf[None], position)
    after, _ = after_chance(game, rng_key, batch)
    return jax.tree.map(lambda leaf: leaf[0], after)


def _side_by_side(pictures: Sequence[str], scale: float) -> str:
    """Returns SVG documents of one size as one document."""
    side = re.compile(r'<svg [^>]*?\bwidth="([\d.]+)" height="([\d.]+)"')
    found = side.search(pictures[0])
    if found is None:
        raise ValueError(f"no picture: {pictures[0][:100]}")
    width, height = map(float, found.groups())
    columns = math.ceil(math.sqrt(len(pictures)))
    rows = math.ceil(len(pictures) / columns)
    placed = (
        picture.replace(
            "<svg ", f'<svg x="{i % columns * width}" y="{i // columns * height}" ', 1
        )
        for i, picture in enumerate(pictures)
    )
    size = (columns * width, rows * height)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}"'
            f' width="{scale * size[0]}" height="{scale * size[1]}">',
            *placed,
            "</svg>",
        ]
    )


class _Rules(NamedTuple):
    """What pgx does not say of a game.

    max_moves: no game is longer.
    pieces: letters of the first player's pieces, in the order of pgx's planes; those of
        the second follow in small letters, or are `O`.
    second_plane: the first of the planes with the opponent's pieces.
    turned: the axes that are reversed when the second player looks.
    """

    max_moves: int
    pieces: str = "X"
    second_plane: int = 1
    turned: tuple[int, ...] = ()


# pgx's own limits; Othello: 60 discs with a pass between any two; Hex: a swap.
_RULES = {
    "animal_shogi": _Rules(256, "CEGLH", 5, (0, 1)),
    "chess": _Rules(512, "PNBRQK", 6, (0,)),
    "connect_four": _Rules(42),
    "gardner_chess": _Rules(256, "PNBRQK", 6, (0,)),
    "go_19x19": _Rules(2 * 19 * 19),
    "go_9x9": _Rules(2 * 9 * 9),
    "hex": _Rules(11 * 11 + 1),
    "othello": _Rules(60 + 59),
    "shogi": _Rules(512, "PLNSBRGKTUVWHD", 31, (0, 1)),
    "tic_tac_toe": _Rules(9),
}


@struct.dataclass
class State:
    """A position of a pgx game; 2.9 KB in animal shogi, 4.3 KB in Go 9x9, 16 KB in
    chess, because pgx keeps the legal actions and the game's history in it.

    pgx_state: pgx's, without its observation; player 0 moves first.
    current_player: `[]` int8.
    terminated: `[]` bool.
    """

    pgx_state: Any
    current_player: jax.Array
    terminated: jax.Array


@register
class PgxGame(Game[State]):
    """A two-player, zero-sum game of perfect information without chance as pgx plays
    it.

    Actions have pgx's numbers and are written so. Of a finished game, every action
    counts as legal. A search keeps a state for each node: see `State` for its size.

    id: pgx's name of the game, for example `animal_shogi`.
    """

    name: ClassVar[str] = "pgx"

    def __init__(self, id: str = ""):
        if id not in _RULES:
            raise ValueError(
                f"id must be one of pgx's two-player, zero-sum games of perfect "
                f"information without chance, {', '.join(_RULES)}: {quoted(id)}"
            )
        self.id = id
        self._rules = _RULES[id]
        self._env, first = _load(id)
        shape = jax.eval_shape(self._env.observe, first).shape
        self.observation_shape = (shape[0], shape[1], shape[2])
        self.num_actions = first.legal_action_mask.size
        self.max_moves = self._rules.max_moves
        letters = self._rules.pieces
        # The letters are this game's, not the class's.
        self.pieces = letters + ("O" if letters == "X" else letters.lower())  # pyright: ignore[reportAttributeAccessIssue]

    def init(self) -> State:
        """Returns the first position."""
        return State(
            pgx_state=jax.tree.map(jnp.asarray, _load(self.id)[1]),
            current_player=jnp.int8(0),
            terminated=jnp.bool(False),
        )

    def step(self, state: State, action: jax.Array) -> State:
        """Returns the position after `action`, where pgx's truncation is an end too."""
        action = jnp.asarray(action, jnp.int32)
        before = state.pgx_state
        is_action = (action >= 0) & (action < self.num_actions)
        known = before.replace(legal_action_mask=before.legal_action_mask & is_action)
        after = self._env.step(known, jnp.clip(action, 0, self.num_actions - 1))
        stepped = State(
            pgx_state=after.replace(observation=None),
            current_player=jnp.int8(1) - state.current_player,
            terminated=after.terminated | after.truncated,
        )
        return select(state.terminated, state, stepped)

    def legal_action_mask(self, state: State) -> jax.Array:
        """Returns `[A]` bool; all True once the game is over."""
        return state.pgx_state.legal_action_mask

    def observe(self, state: State) -> jax.Array:
        """Returns pgx's observation as float32."""
        return self._env.observe(state.pgx_state).astype(jnp.float32)

    def rewards(self, state: State) -> jax.Array:
        """Returns `[2]` float32: 1 to the winner, -1 to the loser."""
        return state.pgx_state.rewards

    def board(self, state: State) -> jax.Array:
        """Returns `[H, W]` int8, the pieces that lie on the board, read from pgx's
        observation; pieces in hand are not shown."""
        _, own, start, turned = self._rules
        count = len(own)
        planes = self.observe(state)
        mine = planes[:, :, :count]
        theirs = planes[:, :, start : start + count]
        seen_by_first = jnp.concatenate([mine, theirs], axis=-1)
        seen_by_second = jnp.flip(jnp.concatenate([theirs, mine], axis=-1), turned)
        is_there = jnp.where(state.current_player == 0, seen_by_first, seen_by_second)
        piece = is_there.argmax(axis=-1)
        return jnp.where(is_there.any(axis=-1), piece, -1).astype(jnp.int8)

    def action_to_text(self, state: State, action: int) -> str:
        """Returns pgx's number of the action."""
        return str(action)

    def action_cells(self, state: State, action: int) -> tuple[rendering.Cell, ...]:
        """Returns nothing: what an action does to the board, pgx does not say."""
        return ()

    def to_svg(
        self,
        state: State,
        last_action: int | None = None,
        policies: Mapping[str, np.ndarray] | None = None,
    ) -> str:
        """Returns pgx's drawing, which shows neither the last action nor policies, and
        is not turned."""
        return state.pgx_state.to_svg()


def from_pgx(id: str) -> Game:
    """Returns a game of pgx as a game of azjax, a `PgxGame`.

    `games.make(f"pgx:{id}")` does the same.

    Raises:
        ValueError: pgx has no such game, or it is not for two players, zero-sum, of
            perfect information and without chance.
    """
    return make("pgx", id=id)


@functools.cache
def _load(id: str) -> tuple[Any, Any]:
    """Returns pgx's environment and its first state in NumPy, player 0 to move and
    without an observation, which need not be stored: the state says it all."""
    env: Any = pgx.make(id)  # pyright: ignore[reportArgumentType]
    init = jax.jit(lambda key: env.init(key).replace(observation=None))
    firsts = (jax.device_get(init(jax.random.key(seed))) for seed in range(64))
    return env, next(first for first in firsts if first.current_player == 0)
