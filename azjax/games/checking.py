"""Whether a game keeps the contract of `azjax.games.Game`."""

import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.checking_play import Array, Record, broken_rules, play
from azjax.games.checking_text import check_drawings, check_labels, check_texts
from azjax.games.core import Game, State, select
from azjax.games.symmetry import Symmetry


class ContractError(ValueError):
    """A game breaks the contract.

    violations: what is wrong, where, and what is expected, in plain words.
    """

    def __init__(self, game: Game, violations: Sequence[str]) -> None:
        self.violations = tuple(violations)
        lines = "".join(f"\n- {violation}" for violation in violations)
        super().__init__(
            f"{type(game).__name__} breaks the contract of azjax.games:{lines}"
        )


def check(game: Game, *, num_games: int = 64, seed: int = 0) -> None:
    """Checks that a game keeps the contract of `azjax.games.Game`.

    Looks at the attributes and at the shapes and dtypes of all methods; plays random
    games, with illegal actions tried in each position, steps after the end and the
    image of each game under each symmetry; writes, reads and draws positions.

    What random play does not reach is not checked. That the rules are the right ones,
    only a test of known positions can tell.

    Prints a line that says what was checked.

    Args:
        game: the game.
        num_games: random games.
        seed: of their moves.

    Raises:
        ContractError: the game breaks the contract; the message has all that is wrong.
        ValueError: that is no game, or no number of games.
    """
    if not isinstance(game, Game):
        raise ValueError(f"game must be a Game, made by its class: {game!r}")
    if not _is_size(num_games):
        raise ValueError(f"num_games must be an int >= 1: {num_games!r}")
    rng_key = jax.random.key(seed)
    violations = _collect("attributes", _check_sizes(game))
    if violations:  # nothing else can be checked then
        raise ContractError(game, violations)
    violations += _collect("attributes", _check_name_and_style(game))
    violations += _collect("attributes", _check_overrides(game))
    violations += _collect("options", _check_options(game))
    played: list[Record] = []
    violations += _check_methods(game, num_games, rng_key, played)
    if violations:
        raise ContractError(game, violations)
    positions = sum(int((~record.terminated).sum()) for record in played)
    print(
        f"{game!r} keeps the contract: {num_games} random games, {positions:,} "
        f"positions, symmetries ({len(game.symmetries)}), texts and drawings"
    )


def _collect(part: str, violations: Iterable[str]) -> list[str]:
    """Returns the violations; what is raised on the way to them is one, too."""
    found = []
    try:
        for violation in violations:
            found.append(violation)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if "jax" not in Path(f.filename).parts]
        place = (own or frames)[-1]
        words = str(error).strip().splitlines() or ["without a message"]
        found.append(
            f"{part}: must not raise {type(error).__name__}: {words[0]} "
            f"({Path(place.filename).name}, line {place.lineno}, in {place.name})"
        )
    return found


def _check_sizes(game: Game) -> Iterator[str]:
    for attribute in "num_actions", "max_moves":
        value = getattr(game, attribute, None)
        if not _is_size(value):
            yield f"{attribute}: must be an int >= 1: {value!r}"
    shape = getattr(game, "observation_shape", None)
    if not isinstance(shape, tuple) or len(shape) != 3 or not all(map(_is_size, shape)):
        yield f"observation_shape: must be three ints >= 1, (H, W, C): {shape!r}"
    pieces = game.pieces
    if not isinstance(pieces, str) or not pieces or len(set(pieces)) < len(pieces):
        yield f"pieces: must be a text of different letters: {pieces!r}"


def _check_name_and_style(game: Game) -> Iterator[str]:
    name = getattr(game, "name", None)
    if not isinstance(name, str) or not name or ":" in name:
        yield f"name: must be a text without a colon: {name!r}"
    pieces, drawn = len(game.pieces), len(game.style.pieces)
    uses_style = type(game).to_svg is Game.to_svg
    if uses_style and pieces > drawn:
        yield f"style: must draw the {pieces} kinds of piece in `pieces`: {drawn}"


def _check_overrides(game: Game) -> Iterator[str]:
    """Looks for methods of `Game` that take actions for cells where they are not."""
    height, width, _ = game.observation_shape
    cells = height * width
    if game.num_actions in (cells, cells + 1):
        return
    is_drawn = type(game).to_svg is Game.to_svg
    for name, is_used in (
        ("action_to_text", True),
        ("action_cells", True),
        ("policies_on_board", is_drawn),
    ):
        if is_used and getattr(type(game), name) is getattr(Game, name):
            yield (
                f"{name}: must be overridden: as it stands action a is cell a of "
                f"{cells}, or a pass after them, and the game has {game.num_actions} "
                "actions"
            )


def _check_options(game: Game) -> Iterator[str]:
    parameters = set(inspect.signature(type(game)).parameters)
    if set(game.options) != parameters:
        yield (
            "options: must have the arguments of the constructor, "
            f"{sorted(parameters)}: {sorted(game.options)}"
        )
        return
    twin = type(game)(**game.options)
    if twin != game:
        yield f"options: {twin!r}, made of them, must be equal to {game!r}"
    elif hash(twin) != hash(game):
        yield "__hash__: two games made with the same options must have the same hash"
    for name in "num_actions", "observation_shape", "max_moves":
        value, same = getattr(game, name), getattr(twin, name)
        if value != same:
            yield (
                f"options: the game made of them must have the same {name}: {value} "
                f"became {same}"
            )


def _check_methods(
    game: Game, num_games: int, rng_key: jax.Array, played: list[Record]
) -> list[str]:
    """Returns what is wrong with what the methods return and do; puts the random games
    into `played`."""
    violations = _collect("init", _check_init(game))
    if violations:
        return violations
    state = jax.eval_shape(game.init)
    violations += _collect("step", _check_step(game, state))
    is_playable = not violations
    looks = []
    for name, shape, dtype in (
        ("legal_action_mask", (game.num_actions,), bool),
        ("rewards", (2,), np.float32),
        ("observe", game.observation_shape, np.float32),
        ("board", (None, None), np.int8),
        ("evaluate", (), np.float32),
    ):
        found = _collect(name, _check_look(game, state, name, shape, dtype))
        violations += found
        looks += [] if found else [name]
    symmetries: dict[int, Symmetry] = {}
    violations += _collect("symmetries", _check_symmetries(game, symmetries))
    if is_playable and {"legal_action_mask", "rewards"} <= set(looks):
        violations += _collect(
            "random games",
            _check_games(
                game,
                looks,
                symmetries if "observe" in looks else {},
                num_games,
                rng_key,
                played=played,
            ),
        )
    return violations


def _check_init(game: Game) -> Iterator[str]:
    for name, dtype in ("current_player", np.int8), ("terminated", bool):
        # A field, or a property that computes from fields.
        field = jax.eval_shape(lambda name=name: getattr(game.init(), name, None))
        if field is None:
            yield f"init: the state must have the field {name}"
            return
        if field.shape != () or field.dtype != dtype:
            yield _wrong_type(f"init: {name} of the state", (), dtype, field)
            return
    first, again = game.init(), game.init()
    if not _is_equal(first, again):
        yield "init: must return the same position each time"
    if first.current_player != 0:
        yield f"init: player 0 must move first: {first.current_player}"
    if first.terminated:
        yield "init: the first position must not be the end of the game"


def _check_step(game: Game, state: State) -> Iterator[str]:
    """A state that stays of one type is what makes a loop over steps compile once."""
    action = jax.ShapeDtypeStruct((), np.int32)
    after = jax.eval_shape(game.step, state, action)
    structures = jax.tree.structure(state), jax.tree.structure(after)
    if structures[0] != structures[1]:
        yield (
            "step: the state must keep its structure, or each step is compiled again: "
            f"{structures[0]} became {structures[1]}"
        )
        return
    for (path, old), new in zip(
        jax.tree.leaves_with_path(state), jax.tree.leaves(after), strict=True
    ):
        if _type(old) != _type(new):
            yield (
                f"step: state{jax.tree_util.keystr(path)} must keep its type, or each "
                f"step is compiled again: {_type(old)} became {_type(new)}"
            )
    batched = _check_batched(game.step, state, action)
    yield from _collect("step under jax.vmap", batched)


def _check_look(
    game: Game, state: State, name: str, shape: tuple[int | None, ...], dtype: Any
) -> Iterator[str]:
    method = getattr(game, name)
    found = jax.eval_shape(method, state)
    has_shape = isinstance(found, jax.ShapeDtypeStruct) and (
        len(found.shape) == len(shape)
        and all(b in (None, a) for a, b in zip(found.shape, shape, strict=True))
    )
    if not has_shape or found.dtype != dtype:
        yield _wrong_type(name, shape, dtype, found)
    yield from _collect(f"{name} under jax.vmap", _check_batched(method, state))


def _wrong_type(what: str, shape: tuple[int | None, ...], dtype: Any, found) -> str:
    sizes = ", ".join("any" if size is None else str(size) for size in shape)
    return f"{what}: must be [{sizes}] {np.dtype(dtype).name}: {_type(found)}"


def _type(leaf) -> str:
    """Returns a type as people write it; what is no array is written as it is."""
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return repr(leaf)
    sizes = ", ".join(map(str, leaf.shape))
    return f"[{sizes}] {'weakly typed ' if leaf.weak_type else ''}{leaf.dtype.name}"


def _check_batched(method: Callable, *arguments: Any) -> Iterator[str]:
    batches = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((2, *leaf.shape), leaf.dtype), arguments
    )
    jax.eval_shape(jax.vmap(method), *batches)
    yield from ()


def _check_symmetries(game: Game, good: dict[int, Symmetry]) -> Iterator[str]:
    """Puts into `good` those that can be played, by their place."""
    symmetries = game.symmetries
    if not symmetries:
        yield "symmetries: must begin with the identity; there are none"
    observation = np.random.default_rng(0).random(game.observation_shape, np.float32)
    several = np.stack([[observation, -observation]])
    seen: dict[tuple[int, ...], int] = {}
    for place, symmetry in enumerate(symmetries):
        what = f"symmetries[{place}]"
        array = np.asarray(symmetry.actions)
        actions = tuple(array.tolist())
        is_integer = np.issubdtype(array.dtype, np.integer)
        if not is_integer or sorted(actions) != list(range(game.num_actions)):
            yield (
                f"{what}: `actions` must be a permutation of the ints from 0 to "
                f"{game.num_actions - 1}: {array!r}"
            )
            continue
        if actions in seen:
            yield f"{what}: must differ from symmetries[{seen[actions]}]"
        seen.setdefault(actions, place)
        found = _collect(what, _check_transformation(what, symmetry, several))
        yield from found
        if found:
            continue
        if place:
            good[place] = symmetry
        elif actions != tuple(range(game.num_actions)) or (
            np.any(np.asarray(symmetry.observation(jnp.asarray(several))) != several)
        ):
            yield f"{what}: the first symmetry must be the identity"


def _check_transformation(
    what: str, symmetry: Symmetry, several: Array
) -> Iterator[str]:
    images = np.asarray(symmetry.observation(jnp.asarray(several)))
    single = np.asarray(symmetry.observation(jnp.asarray(several[0, 1])))
    if images.shape != several.shape or images.dtype != several.dtype:
        yield (
            f"{what}: `observation` must keep shape and dtype: {several.shape} "
            f"{several.dtype} became {images.shape} {images.dtype}"
        )
    elif np.any(images[0, 1] != single):
        yield f"{what}: `observation` must map [..., H, W, C], each position alone"


def _check_games(
    game: Game,
    looks: Sequence[str],
    symmetries: Mapping[int, Symmetry],
    num_games: int,
    rng_key: jax.Array,
    *,
    played: list[Record],
) -> Iterator[str]:
    record = play(game, looks, symmetries, num_games, rng_key)
    played.append(record)
    yield from broken_rules(record, game.max_moves)
    yield from _collect("a game alone", _check_single(game, looks, record))
    has_board = "board" in looks and record.findings["board"].holds.all()
    if has_board:
        labels = _collect("labels", check_labels(game))
        yield from labels
        has_board = not labels
    yield from _collect("texts", check_texts(game, record))
    if has_board:
        yield from _collect("drawings", check_drawings(game, record))


def _check_single(game: Game, looks: Sequence[str], record: Record) -> Iterator[str]:
    """Plays the first game again, by itself."""
    alone = _replay(game, looks, record.action[:, 0])
    for name, found in record.first_game.items():
        move = _first_difference(found, alone[name])
        if move is None:
            continue
        where, what = record.where(move, 0), "step" if name == "state" else name
        again = _replay(game, looks, record.action[:, 0])
        if _first_difference(alone[name], again[name]) is not None:
            yield f"{what}: two calls must bring the same; they do not {where}"
        else:
            yield f"{what}: must bring the same alone and under jax.vmap {where}"


def _replay(game: Game, looks: Sequence[str], actions: Array) -> dict[str, Any]:
    """Returns what the methods return in one game, and `state`, leaves `[T, ...]`."""

    def play_move(state: State, action: jax.Array):
        seen = {name: getattr(game, name)(state) for name in looks}
        after = select(state.terminated, state, game.step(state, action))
        return after, seen | {"state": state}

    seen = jax.jit(
        lambda: jax.lax.scan(play_move, game.init(), jnp.asarray(actions))[1]
    )()
    return jax.tree.map(np.asarray, seen)


def _first_difference(tree: Any, other: Any) -> int | None:
    """Returns the first move, an index of all leaves, at which two trees differ."""
    different = [
        ~np.isclose(a, b, equal_nan=True).reshape(len(a), -1).all(axis=1)
        for a, b in zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True)
    ]
    moves = np.flatnonzero(np.any(different, axis=0))
    return int(moves[0]) if moves.size else None


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_equal(tree: Any, other: Any) -> bool:
    pairs = zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)
