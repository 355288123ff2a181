"""Each violation of the contract is detected and explained."""

import dataclasses
import functools
import importlib.util
import re
import sys
import types
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

import azjax
from azjax.games import ContractError, Game, Symmetry, TicTacToe, check, core, registry
from azjax.games.symmetry import board_symmetry, identity

README = Path(azjax.games.__file__ or "").parent / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


class Plain(TicTacToe):
    """Tic-tac-toe without symmetries, which take time to compile."""

    symmetries = Game.symmetries


def assert_found(game_class, pattern):
    """Asserts that the message of the violation begins with the pattern."""
    with pytest.raises(ContractError) as error:
        check(game_class(), num_games=64)
    assert re.match(pattern, str(error.value)), str(error.value)


# Attributes, the constructor and the types of results.


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("num_actions", 0),
        ("num_actions", 9.0),
        ("num_actions", True),
        ("actions_per_cell", 2),
        ("actions_per_cell", -1),
        ("actions_per_cell", 1.0),
        ("max_legal_actions", -1),
        ("max_legal_actions", 10),
        ("max_legal_actions", 9.0),
        ("line_length", 4),
        ("line_length", -1),
        ("line_length", 3.0),
        ("max_moves", None),
        ("max_moves", -1),
        ("observation_shape", (3, 3)),
        ("observation_shape", [3, 3, 2]),
        ("observation_shape", (3, 3, 0)),
        ("pieces", ""),
        ("pieces", "XX"),
    ],
)
def test_a_wrong_attribute_is_named_with_its_value(attribute, value):
    broken = type("Broken", (Plain,), {attribute: value})
    assert_found(broken, f"{attribute}: must be .*: {re.escape(repr(value))}$")


@pytest.mark.parametrize("name", ["", "tic:tac", 3])
def test_a_wrong_name_is_found(name):
    broken = type("Broken", (Plain,), {"name": name})
    assert_found(broken, f"name: must be a text without a colon: {name!r}")


def test_pieces_without_a_style_are_found():
    broken = type("Broken", (Plain,), {"pieces": "XO#"})
    assert_found(broken, "style: must draw the 3 kinds .*: 2$")


class TooManyMoves(Plain):
    max_legal_actions = 8


def test_more_legal_actions_than_declared_are_found():
    assert_found(TooManyMoves, "legal_action_mask: no more actions .*`, 8 ")


class LosesAnOption(Plain):
    def __init__(self, size: int = 3):
        self.size = size


class ForgetsAnOption(LosesAnOption):
    max_moves = property(lambda self: 3 * self.size)
    options = property(lambda self: {"size": 4})

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


class HasAnotherHash(Plain):
    def __eq__(self, other):
        return True

    def __hash__(self):
        return id(self)


class DiffersFromItsTwin(Plain):
    def __eq__(self, other):
        return self is other

    __hash__ = Plain.__hash__


def test_an_option_that_is_not_listed_is_found():
    assert_found(LosesAnOption, r"options: must have .* \['size'\]: \[\]")


def test_options_that_make_another_game_are_found():
    pattern = "options: .* must have the same max_moves: 9 became 12"
    assert_found(ForgetsAnOption, pattern)


def test_equal_games_with_different_hashes_are_found():
    assert_found(HasAnotherHash, "__hash__: equal games must have the same hash")


def test_games_with_the_same_options_that_are_not_equal_are_found():
    assert_found(DiffersFromItsTwin, "options: .* must be equal to")


def first_state(**changes):
    """Returns a game whose initial state is changed."""

    def init(self):
        return dataclasses.replace(
            Plain.init(self), **{k: v() for k, v in changes.items()}
        )

    return type("Broken", (Plain,), {"init": init})


@pytest.mark.parametrize(
    ("changes", "pattern"),
    [
        (
            {"current_player": lambda: jnp.int32(0)},
            r"init: current_player of the state: must be \[\] int8: \[\] int32",
        ),
        (
            {"terminated": lambda: jnp.zeros(2, bool)},
            r"init: terminated of the state: must be \[\] bool: \[2\] bool",
        ),
        (
            {"current_player": lambda: jnp.int8(1)},
            "init: player 0 must move first: 1",
        ),
        (
            {"terminated": lambda: jnp.bool(True)},
            "init: the first position must not be the end",
        ),
        (
            {"outcome": lambda: jnp.int8(np.random.default_rng().integers(100))},
            "init: must return the same position each time",
        ),
    ],
)
def test_a_wrong_initial_state_is_found(changes, pattern):
    assert_found(first_state(**changes), pattern)


@struct.dataclass
class WithoutFields:
    current_player: jax.Array


def test_a_state_without_a_field_is_found():
    broken = type("Broken", (Plain,), {"init": lambda self: WithoutFields(jnp.int8(0))})
    assert_found(broken, "init: the state must have the field terminated")


def later_state(change):
    def step(self, state, action):
        return change(Plain.step(self, state, action))

    return type("Broken", (Plain,), {"step": step})


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        (
            lambda state: dataclasses.replace(
                state, outcome=state.outcome.astype(jnp.int32)
            ),
            r"step: state\.outcome must keep .*: \[\] int8 became \[\] int32",
        ),
        (
            lambda state: dataclasses.replace(state, outcome=jnp.zeros(3, jnp.int8)),
            r"step: state\.outcome must keep .*: \[\] int8 became \[3\] int8",
        ),
        (
            lambda state: dataclasses.replace(state, stones=state.stones[0]),
            "step: the state must keep its structure, or each step is compiled again",
        ),
        (
            lambda state: dataclasses.replace(
                state, outcome=jnp.int8(bool(state.terminated))
            ),
            "step: must not raise TracerBoolConversionError: ",
        ),
    ],
)
def test_a_step_that_returns_another_type_is_found(change, pattern):
    assert_found(later_state(change), pattern)


def test_a_state_that_becomes_strongly_typed_is_found():
    def init(self):
        return dataclasses.replace(Plain.init(self), outcome=jnp.asarray(0))

    def step(self, state, action):
        return dataclasses.replace(
            Plain.step(self, state, action), outcome=jnp.int32(0)
        )

    broken = type("Broken", (Plain,), {"init": init, "step": step})
    assert_found(broken, r".*\[\] weakly typed int32 became \[\] int32")


@pytest.mark.parametrize(
    ("method", "result", "pattern"),
    [
        ("legal_action_mask", jnp.ones(8, bool), r"\[9\] bool: \[8\] bool"),
        ("legal_action_mask", jnp.ones(9), r"\[9\] bool: \[9\] float32"),
        ("observe", jnp.ones((3, 3)), r"\[3, 3, 2\] float32: \[3, 3\] float32"),
        ("observe", jnp.ones((3, 3, 2), int), r".*float32: \[3, 3, 2\] int32"),
        ("board", jnp.ones(9, jnp.int8), r"\[any, any\] int8: \[9\] int8"),
        ("board", None, r"\[any, any\] int8: None"),
    ],
)
def test_a_method_that_returns_another_type_is_found(method, result, pattern):
    broken = type("Broken", (Plain,), {method: lambda self, state: result})
    assert_found(broken, f"{method}: must be {pattern}$")


@pytest.mark.parametrize("method", ["legal_action_mask", "observe", "board"])
def test_a_method_that_raises_is_found(method):
    def fail(self, state):
        raise KeyError("a mistake")

    broken = type("Broken", (Plain,), {method: fail})
    assert_found(broken, f"{method}: must not raise KeyError: 'a mistake'$")


def test_a_method_that_cannot_be_vmapped_is_found():
    def observe(self, state):
        shape = jax.ShapeDtypeStruct((3, 3, 2), np.float32)
        return jax.pure_callback(lambda _: np.zeros((3, 3, 2)), shape, state.outcome)

    broken = type("Broken", (Plain,), {"observe": observe})
    assert_found(broken, "observe under jax.vmap: must not raise NotImpl")


def with_symmetries(*symmetries):
    return type("Broken", (Plain,), {"symmetries": symmetries})


def transform(observation_of, actions=np.arange(9)[::-1]):  # noqa: B008
    return Symmetry(observation_of, actions)


@pytest.mark.parametrize(
    ("symmetries", "pattern"),
    [
        ((), "symmetries: must begin with the identity"),
        (
            (board_symmetry(3, 3, 9, turns=1),),
            r"symmetries\[0\]: must be the identity",
        ),
        (
            (transform(lambda o: -o, np.arange(9)),),
            r"symmetries\[0\]: must be the identity",
        ),
        (
            (identity(9), transform(lambda o: o, np.zeros(9, int))),
            r"symmetries\[1\]: `actions` must be a permutation of .* 0 to 8: array\(",
        ),
        (
            (identity(9), transform(lambda o: o, np.arange(9.0))),
            r"symmetries\[1\]: `actions` must be a permutation of the ints",
        ),
        (
            (identity(9), identity(9)),
            r"symmetries\[1\]: must differ from symmetries\[0\]",
        ),
        (
            (identity(9), transform(lambda o: o[..., :1])),
            r"symmetries\[1\]: `observation` must keep shape .* \(1, 2, 3, 3, 2\) ",
        ),
        (
            (identity(9), transform(lambda o: jnp.flip(o, axis=0))),
            r"symmetries\[1\]: `observation` must map \[\.\.\., H, W, C\]",
        ),
        (
            (identity(9), transform(lambda o: o.no_such_method())),
            r"symmetries\[1\]: must not raise AttributeError",
        ),
    ],
)
def test_an_invalid_symmetry_is_found(symmetries, pattern):
    assert_found(with_symmetries(*symmetries), pattern)


# Random games.


class WinsIllegally(Plain):
    def step(self, state, action):
        after = super().step(state, action)
        occupied = ~super().legal_action_mask(state)
        is_illegal = occupied[jnp.clip(action, 0, 8)] & (action >= 0) & (action < 9)
        outcome = jnp.where(is_illegal, -after.outcome, after.outcome)
        return core.select(
            state.terminated, state, dataclasses.replace(after, outcome=outcome)
        )


class PassesAtMinusOne(Plain):
    def step(self, state, action):
        passed = dataclasses.replace(
            state, current_player=jnp.int8(1) - state.current_player
        )
        is_pass = (action == -1) & ~state.terminated
        return core.select(is_pass, passed, super().step(state, action))


class WinsAtMinusOne(Plain):
    def step(self, state, action):
        after = super().step(state, action)
        is_win = (action == -1) & ~state.terminated
        outcome = jnp.where(is_win, -after.outcome, after.outcome)
        return dataclasses.replace(after, outcome=outcome)


class ContinuesAfterTheEnd(Plain):
    def step(self, state, action):
        return super().step(
            dataclasses.replace(state, terminated=jnp.bool(False)), action
        )


class TakesEarlyRewards(Plain):
    def rewards(self, state):
        return jnp.where(
            state.terminated, super().rewards(state), jnp.array([0.5, -0.5])
        )


def with_rewards_of_a_row(*row_rewards):
    """Returns a game whose rewards are these when player 0 has a row."""

    def rewards(self, state):
        has_row = (self.board(state) == 0).all(axis=1).any()
        return jnp.where(has_row, jnp.array(row_rewards), Plain.rewards(self, state))

    return type("WrongRewards", (Plain,), {"rewards": rewards})


class ObservesNothing(Plain):
    def observe(self, state):
        return jnp.where(state.current_player == 1, jnp.nan, super().observe(state))


class PlacesUnknownPieces(Plain):
    def board(self, state):
        return 3 * super().board(state)


class TurnsTwice(Plain):
    def step(self, state, action):
        after = super().step(state, action)
        player = jnp.where(action == 4, state.current_player, after.current_player)
        return core.select(
            state.terminated, state, dataclasses.replace(after, current_player=player)
        )


class IgnoresIllegalMoves(Plain):
    def step(self, state, action):
        legal = super().legal_action_mask(state)[jnp.clip(action, 0, 8)]
        is_ignored = (action >= 0) & (action < 9) & ~legal
        return core.select(is_ignored, state, super().step(state, action))


class AllowsNothing(Plain):
    def legal_action_mask(self, state):
        legal = super().legal_action_mask(state)
        return legal & (legal.sum() >= 7)


def with_one_symmetry(observation, actions):
    symmetries = (identity(9), Symmetry(observation, actions))
    return type("WrongSymmetry", (TicTacToe,), {"symmetries": symmetries})


MIRROR = board_symmetry(3, 3, 9, mirror=True)


class WritesTwice(Plain):
    def action_to_text(self, state, action):
        return "aA"[action % 2]


class DrawsNoPicture(Plain):
    def to_svg(self, state, last_action=None, policies=None):
        return "no picture"


class DrawsItself(Plain):
    pieces = "XOAB"

    def to_svg(self, state, last_action=None, policies=None):
        return "<svg></svg>"


class ReadsSmallLetters(Plain):
    def text_to_action(self, state, text):
        return super().text_to_action(state, text) if text.islower() else -7


class WritesNothing(Plain):
    def to_text(self, state, last_action=None):
        return None


class LastsTooLong(Plain):
    max_moves = 4


class ReadsAnything(Plain):
    def text_to_action(self, state, text):
        try:
            return super().text_to_action(state, text)
        except ValueError:
            return 0


@functools.partial(jax.custom_batching.custom_vmap)
def is_alone(number):
    return jnp.ones_like(number)


@is_alone.def_vmap
def _(size, batched, number):
    return jnp.zeros_like(number), batched[0]


class MarksOffTheBoard(Plain):
    def last_cells(self, state, last_action):
        return ((3, 0),)


class DiffersTogether(Plain):
    def observe(self, state):
        return super().observe(state) + is_alone(state.outcome.astype(jnp.float32))


class DiffersByChance(Plain):
    def observe(self, state):
        return super().observe(state) + np.random.default_rng().random()


@pytest.mark.parametrize(
    ("game_class", "pattern"),
    [
        (
            WinsIllegally,
            r"step: an illegal action must be a loss for its player \(game \d after 1 "
            r"moves, \[\d\]\)$",
        ),
        (PassesAtMinusOne, "step: -1 or num_actions must end the game"),
        (WinsAtMinusOne, "step: -1 or num_actions must be a loss for its player"),
        (ContinuesAfterTheEnd, "step: nothing may change once the game is over"),
        (
            TakesEarlyRewards,
            r"rewards: must be zeros until the game is over \(game 0 after 0 moves, "
            r"\[\]\)$",
        ),
        (with_rewards_of_a_row(1.0, 0.0), "rewards: must sum to zero"),
        (with_rewards_of_a_row(2.0, -2.0), "rewards: must be between -1 and 1"),
        (ObservesNothing, r"observe: the values must be finite \(game 0 after 1 moves"),
        (PlacesUnknownPieces, "board: must be -1 where a cell is empty, else 0 to 1"),
        (TurnsTwice, "step: the players must take turns"),
        (IgnoresIllegalMoves, "step: an illegal action must end the game"),
        (
            AllowsNothing,
            "legal_action_mask: an action must be legal until the game is over "
            r"\(game \d after 3 moves, \[\d, \d, \d\]\)$",
        ),
        (
            with_one_symmetry(lambda observation: observation, MIRROR.actions),
            r"symmetries\[1\]: `observation\(observe\(state\)\)` must be",
        ),
        (
            with_one_symmetry(MIRROR.observation, np.roll(np.arange(9), 1)),
            r"symmetries\[1\]: `",
        ),
        (
            WritesTwice,
            "action_to_text: legal actions must have different texts, .*; 0 and 1 have "
            r"'A' \(game 0 after 0 moves, \[\]\)$",
        ),
        (DrawsNoPicture, "to_svg: must return an SVG document: 'no picture'"),
        (ReadsSmallLetters, r"text_to_action: must read ' A3\\n' as 0: -7"),
        (WritesNothing, "to_text: must return a text: None"),
        (
            LastsTooLong,
            r"max_moves: games must be over after 4 moves \(game 0 after 4 moves, "
            r"\[\d, \d, \d, \d\]\)$",
        ),
        (ReadsAnything, "text_to_action: must refuse 'no action' by a ValueError: 0"),
        (
            type("Wide", (Plain,), {"column_labels": "abcd"}),
            r"column_labels: must be 3: \['a', 'b', 'c', 'd'\]",
        ),
        (
            type("High", (Plain,), {"row_labels": ("4", "3", "2", "1")}),
            r"row_labels: must be 3 or none: \['4', ",
        ),
        (
            MarksOffTheBoard,
            r"last_cells: must be on the board, \(3, 3\): \(\(3, 0\),\)",
        ),
        (DiffersTogether, "observe: must return the same alone and under jax.vmap"),
        (DiffersByChance, "observe: must return the same alone and under jax.vmap"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_violation_in_random_games_is_found(game_class, pattern):
    assert_found(game_class, pattern)


# Arguments and results of the check.


@pytest.mark.parametrize("game", ["tic_tac_toe", TicTacToe, None])
def test_an_argument_that_is_not_a_game_is_refused(game):
    with pytest.raises(ValueError, match=f"game must be a Game.*: {game!r}"):
        check(game)


@pytest.mark.parametrize("num_games", [0, -1, 2.0, True])
def test_a_wrong_number_of_games_is_refused(num_games):
    with pytest.raises(ValueError, match=f"num_games must be an int >= 1: {num_games}"):
        check(TicTacToe(), num_games=num_games)


def test_a_wrong_seed_is_not_a_violation():
    with pytest.raises(TypeError, match=r"int or sequence of ints .* not 1\.5"):
        check(TicTacToe(), seed=1.5)


class Columns(Plain):
    """A game whose actions are not cells."""

    num_actions = 3

    def legal_action_mask(self, state):
        return super().legal_action_mask(state)[:3]


@pytest.mark.parametrize(
    "name", ["action_to_text", "action_cells", "policies_on_board"]
)
def test_a_method_that_treats_actions_as_cells_is_found(name):
    others = {"action_to_text", "action_cells", "policies_on_board"} - {name}
    overridden = {other: lambda *args: None for other in others}
    broken = type("Broken", (Columns,), overridden)
    assert_found(broken, f"{name}: must be overridden: .* the game has 3 actions$")


def test_a_check_ends_with_a_summary_line(capsys):
    check(Plain(), num_games=4)
    line = capsys.readouterr().out
    assert re.fullmatch(
        r"tic_tac_toe keeps the contract: 4 random games, \d+ positions, "
        r"symmetries \(1\), texts and drawings\n",
        line,
    )


def test_a_game_with_its_own_drawing_needs_no_piece_style():
    check(DrawsItself(), num_games=4)


def test_a_violation_is_a_value_error_with_its_cause():
    def fail(self, state):
        raise KeyError("a mistake")

    with pytest.raises(ValueError, match="observe: must not raise") as error:
        check(type("Broken", (Plain,), {"observe": fail})())
    assert isinstance(error.value.__cause__, KeyError)


# The documentation page.


@pytest.fixture
def chomp(tmp_path, monkeypatch):
    """The example of the page, as a module in the working directory."""
    monkeypatch.setattr(registry, "_GAMES", dict(registry._GAMES))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "chomp.py"
    path.write_text(EXAMPLES[0])
    spec = importlib.util.spec_from_file_location("chomp", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "chomp", module)
    spec.loader.exec_module(module)
    return module


def test_the_example_is_short():
    assert EXAMPLES[0].count("\n") < 80


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.usefixtures("chomp")
def test_the_example_keeps_the_contract(size):
    check(azjax.games.make("chomp", size=size), num_games=16)


def test_the_example_plays_by_the_rules_of_chomp(chomp):
    game = chomp.Chomp(3)
    state = game.init()
    for action in (4, 2, 6):  # b2, c3, a1: the remaining cells are a3, b3 and a2
        state = game.step(state, jnp.int32(action))
    assert game.board(state).tolist() == [[-1, -1, 1], [-1, 0, 0], [0, 0, 0]]
    assert not state.terminated
    state = game.step(state, jnp.int32(0))  # player 1 takes the last cell
    assert state.terminated
    assert game.rewards(state).tolist() == [1, -1]


@pytest.mark.usefixtures("chomp")
@pytest.mark.parametrize("size", [1, 9, 3.0, True])
def test_the_example_refuses_a_wrong_size(size):
    with pytest.raises(ValueError, match=f"size must be an int .*: {size!r}"):
        azjax.games.make("chomp", size=size)


@pytest.mark.usefixtures("chomp")
def test_the_example_of_many_games_runs(capsys):
    exec(EXAMPLES[3].replace("256", "4"), {})
    assert capsys.readouterr().out.startswith("(4, 6, 7, 2)")


@pytest.mark.slow
@pytest.mark.usefixtures("chomp")
def test_the_example_can_be_trained_and_loaded():
    exec(EXAMPLES[1].replace("minutes=2", "iterations=1"), {})


@pytest.fixture
def nim(monkeypatch):
    """The example of the page whose actions are not cells."""
    monkeypatch.setattr(registry, "_GAMES", dict(registry._GAMES))
    module = types.ModuleType("nim")
    monkeypatch.setitem(sys.modules, "nim", module)
    exec(EXAMPLES[2], vars(module))
    return azjax.games.make("nim:5")


def test_the_example_without_cells_keeps_the_contract(nim):
    check(nim, num_games=8)


def test_the_example_without_cells_plays_writes_and_draws(nim):
    state = nim.init()
    assert nim.action_cells(state, 1) == ((0, 3),)
    svg = nim.to_svg(state, policies={"search": np.array([0.1, 0.2, 0.7])})
    assert "70%" in svg
    for text in ("3", "2"):
        action = nim.text_to_action(state, text)
        state = nim.step(state, jnp.int32(action))
    assert nim.last_cells(state, action) == ((0, 0), (0, 1))
    assert nim.rewards(state).tolist() == [-1, 1]


def test_the_page_has_its_examples():
    assert len(EXAMPLES) == 4
    assert EXAMPLES[1].count("minutes=2") == 1
