"""`check`: tests of the contract of `azjax.games.Game`."""

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax.checks import check_int, is_int
from azjax.games.checking_play import (
    calling,
    check_random_games,
    require,
)
from azjax.games.core import Game


def check(game: Game, *, num_games: int = 64, seed: int = 0) -> None:
    """Checks that a game keeps the contract of `azjax.games.Game`.

    Tests the attributes, and the shapes and dtypes of all methods. Plays random games:
    in each position it tries illegal actions and compares the images under all
    symmetries, and after the end it tries further steps. The first game is played a
    second time without `jax.vmap`, and some of its positions are written, read and
    drawn.

    What random games do not reach is not tested. Whether the rules are those of the
    real game needs tests of known positions.

    Prints one line that says what was tested.

    Args:
        game: the game.
        num_games: number of random games, B.
        seed: seed of the random moves.

    Raises:
        ContractError: the first violation that was found.
        ValueError: `game` is not a `Game`, or `num_games` is not an int >= 1.
    """
    if not isinstance(game, Game):
        raise ValueError(f"game must be a Game, made by its class: {game!r}")
    check_int("num_games", num_games, 1)
    generator = np.random.default_rng(seed)
    _check_attributes(game)
    _check_options(game)
    _check_init(game)
    _check_types(game)
    _check_symmetries(game)
    num_positions = check_random_games(game, num_games, generator)
    print(
        f"{game!r} keeps the contract: {num_games} random games, {num_positions:,} "
        f"positions, symmetries ({len(game.symmetries)}), texts and drawings"
    )


def _is_size(value: object) -> bool:
    return is_int(value) and value >= 1


def _check_attributes(game: Game) -> None:
    for name in "num_actions", "max_moves":
        size = getattr(game, name, None)
        require(_is_size(size), f"{name}: must be an int >= 1: {size!r}")
    shape = getattr(game, "observation_shape", None)
    is_shape = (
        isinstance(shape, tuple) and len(shape) == 3 and all(map(_is_size, shape))
    )
    require(
        is_shape, f"observation_shape: must be three ints >= 1, (H, W, C): {shape!r}"
    )
    pieces, name = game.pieces, getattr(game, "name", None)
    is_text = isinstance(pieces, str) and pieces and len(set(pieces)) == len(pieces)
    require(is_text, f"pieces: must be a text of different letters: {pieces!r}")
    is_name = isinstance(name, str) and name and ":" not in name
    require(is_name, f"name: must be a text without a colon: {name!r}")
    uses_style, drawn = type(game).to_svg is Game.to_svg, len(game.style.pieces)
    require(
        not uses_style or len(pieces) <= drawn,
        f"style: must draw the {len(pieces)} kinds of piece in `pieces`: {drawn}",
    )
    num_cells = game.observation_shape[0] * game.observation_shape[1]
    if game.num_actions not in (num_cells, num_cells + 1):
        drawn = ("policies_on_board",) if uses_style else ()
        for name in ("action_to_text", "action_cells", *drawn):
            require(
                getattr(type(game), name) is not getattr(Game, name),
                f"{name}: must be overridden: the default is for games whose action a "
                f"is cell a of {num_cells}, or a pass after them, and the game has "
                f"{game.num_actions} actions",
            )
    per_cell = game.actions_per_cell
    require(
        type(per_cell) is int and 0 <= per_cell * num_cells <= game.num_actions,
        f"actions_per_cell: must be an int from 0 to {game.num_actions // num_cells}, "
        f"for {game.num_actions} actions and {num_cells} cells: {per_cell!r}",
    )
    most = game.max_legal_actions
    require(
        type(most) is int and 0 <= most <= game.num_actions,
        f"max_legal_actions: must be an int from 0 to {game.num_actions}, the number "
        f"of actions: {most!r}",
    )
    length, longest = game.line_length, max(game.observation_shape[:2])
    require(
        type(length) is int and 0 <= length <= longest,
        f"line_length: must be an int from 0 to {longest}, the longer side: {length!r}",
    )


def _check_options(game: Game) -> None:
    names, found = (
        sorted(inspect.signature(type(game)).parameters),
        sorted(game.options),
    )
    require(
        names == found,
        f"options: must have the arguments of the constructor, {names}: {found}",
    )
    with calling("options"):
        twin = type(game)(**game.options)
    require(twin == game, f"options: {twin!r}, made of them, must be equal to {game!r}")
    require(hash(twin) == hash(game), "__hash__: equal games must have the same hash")
    for name in "num_actions", "observation_shape", "max_moves":
        value, same = getattr(game, name), getattr(twin, name)
        require(
            value == same,
            f"options: the game made of them must have the same {name}: {value} became "
            f"{same}",
        )


def _check_init(game: Game) -> None:
    with calling("init"):
        for name, dtype in ("current_player", np.int8), ("terminated", bool):
            # A field, or a property that computes from fields.
            found = jax.eval_shape(lambda name=name: getattr(game.init(), name, None))
            require(found is not None, f"init: the state must have the field {name}")
            _require_type(f"init: {name} of the state", found, (), dtype)
        first, again = game.init(), game.init()
    is_same = jax.tree.all(jax.tree.map(np.array_equal, first, again))
    require(is_same, "init: must return the same position each time")
    player = first.current_player
    require(player == 0, f"init: player 0 must move first: {player}")
    require(not first.terminated, "init: the first position must not be the end")


def _check_types(game: Game) -> None:
    """Tests the types of all results, for one position and for two."""
    state = jax.eval_shape(game.init)
    action = jax.ShapeDtypeStruct((), np.int32)
    with calling("step"):
        after = jax.eval_shape(game.step, state, action)
    old, new = jax.tree.structure(state), jax.tree.structure(after)
    or_else = "or each step is compiled again"
    require(
        old == new,
        f"step: the state must keep its structure, {or_else}: {old} became {new}",
    )
    for (path, leaf), kept in zip(
        jax.tree.leaves_with_path(state), jax.tree.leaves(after), strict=True
    ):
        require(
            _type(leaf) == _type(kept),
            f"step: state{jax.tree_util.keystr(path)} must keep its type, {or_else}: "
            f"{_type(leaf)} became {_type(kept)}",
        )
    states, actions = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((2, *leaf.shape), leaf.dtype), (state, action)
    )
    with calling("step under jax.vmap"):
        jax.eval_shape(jax.vmap(game.step), states, actions)
    for name, shape, dtype in (
        ("legal_action_mask", (game.num_actions,), bool),
        ("rewards", (2,), np.float32),
        ("observe", game.observation_shape, np.float32),
        ("board", (None, None), np.int8),
        ("evaluate", (), np.float32),
    ):
        method = getattr(game, name)
        with calling(name):
            found = jax.eval_shape(method, state)
        _require_type(name, found, shape, dtype)
        with calling(f"{name} under jax.vmap"):
            jax.eval_shape(jax.vmap(method), states)


def _require_type(
    what: str, found: Any, shape: tuple[int | None, ...], dtype: Any
) -> None:
    is_array = isinstance(found, jax.ShapeDtypeStruct) and found.dtype == dtype
    is_array = is_array and len(found.shape) == len(shape)
    is_array = is_array and all(
        size in (None, real) for size, real in zip(shape, found.shape, strict=True)
    )
    sizes = ", ".join("any" if size is None else str(size) for size in shape)
    expected = f"[{sizes}] {np.dtype(dtype).name}"
    require(is_array, f"{what}: must be {expected}: {_type(found)}")


def _type(leaf: Any) -> str:
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return repr(leaf)
    sizes = ", ".join(map(str, leaf.shape))
    return f"[{sizes}] {'weakly typed ' if leaf.weak_type else ''}{leaf.dtype.name}"


def _check_symmetries(game: Game) -> None:
    require(game.symmetries, "symmetries: must begin with the identity; there are none")
    observation = np.random.default_rng(0).random(game.observation_shape, np.float32)
    several = np.stack([[observation, -observation]])
    unchanged = list(range(game.num_actions))
    seen: dict[tuple[int, ...], int] = {}
    for place, symmetry in enumerate(game.symmetries):
        what, actions = f"symmetries[{place}]", np.asarray(symmetry.actions)
        is_integer = np.issubdtype(actions.dtype, np.integer)
        require(
            is_integer and sorted(actions.tolist()) == unchanged,
            f"{what}: `actions` must be a permutation of the ints from 0 to "
            f"{game.num_actions - 1}: {actions!r}",
        )
        with calling(what):
            images = np.asarray(symmetry.observation(jnp.asarray(several)))
            single = np.asarray(symmetry.observation(jnp.asarray(several[0, 1])))
        require(
            images.shape == several.shape and images.dtype == several.dtype,
            f"{what}: `observation` must keep shape and dtype: {several.shape} "
            f"{several.dtype} became {images.shape} {images.dtype}",
        )
        require(
            np.array_equal(images[0, 1], single),
            f"{what}: `observation` must map [..., H, W, C], each position alone",
        )
        is_identity = actions.tolist() == unchanged and np.array_equal(images, several)
        require(place or is_identity, f"{what}: must be the identity")
        other = seen.setdefault(tuple(actions.tolist()), place)
        require(other == place, f"{what}: must differ from symmetries[{other}]")
