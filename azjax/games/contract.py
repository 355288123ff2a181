"""`check`: tests of the contract of `azjax.games.Game`."""

import contextlib
import copy
import functools
import inspect
import linecache
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.core import Game, State, compiled_mask, select
from azjax.settings import check_int, is_int

NUM_READ = 3  # actions of a position whose texts are read back
# By the error of JAX, what to write where Python needs the value of a traced array.
_INSTEAD: dict[type[Exception], str] = {
    jax.errors.TracerBoolConversionError: "jnp.where or jax.lax.cond for `if`, "
    "jax.lax.while_loop for `while`, and &, | and ~ for `and`, `or` and `not`",
    jax.errors.TracerIntegerConversionError: "jnp.asarray(table)[i] for table[i], and "
    "jax.lax.fori_loop for range()",
    jax.errors.TracerArrayConversionError: "jax.numpy for NumPy, and "
    "jnp.asarray(table)[i] for table[i]",
    jax.errors.NonConcreteBooleanIndexError: "jnp.where(mask, a, b) for a[mask]",
    jax.errors.ConcretizationTypeError: ".astype(...) for int() and float(), and sizes "
    "that are the same in all positions",
}


class ContractError(ValueError):
    """A game breaks the contract; the message names the rule and the moves."""


def require(condition: object, message: str) -> None:
    """Raises a `ContractError` unless the condition holds."""
    if not condition:
        raise ContractError(message)


@contextlib.contextmanager
def calling(game: Game, name: str) -> Iterator[None]:
    """A context in which an error of the game's own code is a violation, reported with
    the last line of the game's file."""
    try:
        yield
    except ContractError:
        raise
    except Exception as error:
        place = ""
        modules = {kind.__module__ for kind in type(game).__mro__ if kind is not Game}
        for frame, number in traceback.walk_tb(error.__traceback__):
            if frame.f_globals.get("__name__") in modules:
                file = frame.f_code.co_filename
                line = linecache.getline(file, number).strip()
                place = f" ({Path(file).name}, line {number}: {line})"
        text = (str(error).strip() or "without a message").splitlines()[0]
        message = f"must not raise {type(error).__name__}: {text}"
        if instead := _INSTEAD.get(type(error)):
            message = (
                "Python cannot know a value of the position while JAX traces; use "
            )
            message += instead
        raise ContractError(f"{name}: {message}{place}") from error


def check(game: Game, *, num_games: int = 64, seed: int = 0) -> None:
    """Checks that a game keeps the contract of `azjax.games.Game`.

    Tests the attributes, and the shapes and dtypes of all methods. Plays random games:
    in each position it tries illegal actions and compares the images under all
    symmetries, and after the end it tries further steps. Where the position waits for
    chance, each possible outcome is equally likely, so that the rare ones are tested
    too. The first game is played a second time without `jax.vmap`, and some of its
    positions are written, read and drawn.

    What random games do not reach is not tested. Whether the rules are those of the
    real game needs tests of known positions.

    Prints one line that says what was tested.

    Args:
        game: the game.
        num_games: number of random games, B.
        seed: seed of the random moves and outcomes of chance.

    Raises:
        ContractError: the first violation that was found.
        ValueError: `game` is not a `Game`, or `num_games` is not an int >= 1.

    Example:
        >>> games.check(games.make("tic_tac_toe"), num_games=4)
        tic_tac_toe keeps the contract: 4 random games, ... positions, symmetries (8)...
    """
    if not isinstance(game, Game):
        raise ValueError(f"game must be a Game, made by its class: {game!r}")
    check_int("num_games", num_games, 1)
    check_types(game)
    with calling(game, "init"):
        first, again = game.init(), game.init()
    is_same = jax.tree.all(jax.tree.map(np.array_equal, first, again))
    require(is_same, "init: must return the same position each time")
    player = first.current_player
    require(player == 0, f"init: player 0 must move first: {player}")
    require(not first.terminated, "init: the first position must not be the end")
    if game.num_outcomes:
        outcomes = jnp.arange(game.num_outcomes)
        after_each = jax.vmap(functools.partial(game.chance_step, first))
        with calling(game, "chance_step"):
            ends = jax.jit(lambda: after_each(outcomes).terminated)()
            is_possible = np.asarray(game.chance(first)) > 0
            ending = np.flatnonzero(is_possible & ends).tolist()
        require(
            not ending,
            f"chance_step: no outcome of the first position may end the game: {ending}",
        )
    _check_symmetries(game)
    num_positions, num_extra, num_drawn = _check_random_games(
        game, num_games, np.random.default_rng(seed)
    )
    chance = f"{num_drawn:,} outcomes of chance, " * bool(game.num_outcomes)
    turns = f"extra turns after {num_extra:,} of them, " * game.has_extra_turns
    print(
        f"{game!r} keeps the contract: {num_games} random games, {num_positions:,} "
        f"positions, {turns}{chance}symmetries ({len(game.symmetries)}), texts and "
        "drawings"
    )


def check_types(game: Game) -> None:
    """Checks the attributes and options of a game, and the types that its methods
    return; compiles nothing.

    Raises:
        ContractError: the first violation.
    """
    _check_attributes(game)
    # An equal game is made of the options.
    names = sorted(inspect.signature(type(game)).parameters)
    found = sorted(game.options)
    require(
        names == found,
        f"options: must have the arguments of the constructor, {names}: {found}",
    )
    with calling(game, "options"):
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
    # The state is a pytree of arrays.
    states: list[Any] = []
    with calling(game, "init"):
        jax.eval_shape(lambda: states.append(game.init()))
    for path, leaf in jax.tree.leaves_with_path(states[0]):
        require(
            leaf is not states[0],
            "init: the state must be a pytree of arrays; the decorator "
            f"@jax.tree_util.register_dataclass is missing: {type(leaf)}",
        )
        require(
            isinstance(leaf, jax.Array | np.ndarray | np.generic),
            f"init: state{jax.tree_util.keystr(path)} must be an array, such as "
            f"jnp.int8(0): {leaf!r}",
        )
    with calling(game, "init"):
        for name, dtype in ("current_player", np.int8), ("terminated", bool):
            # A field, or a property that computes from fields.
            field = jax.eval_shape(lambda name=name: getattr(game.init(), name, None))
            require(field is not None, f"init: the state must have the field {name}")
            _require_type(f"init: {name} of the state", field, (), dtype)
    # A step keeps the types of the state.
    state, action = jax.eval_shape(game.init), jax.ShapeDtypeStruct((), np.int32)
    batch, actions = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((2, *leaf.shape), leaf.dtype), (state, action)
    )
    or_else = "or each step is compiled again"
    for name in ("step", "chance_step") if game.num_outcomes else ("step",):
        method = getattr(game, name)
        with calling(game, name):
            after = jax.eval_shape(method, state, action)
        old, new = jax.tree.structure(state), jax.tree.structure(after)
        require(
            old == new,
            f"{name}: the state must keep its structure, {or_else}: {old} became {new}",
        )
        for (path, leaf), kept in zip(
            jax.tree.leaves_with_path(state), jax.tree.leaves(after), strict=True
        ):
            require(
                _type(leaf) == _type(kept),
                f"{name}: state{jax.tree_util.keystr(path)} must keep its type, "
                f"{or_else}: {_type(leaf)} became {_type(kept)}",
            )
        with calling(game, f"{name} under jax.vmap"):
            jax.eval_shape(jax.vmap(method), batch, actions)
    # The results have their types, and the methods can be vmapped.
    if not game.num_outcomes:
        with calling(game, "chance"):
            probabilities = jax.eval_shape(game.chance, state)
        require(
            probabilities is None,
            "num_outcomes: must be K, the number of outcomes that `chance` has the "
            f"probabilities of, {_type(probabilities)}: 0",
        )
    num_outcomes = (game.num_outcomes,)
    for name, shape, dtype in (
        *([("chance", num_outcomes, np.float32)] if game.num_outcomes else []),
        ("legal_action_mask", (game.num_actions,), bool),
        ("rewards", (2,), np.float32),
        ("observe", game.observation_shape, np.float32),
        ("board", (None, None), np.int8),
        ("evaluate", (), np.float32),
    ):
        method = getattr(game, name)
        with calling(game, name):
            result = jax.eval_shape(method, state)
        _require_type(name, result, shape, dtype)
        with calling(game, f"{name} under jax.vmap"):
            jax.eval_shape(jax.vmap(method), batch)


def _check_attributes(game: Game) -> None:
    def is_size(value: object) -> bool:
        return is_int(value) and value >= 1

    for name in "num_actions", "max_moves":
        size = getattr(game, name, None)
        require(is_size(size), f"{name}: must be an int >= 1: {size!r}")
    shape = getattr(game, "observation_shape", None)
    require(
        isinstance(shape, tuple) and len(shape) == 3 and all(map(is_size, shape)),
        f"observation_shape: must be three ints >= 1, (H, W, C): {shape!r}",
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
    number, most = game.num_outcomes, np.iinfo(np.int16).max
    require(
        is_int(number) and 0 <= number <= most,
        f"num_outcomes: must be an int from 0 to {most}: {number!r}",
    )
    extra = game.has_extra_turns
    require(type(extra) is bool, f"has_extra_turns: must be a bool: {extra!r}")
    per_cell = f"for {game.num_actions} actions and {num_cells} cells"
    for name, most, why in (
        ("actions_per_cell", game.num_actions // num_cells, per_cell),
        ("max_legal_actions", game.num_actions, "the number of actions"),
        ("line_length", max(game.observation_shape[:2]), "the longer side"),
    ):
        value = getattr(game, name)
        require(
            type(value) is int and 0 <= value <= most,
            f"{name}: must be an int from 0 to {most}, {why}: {value!r}",
        )


def _require_type(
    what: str, found: Any, shape: tuple[int | None, ...], dtype: Any
) -> None:
    is_array, name = isinstance(found, jax.ShapeDtypeStruct), np.dtype(dtype).name
    has_shape = is_array and (
        len(found.shape) == len(shape)
        and all(map(lambda size, real: size in (None, real), shape, found.shape))
    )
    has_dtype = is_array and found.dtype == dtype
    sizes = ", ".join("any" if size is None else str(size) for size in shape)
    cast = f", as by .astype({name!r})" if has_shape and not has_dtype else ""
    require(
        has_shape and has_dtype,
        f"{what}: must be [{sizes}] {name}{cast}: {_type(found)}",
    )


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
        with calling(game, what):
            images = np.asarray(symmetry.observation(jnp.array(several)))
            single = np.asarray(symmetry.observation(jnp.array(several[0, 1])))
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


def _check_random_games(
    game: Game, num_games: int, generator: np.random.Generator
) -> tuple[int, int, int]:
    """Plays B random games to their end and one step further; returns the number of
    positions in which a player is to move, of those after which the same player moves
    again, and of positions that wait for chance."""

    @jax.jit
    def call_alone(state: State, move: jax.Array) -> dict[str, Any]:
        after = game.step(state, move)
        if game.num_outcomes:
            outcome = jnp.maximum(move - game.num_actions, 0)
            after_outcome = game.chance_step(state, outcome)
            after = select(move >= game.num_actions, after_outcome, after)
        return _look(game, state) | {"step": select(state.terminated, state, after)}

    examine_all = jax.jit(jax.vmap(functools.partial(_examine, game)))
    states = jax.tree.map(
        lambda leaf: np.broadcast_to(
            leaf, (num_games, len(game.symmetries), *np.shape(leaf))
        ),
        game.init(),
    )
    shown = copy.copy(game)  # what texts and drawings call is compiled once
    mask = functools.partial(compiled_mask, game)
    vars(shown).update(
        _original=game, board=jax.jit(game.board), legal_action_mask=mask
    )
    history: list[np.ndarray] = []
    num_positions, num_extra, num_drawn, first_was_over = 0, 0, 0, False
    num_moves = np.zeros(num_games, int)  # of players, in each game
    num_kinds = game.num_actions + game.num_outcomes
    movers: set[int] = set()

    def agree(array: Any, other: Any) -> bool:
        # Floats are equal up to rounding.
        is_float = np.issubdtype(np.asarray(array).dtype, np.floating)
        return bool((np.allclose if is_float else np.array_equal)(array, other))

    def where(index: int) -> str:
        moves = [int(move[index]) for move in history]
        return f"(game {index} after {len(moves)} moves, {moves})"

    while True:
        noise = generator.random((num_games, num_kinds), np.float32)
        seen, rules = jax.device_get(examine_all(states, noise))
        is_over = states.terminated[:, 0]
        # Rules of the turns first: who does not keep them breaks others as well.
        for rule, holds in sorted(
            rules.items(), key=lambda item: not re.search("turns|_player", item[0])
        ):
            failed = np.flatnonzero(~holds)
            if failed.size:
                raise ContractError(f"{rule} {where(failed[0])}")
        state = jax.tree.map(lambda leaf: leaf[0, 0], states)
        with calling(game, "a position alone"):
            alone = call_alone(state, seen["move"][0])
        for name, found in alone.items():
            batched = jax.tree.map(lambda leaf: leaf[0, 0], seen[name])
            require(
                jax.tree.all(jax.tree.map(agree, found, batched)),
                f"{name}: must return the same alone and under jax.vmap, and each time "
                f"{where(0)}",
            )
        # The beginning, the positions after 1, 2, 4, ... moves, and the end.
        is_shown = is_over[0] or num_moves[0] & (num_moves[0] - 1) == 0
        if is_shown and not first_was_over:
            moves = [int(move[0]) for move in reversed(history)]
            last_action = next((m for m in moves if m < game.num_actions), None)
            try:
                _check_texts_and_drawings(shown, state, last_action)
            except ContractError as error:
                raise ContractError(f"{error} {where(0)}") from error.__cause__
        waits = seen["move"] >= game.num_actions
        is_to_move = ~is_over & ~waits
        movers |= set(states.current_player[is_to_move, 0].tolist())
        if is_over.all():
            idle = {0, 1} - movers if num_positions > num_games else ()
            for player in idle:
                raise ContractError(f"step: player {player} never moved in any game")
            return num_positions, num_extra, num_drawn
        if (num_moves[is_to_move] >= game.max_moves).any():
            place = where(int(np.argmax(is_to_move & (num_moves >= game.max_moves))))
            # A bound of steps: a position may wait for chance again and again.
            for _ in range(20 * game.max_moves):
                if states.terminated.all():
                    break
                noise = generator.random((num_games, num_kinds), np.float32)
                seen = jax.device_get(examine_all(states, noise))[0]
                num_moves += ~states.terminated[:, 0] & (
                    seen["move"] < game.num_actions
                )
                states = seen["step"]
            longest = num_moves.max()
            took = "up to" if states.terminated.all() else "more than"
            raise ContractError(
                f"max_moves: games must be over after {game.max_moves} moves, and "
                f"random games took {took} {longest}; set it to the length of the "
                f"longest possible game, or end long games in `step` {place}"
            )
        num_moves += is_to_move
        num_positions += int(is_to_move.sum())
        num_drawn += int((~is_over & waits).sum())
        first_was_over = is_over[0]
        after = seen["step"]
        is_same = after.current_player[:, 0] == states.current_player[:, 0]
        num_extra += int((is_same & is_to_move & ~after.terminated[:, 0]).sum())
        states = after
        history.append(seen["move"])


def _look(game: Game, state: State) -> dict[str, Any]:
    names = ("legal_action_mask", "rewards", "observe", "board", "evaluate")
    names += ("chance",) * bool(game.num_outcomes)
    return {name: getattr(game, name)(state) for name in names}


def _examine(
    game: Game, states: State, noise: jax.Array
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tests a position, its images and some steps from it.

    Args:
        game: the game.
        states: leaves `[S, ...]`; the position and its images under the symmetries.
        noise: `[A + K]`; the legal action with the highest number is played, or the
            possible outcome of chance with the highest number is drawn.

    Returns:
        What the methods return, by name, with the next states as `step` and the chosen
        `move`, an action or A + k; and by the texts of the rules, whether they hold.
    """
    seen = jax.vmap(functools.partial(_look, game))(states)
    state = jax.tree.map(lambda leaf: leaf[0], states)
    legal, rewards, board, observation = (
        seen[name][0] for name in ("legal_action_mask", "rewards", "board", "observe")
    )
    is_over, player = state.terminated, state.current_player
    most, last = game.max_legal_actions or game.num_actions, len(game.pieces) - 1
    waits, probabilities, rules = jnp.bool(False), jnp.zeros(0), {}
    if game.num_outcomes:
        probabilities = seen["chance"][0]
        waits = (probabilities > 0).any() & ~is_over
        is_none = (probabilities == 0).all()
        rules = {
            "chance: the probabilities must be from 0 to 1": (
                (probabilities >= 0) & (probabilities <= 1)
            ).all(),
            "chance: the probabilities must sum to 1, or all be 0 where a player is to "
            "move": is_none | (jnp.abs(probabilities.sum() - 1) < 1e-5),
            "chance: must be zeros once the game is over": ~is_over | is_none,
        }
    rules |= {
        "legal_action_mask: an action must be legal until the game is over": is_over
        | waits
        | legal.any(),
        "legal_action_mask: no more actions may be legal than `max_legal_actions`, "
        f"{most}": waits | (legal.sum() <= most),
        "rewards: must be zeros until the game is over": is_over | (rewards == 0).all(),
        "rewards: must sum to zero": jnp.abs(rewards.sum()) < 1e-6,
        "rewards: must be between -1 and 1": (jnp.abs(rewards) <= 1).all(),
        "observe: the values must be finite": jnp.isfinite(observation).all(),
        f"board: must be -1 where a cell is empty, else 0 to {last}, a place in "
        "`pieces`": ((board >= -1) & (board <= last)).all(),
    }
    # The image of a position is the position after the images of the moves.
    for place, symmetry in enumerate(game.symmetries):
        image, name = symmetry.observation(observation), f"symmetries[{place}]:"
        is_seen = jnp.isclose(seen["observe"][place], image, equal_nan=True).all()
        is_legal = seen["legal_action_mask"][place] == legal[symmetry.actions]
        has_end = (seen["rewards"][place] == rewards).all()
        for array in states.terminated, states.current_player:
            has_end &= array[place] == array[0]
        rules |= {
            f"{name} `observation(observe(state))` must be `observe(image)`": is_seen,
            f"{name} `legal_action_mask(state)[actions]` must be "
            "`legal_action_mask(image)`": waits | is_legal.all(),
            f"{name} the image must have the same player, end and rewards": has_end,
        }
        if game.num_outcomes:
            rules[f"{name} `chance(image)` must be `chance(state)`"] = jnp.isclose(
                seen["chance"][place], probabilities
            ).all()
    # A legal action is played. An illegal one, -1 and A are tried; so is -1 in place of
    # an illegal one if all are legal.
    noise, noise_of_chance = jnp.split(noise, [game.num_actions])
    move = action = jnp.where(legal, noise, -1).argmax()
    illegal = jnp.where(legal.all(), -1, jnp.where(legal, -1, noise).argmax())
    tries = jnp.stack([illegal, -1, game.num_actions])
    images = np.stack([np.argsort(symmetry.actions) for symmetry in game.symmetries])
    # One call of `step` for the moves and the tries: it takes longest to compile.
    repeated = jax.tree.map(
        lambda leaf: jnp.concatenate([leaf, leaf[np.zeros(3, int)]]), states
    )
    actions = jnp.concatenate([jnp.asarray(images)[:, action], tries])
    after = jax.vmap(game.step)(repeated, actions.astype(jnp.int32))
    next_states = jax.tree.map(lambda leaf: leaf[:-3], after)
    tried = jax.tree.map(lambda leaf: leaf[-3:], after)
    if game.num_outcomes:
        outcome = jnp.where(probabilities > 0, noise_of_chance, -1).argmax()
        drawn = jax.vmap(game.chance_step, (0, None))(states, outcome.astype(jnp.int32))
        next_states = jax.vmap(functools.partial(select, waits))(drawn, next_states)
        move = jnp.where(waits, game.num_actions + outcome, action)
        drawn = jax.tree.map(lambda leaf: leaf[0], drawn)
        waits_again = (jnp.asarray(game.chance(drawn)) > 0).any()
        rules["chance_step: the position after an outcome must not wait for chance"] = (
            ~waits | drawn.terminated | ~waits_again
        )
        is_possible = (probabilities > 0) & (np.arange(game.num_outcomes) != outcome)
        another = jnp.where(is_possible, noise_of_chance, -1).argmax()
        other = game.chance_step(state, another.astype(jnp.int32))
        allows_same, looks_same = (
            (look(drawn) == look(other)).all()
            for look in (game.legal_action_mask, game.observe)
        )
        goes_on = waits & is_possible.any() & ~drawn.terminated & ~other.terminated
        rules["observe: must differ after outcomes with different legal actions"] = (
            ~goes_on | allows_same | ~looks_same
        )
    next_state = jax.tree.map(lambda leaf: leaf[0], next_states)

    def is_same(other: State) -> jax.Array:
        same = jax.tree.map(lambda old, new: (old == new).all(), state, other)
        return jnp.stack(jax.tree.leaves(same)).all()

    next_player = next_state.current_player
    takes_turns = is_over | (next_player == 1 - player)
    any_turns = game.has_extra_turns or game.num_outcomes > 0
    if any_turns:
        takes_turns = (next_player == 0) | (next_player == 1)
    stays = ~is_over | is_same(next_state) & jax.vmap(is_same)(tried).all()
    rules |= {
        "step: `current_player` must be 0 or 1"
        if any_turns
        else "step: the players must take turns, in the last step too, unless "
        "`has_extra_turns` is True": takes_turns,
        "step: nothing may change once the game is over": stays,
    }
    # Where the position waits for chance, no action is illegal.
    ends = is_over | waits | tried.terminated
    loss = jnp.where(player == 0, 1, -1) * jnp.array([-1.0, 1.0])
    is_loss = (jax.vmap(game.rewards)(tried) == loss).all(axis=1)
    is_loss = is_over | waits | ~tried.terminated | is_loss
    for part, what in (0, "an illegal action"), (slice(1, 3), "-1 or num_actions"):
        rules[f"step: {what} must end the game"] = ends[part].all()
        rules[f"step: {what} must be a loss for its player"] = is_loss[part].all()
    # `next_state` itself has been tested for changes after the end.
    next_states = jax.vmap(select)(states.terminated, states, next_states)
    return seen | {"step": next_states, "move": move}, rules


def _check_texts_and_drawings(
    game: Game, state: State, last_action: int | None
) -> None:
    height, width = game.board(state).shape
    columns, rows = list(game.column_labels), list(game.row_labels)
    require(len(columns) == width, f"column_labels: must be {width}: {columns}")
    require(len(rows) in (0, height), f"row_labels: must be {height} or none: {rows}")
    probabilities = np.asarray(game.chance(state) if game.num_outcomes else ())
    possible = np.flatnonzero(probabilities).tolist()
    with calling(game, "drawings"):
        cells = () if last_action is None else game.last_cells(state, last_action)
        require(
            all(0 <= row < height and 0 <= column < width for row, column in cells),
            f"last_cells: must be on the board, {(height, width)}: {cells}",
        )
        text = game.to_text(state, last_action)
        require(isinstance(text, str), f"to_text: must return a text: {text!r}")
        policy = np.full(game.num_actions, 1 / game.num_actions, np.float32)
        policies = {} if possible else {"uniform": policy}
        svg = game.to_svg(state, last_action, policies=policies)
        is_svg = isinstance(svg, str) and svg.startswith("<svg")
        require(is_svg, f"to_svg: must return an SVG document: {svg!r}")
    if state.terminated:
        with calling(game, "result_text"):
            text = game.result_text(state)
        require(isinstance(text, str), f"result_text: must return a text: {text!r}")
        return
    outcomes: dict[str, int] = {}
    for outcome in possible:
        with calling(game, "outcome_to_text"):
            text = game.outcome_to_text(state, outcome)
        is_text = isinstance(text, str) and text.strip()
        require(is_text, f"outcome_to_text: must return a text for {outcome}: {text!r}")
        require(
            not re.match(r"\d+\.", text.strip()),
            f"outcome_to_text: must not begin like the number of a move: {text!r}",
        )
        other = outcomes.setdefault("_".join(text.lower().split()), outcome)
        require(
            other == outcome,
            "outcome_to_text: outcomes must have different texts, regardless of case; "
            f"{other} and {outcome} have {text!r}",
        )
    if possible:
        return
    with calling(game, "texts"):
        legal = np.flatnonzero(game.legal_action_mask(state)).tolist()
        actions: dict[str, int] = {}
        for action in legal:
            text = game.action_to_text(state, action)
            is_word = isinstance(text, str) and text.split() == [text]
            require(
                is_word, f"action_to_text: must return a word for {action}: {text!r}"
            )
            other = actions.setdefault(text.lower(), action)
            require(
                other == action,
                "action_to_text: legal actions must have different texts, regardless "
                f"of case; {other} and {action} have {text!r}",
            )
        for action in legal[:: max(1, len(legal) // NUM_READ)][:NUM_READ]:
            text = game.action_to_text(state, action)
            for written in text, f" {text.upper()}\n":
                found = game.text_to_action(state, written)
                require(
                    found == action,
                    f"text_to_action: must read {written!r} as {action}: {found!r}",
                )
        try:
            found = game.text_to_action(state, "no action")
        except ValueError:
            return
        raise ContractError(
            f"text_to_action: must refuse 'no action' by a ValueError: {found!r}"
        )
