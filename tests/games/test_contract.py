"""Each violation of the contract is detected and explained."""

import functools
import importlib.util
import re
import sys
import types
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coin_toss import CoinToss
from compiled_games import compiled, play
from flax import struct

import azjax
from azjax.games import ContractError, Game, Symmetry, TicTacToe, check, core, host
from azjax.games.symmetry import board_symmetry, identity

README = Path(azjax.games.__file__ or "").parent / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def example(text):
    """Returns the example of the page with this text."""
    (found,) = (example for example in EXAMPLES if text in example)
    return found


class Plain(TicTacToe):
    """Tic-tac-toe without symmetries, which take time to compile."""

    symmetries = Game.symmetries


def broken(**attributes):
    """Returns a class of games with other methods or attributes."""
    return type("Broken", (Plain,), attributes)


class Coin(CoinToss):
    """A game with chance without symmetries."""

    symmetries = Game.symmetries


def with_coin(**attributes):
    """Returns a class of games with chance with other methods or attributes."""
    return type("Broken", (Coin,), attributes)


def assert_found(game_class, pattern):
    """Asserts that the message of the violation begins with the pattern."""
    with pytest.raises(ContractError) as error:
        check(game_class(), num_games=64)
    assert re.match(pattern, str(error.value)), str(error.value)


WRONG_ATTRIBUTES = {
    "num_actions": (0, 9.0, True),
    "actions_per_cell": (2, -1, 1.0),
    "max_legal_actions": (-1, 10, 9.0),
    "line_length": (4, -1, 3.0),
    "num_outcomes": (-1, 2.0, True),
    "max_moves": (None, -1),
    "observation_shape": ((3, 3), [3, 3, 2], (3, 3, 0)),
    "pieces": ("", "XX"),
    "name": ("", "tic:tac", 3),
}


@pytest.mark.parametrize("attribute", WRONG_ATTRIBUTES)
def test_a_wrong_attribute_is_named_with_its_value(attribute):
    for value in WRONG_ATTRIBUTES[attribute]:
        wrong = broken(**{attribute: value})
        assert_found(wrong, f"{attribute}: must be .*: {re.escape(repr(value))}$")


def test_pieces_without_a_style_are_found():
    assert_found(broken(pieces="XO#"), "style: must draw the 3 kinds .*: 2$")


class LosesAnOption(Plain):
    def __init__(self, size: int = 3):
        self.length = size


class ForgetsAnOption(LosesAnOption):
    max_moves = property(lambda self: 3 * self.length)
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


def first_state(**changes):
    """Returns a game whose initial state is changed."""

    def init(self):
        return replace(Plain.init(self), **{k: v() for k, v in changes.items()})

    return broken(init=init)


@struct.dataclass
class WithoutFields:
    current_player: jax.Array


class NoPytree:
    """A state whose class JAX does not know."""


def with_step(change, **attributes):
    """Returns a game whose step is `change(state, action, after)`."""

    def step(self, state, action):
        return change(state, action, Plain.step(self, state, action))

    return broken(step=step, **attributes)


def later_state(outcome):
    """Returns a game with another outcome, `outcome(after)`, after each step."""
    return with_step(lambda _, __, after: replace(after, outcome=outcome(after)))


def returning(method, result):
    """Returns a game whose method of a state returns the result."""
    return broken(**{method: lambda self, state: result})


def observe_without_vmap(self, state):
    shape = jax.ShapeDtypeStruct((3, 3, 2), np.float32)
    return jax.pure_callback(lambda _: np.zeros((3, 3, 2)), shape, state.outcome)


WRONG_TYPES = {
    r"options: must have .* \['size'\]: \[\]": LosesAnOption,
    "options: .* must have the same max_moves: 9 became 12": ForgetsAnOption,
    "options: .* must be equal to": DiffersFromItsTwin,
    "__hash__: equal games must have the same hash": HasAnotherHash,
    r"init: current_player of the state: must be \[\] int8, .*: \[\] int32": (
        first_state(current_player=lambda: jnp.int32(0))
    ),
    r"init: terminated of the state: must be \[\] bool: \[2\] bool": first_state(
        terminated=lambda: jnp.zeros(2, bool)
    ),
    "init: player 0 must move first: 1": first_state(
        current_player=lambda: jnp.int8(1)
    ),
    "init: the first position must not be the end": first_state(
        terminated=lambda: jnp.bool(True)
    ),
    "init: must return the same position each time": first_state(
        outcome=lambda: jnp.int8(np.random.default_rng().integers(100))
    ),
    "init: the state must have the field terminated": broken(
        init=lambda self: WithoutFields(jnp.int8(0))
    ),
    r"step: state\.outcome must keep .*: \[\] int8 became \[\] int32": later_state(
        lambda after: after.outcome.astype(jnp.int32)
    ),
    r"step: state\.outcome must keep .*: \[\] int8 became \[3\] int8": later_state(
        lambda after: jnp.zeros(3, jnp.int8)
    ),
    "step: the state must keep its structure, or each step is compiled": with_step(
        lambda _, __, after: replace(after, stones=after.stones[0])
    ),
    r"init: state\.current_player must be an array, such as jnp\.int8\(0\): 0$": (
        first_state(current_player=lambda: 0)
    ),
    "init: the state must be a pytree .* @jax.* is missing: <class '.*NoPytree'>": (
        broken(init=lambda self: NoPytree())
    ),
    r".*\[\] weakly typed int32 became \[\] int32": with_step(
        lambda _, __, after: replace(after, outcome=jnp.int32(0)),
        init=lambda self: replace(Plain.init(self), outcome=jnp.asarray(0)),
    ),
    r"legal_action_mask: must be \[9\] bool: \[8\] bool$": returning(
        "legal_action_mask", np.ones(8, bool)
    ),
    r"legal_action_mask: must be .* bool, as by \.astype\('bool'\): \[9\] int32$": (
        returning("legal_action_mask", np.ones(9, np.int32))
    ),
    r"observe: must be \[3, 3, 2\] float32: \[3, 3\] float32$": returning(
        "observe", np.ones((3, 3), np.float32)
    ),
    r"observe: must be .*float32, .*: \[3, 3, 2\] int32$": returning(
        "observe", np.ones((3, 3, 2), np.int32)
    ),
    r"board: must be \[any, any\] int8: \[9\] int8$": returning(
        "board", np.ones(9, np.int8)
    ),
    r"board: must be \[any, any\] int8: None$": returning("board", None),
    "observe under jax.vmap: must not raise NotImpl": broken(
        observe=observe_without_vmap
    ),
    r"chance: must be \[3\] float32: None$": with_coin(chance=lambda self, state: None),
    r"chance: must be \[4\] float32: \[3\] float32$": with_coin(num_outcomes=4),
    r"num_outcomes: must be K, .* of, \[3\] float32: 0$": with_coin(num_outcomes=0),
    "chance_step: must not raise NotImplementedError: .* has no chance": broken(
        num_outcomes=2
    ),
    r"chance_step: state\.waits must keep .*: \[\] bool became \[\] int32": with_coin(
        chance_step=lambda self, state, outcome: replace(state, waits=outcome)
    ),
    r"chance_step: no outcome of the first position may end the game: \[2\]$": (
        with_coin(chance=lambda self, state: np.float32([5, 2, 1]) / 8)
    ),
}


@pytest.mark.parametrize("pattern", WRONG_TYPES)
def test_wrong_options_initial_states_and_types_of_results_are_found(pattern):
    assert_found(WRONG_TYPES[pattern], pattern)


# By what Python needs a number or an array for, how the message proposes to do without.
TRACED_VALUES = {
    "jnp.where or jax.lax.cond for `if`": lambda after: 1 if after.terminated else 0,
    r"jnp.asarray\(table\)\[i\] for table": lambda after: [0, 1][after.outcome],
    "jax.numpy for NumPy": lambda after: np.sign(after.stones)[0, 0],
    r"jnp.where\(mask, a, b\)": lambda after: jnp.ones(2)[jnp.ones(2) > after.outcome],
    ".astype": lambda after: int(after.outcome),
}


@pytest.mark.parametrize("proposal", TRACED_VALUES)
def test_python_on_a_traced_value_is_found_with_its_line_and_a_proposal(proposal):
    outcome = TRACED_VALUES[proposal]
    number = outcome.__code__.co_firstlineno
    place = rf"\(test_contract.py, line {number}: .* lambda after: .*\)$"
    assert_found(
        later_state(outcome), f"step: Python cannot know .* use {proposal}.* {place}"
    )


def fail(self, state):
    raise KeyError("a mistake")


@pytest.mark.parametrize("method", ["legal_action_mask", "observe", "board"])
def test_a_method_that_raises_is_found_with_its_cause(method):
    message = f"{method}: must not raise KeyError: 'a mistake' .test_contract.py, line "
    with pytest.raises(ContractError, match=message) as error:
        check(broken(**{method: fail})())
    assert isinstance(error.value, ValueError)
    assert isinstance(error.value.__cause__, KeyError)


def with_one_symmetry(observation, actions=np.arange(9)[::-1]):  # noqa: B008
    return broken(symmetries=(identity(9), Symmetry(observation, actions)))


INVALID_SYMMETRIES = {
    "symmetries: must begin with the identity": broken(symmetries=()),
    r"symmetries\[0\]: must be the identity": broken(
        symmetries=(board_symmetry(3, 3, 9, turns=1),)
    ),
    r"symmetries\[0\]: must be .* identity": broken(
        symmetries=(Symmetry(lambda o: -o, np.arange(9)),)
    ),
    r"symmetries\[1\]: must differ from symmetries\[0\]": broken(
        symmetries=(identity(9), identity(9))
    ),
    r"symmetries\[1\]: `actions` must be a permutation of .* 0 to 8: array\(": (
        with_one_symmetry(lambda o: o, np.zeros(9, int))
    ),
    r"symmetries\[1\]: `actions` must be a permutation of the ints": (
        with_one_symmetry(lambda o: o, np.arange(9.0))
    ),
    r"symmetries\[1\]: `observation` must keep shape .* \(1, 2, 3, 3, 2\) ": (
        with_one_symmetry(lambda o: o[..., :1])
    ),
    r"symmetries\[1\]: `observation` must map \[\.\.\., H, W, C\]": (
        with_one_symmetry(lambda o: jnp.flip(o, axis=0))
    ),
    r"symmetries\[1\]: must not raise AttributeError": with_one_symmetry(
        lambda o: o.no_such_method()
    ),
}


@pytest.mark.parametrize("pattern", INVALID_SYMMETRIES)
def test_an_invalid_symmetry_is_found(pattern):
    assert_found(INVALID_SYMMETRIES[pattern], pattern)


def occupied(state, action):
    """Returns whether the action is a cell that is not empty."""
    is_cell = (action >= 0) & (action < 9)
    return is_cell & ~Plain().legal_action_mask(state)[jnp.clip(action, 0, 8)]


def reverse_outcome(after, predicate):
    outcome = jnp.where(predicate, -after.outcome, after.outcome)
    return replace(after, outcome=outcome)


def win_illegally(state, action, after):
    is_win = occupied(state, action) & ~state.terminated
    return reverse_outcome(after, is_win)


def win_at_minus_one(state, action, after):
    return reverse_outcome(after, (action == -1) & ~state.terminated)


def pass_at_minus_one(state, action, after):
    passed = replace(state, current_player=jnp.int8(1) - state.current_player)
    return core.select((action == -1) & ~state.terminated, passed, after)


def ignore_illegal_moves(state, action, after):
    return core.select(occupied(state, action), state, after)


def never_turn(state, action, after):
    is_legal = Plain().legal_action_mask(state)[action] & (action >= 0) & (action < 9)
    player = jnp.where(is_legal, state.current_player, after.current_player)
    return replace(after, current_player=player)


def turn_twice(state, action, after):
    is_twice = (action == 4) & ~state.terminated
    player = jnp.where(is_twice, state.current_player, after.current_player)
    return replace(after, current_player=player)


def continue_after_the_end(state, action, after):
    return Plain().step(replace(state, terminated=jnp.bool(False)), action)


def with_rewards_of_a_row(*row_rewards):
    """Returns a game whose rewards are these when player 0 has a row."""

    def rewards(self, state):
        has_row = (self.board(state) == 0).all(axis=1).any()
        return jnp.where(has_row, jnp.array(row_rewards), Plain.rewards(self, state))

    return broken(rewards=rewards)


def early_rewards(self, state):
    rewards = Plain.rewards(self, state)
    return jnp.where(state.terminated, rewards, jnp.array([0.5, -0.5]))


def observe_nothing(self, state):
    return jnp.where(state.current_player == 1, jnp.nan, Plain.observe(self, state))


def allow_nothing(self, state):
    legal = Plain.legal_action_mask(self, state)
    return legal & (legal.sum() >= 7)


MIRROR = board_symmetry(3, 3, 9, mirror=True)


@functools.partial(jax.custom_batching.custom_vmap)
def is_alone(number):
    return jnp.ones_like(number)


@is_alone.def_vmap
def _(size, batched, number):
    return jnp.zeros_like(number), batched[0]


def differ_together(self, state):
    return Plain.observe(self, state) + is_alone(state.outcome.astype(jnp.float32))


def differ_by_chance(self, state):
    return Plain.observe(self, state) + np.random.default_rng().random()


def read_small_letters(self, state, text):
    return Plain.text_to_action(self, state, text) if text.islower() else -7


def read_anything(self, state, text):
    try:
        return Plain.text_to_action(self, state, text)
    except ValueError:
        return 0


def with_chance(change):
    """Returns a game whose chance is `change(state, probabilities)`."""

    def chance(self, state):
        return change(state, Coin.chance(self, state))

    return with_coin(chance=chance)


def wait_again(self, state, outcome):
    after = Coin.chance_step(self, state, outcome)
    has_marks = ~Coin.legal_action_mask(self, state).all()
    return replace(after, waits=has_marks & ~after.terminated)


def wait_after_three_moves(self, state, outcome):
    after = Coin.chance_step(self, state, outcome)
    num_marks = (~Coin.legal_action_mask(self, state)).sum()
    goes_on = {"terminated": state.terminated, "outcome": state.outcome}
    return replace(after, waits=num_marks >= 3, **goes_on)


def depend_on_a_corner(state, probabilities):
    is_marked = (state.stones[0][0] & 1) > 0
    return jnp.where(is_marked, probabilities[jnp.array([1, 0, 2])], probabilities)


VIOLATIONS = {
    "chance: the probabilities must sum to 1, or all be 0 where a player is to move "
    r"\(game \d after 2 moves, \[\d+, \d\]\)$": with_chance(
        lambda state, found: jnp.where(found[2] > 0, 0.9 * found, found)
    ),
    "step: an illegal action must be a loss for its player "
    r"\(game \d after 1 moves, \[\d\]\)$": with_step(win_illegally),
    "step: -1 or num_actions must end the game": with_step(pass_at_minus_one),
    "step: the players must take turns": with_step(turn_twice),
    "step: player 1 never moved in any game": with_step(
        never_turn, has_extra_turns=True
    ),
    "has_extra_turns: must be a bool: 'yes'": broken(has_extra_turns="yes"),
    "action_to_text: must return a word for 0: 'a 3'": broken(
        action_to_text=lambda self, state, action: f"a {3 - action}"
    ),
    "result_text: must return a text: 3": broken(result_text=lambda *args: 3),
    "step: nothing may change once the game is over": with_step(continue_after_the_end),
    "rewards: must be zeros until the game is over "
    r"\(game 0 after 0 moves, \[\]\)$": broken(rewards=early_rewards),
    "rewards: must sum to zero": with_rewards_of_a_row(1.0, 0.0),
    r"observe: the values must be finite \(game 0 after 1 moves": broken(
        observe=observe_nothing
    ),
    "observe: must return the same alone and under jax.vmap": broken(
        observe=differ_together
    ),
    "board: must be -1 where a cell is empty, else 0 to 1": broken(
        board=lambda self, state: 3 * Plain.board(self, state)
    ),
    "legal_action_mask: no more actions .*`, 8 ": broken(max_legal_actions=8),
    "legal_action_mask: an action must be legal until the game is over "
    r"\(game \d after 3 moves, \[\d, \d, \d\]\)$": broken(
        legal_action_mask=allow_nothing
    ),
    r"symmetries\[1\]: `observation\(observe\(state\)\)` must be": with_one_symmetry(
        lambda observation: observation, MIRROR.actions
    ),
    "action_to_text: legal actions must have different texts, .*; 0 and 1 have "
    r"'A' \(game 0 after 0 moves, \[\]\)$": broken(
        action_to_text=lambda self, state, action: "aA"[action % 2]
    ),
    "max_moves: games must be over after 4 moves, and random games took "
    r"up to 9; set it .* \(game \d after 4 moves, \[\d, \d, \d, \d\]\)$": broken(
        max_moves=4
    ),
    "to_svg: must return an SVG document: 'no picture'": broken(
        to_svg=lambda *args, **settings: "no picture"
    ),
}
# They are found at the same places as others.
SLOW_VIOLATIONS = {
    r"chance: the probabilities must be from 0 to 1 \(game 0 after 0 ": with_chance(
        lambda state, found: jnp.where(found > 0, jnp.nan, found)
    ),
    "chance: must be zeros once the game is over": with_chance(
        lambda state, found: jnp.where(state.terminated, 1 / 3, found)
    ),
    r"chance_step: the position after an outcome must not wait .* after 2 moves": (
        with_coin(chance_step=wait_again)
    ),
    r"symmetries\[1\]: `chance\(image\)` must be `chance\(state\)`": type(
        "Corner",
        (with_chance(depend_on_a_corner),),
        {"symmetries": (identity(9), MIRROR)},
    ),
    "outcome_to_text: outcomes must have different texts, .*; 0 and 1 have 'Coin'": (
        with_coin(outcome_to_text=lambda self, state, outcome: "cCc"[outcome] + "oin")
    ),
    r"outcome_to_text: must not begin like the number of a move: '1\.'": with_coin(
        outcome_to_text=lambda self, state, outcome: f"{outcome + 1}."
    ),
    "max_moves: games must be over after 1 moves, and random games took up to": (
        with_coin(max_moves=1)
    ),
    "max_moves: games must be over after 2 moves, and random games took more than": (
        with_coin(max_moves=2, chance_step=wait_after_three_moves)
    ),
    "step: an illegal action must end the game": with_step(ignore_illegal_moves),
    "step: -1 or num_actions must be a loss for its player": with_step(
        win_at_minus_one
    ),
    "rewards: must be between -1 and 1": with_rewards_of_a_row(2.0, -2.0),
    r"symmetries\[1\]: `": with_one_symmetry(
        MIRROR.observation, np.roll(np.arange(9), 1)
    ),
    r"text_to_action: must read ' A3\\n' as 0: -7": broken(
        text_to_action=read_small_letters
    ),
    "text_to_action: must refuse 'no action' by a ValueError: 0": broken(
        text_to_action=read_anything
    ),
    "to_text: must return a text: None": broken(to_text=lambda *args: None),
    r"column_labels: must be 3: \['a', 'b', 'c', 'd'\]": broken(column_labels="abcd"),
    r"row_labels: must be 3 or none: \['4', ": broken(row_labels="4321"),
    r"last_cells: must be on the board, \(3, 3\): \(\(3, 0\),\)": broken(
        last_cells=lambda *args: ((3, 0),)
    ),
    "observe: must return the same alone and under": broken(observe=differ_by_chance),
}


@pytest.mark.parametrize(
    "pattern",
    [*VIOLATIONS, *(pytest.param(p, marks=pytest.mark.slow) for p in SLOW_VIOLATIONS)],
)
def test_a_violation_in_random_games_is_found(pattern):
    assert_found((VIOLATIONS | SLOW_VIOLATIONS)[pattern], pattern)


def test_wrong_arguments_are_not_violations():
    for game in "tic_tac_toe", TicTacToe, None:
        with pytest.raises(ValueError, match=f"game must be a Game.*: {game!r}"):
            check(game)
    for number in 0, -1, 2.0, True:
        with pytest.raises(
            ValueError, match=f"num_games must be an int >= 1: {number}"
        ):
            check(TicTacToe(), num_games=number)
    with pytest.raises(TypeError, match=r"int or sequence of ints .* not 1\.5"):
        check(TicTacToe(), seed=1.5)


@pytest.mark.parametrize(
    "name", ["action_to_text", "action_cells", "policies_on_board"]
)
def test_a_method_that_treats_actions_as_cells_is_found(name):
    others = {"action_to_text", "action_cells", "policies_on_board"} - {name}
    columns = broken(
        num_actions=3,
        legal_action_mask=lambda self, state: Plain.legal_action_mask(self, state)[:3],
        **{other: lambda *args: None for other in others},
    )
    assert_found(columns, f"{name}: must be overridden: .* the game has 3 actions$")


def test_a_check_ends_with_a_summary_line(capsys):
    # A game with its own drawing needs no style for its pieces.
    game_class = broken(pieces="XOAB", to_svg=lambda *args, **settings: "<svg></svg>")
    check(game_class(), num_games=64)
    line = capsys.readouterr().out
    assert re.fullmatch(
        r"tic_tac_toe keeps the contract: 64 random games, \d+ positions, "
        r"symmetries \(1\), texts and drawings\n",
        line,
    )


def test_a_check_of_a_game_with_chance_counts_the_outcomes(capsys):
    check(Coin(), num_games=16)
    line = capsys.readouterr().out
    found = re.search(r" (\d+) positions, (\d+) outcomes of chance, symm", line)
    assert found is not None
    positions, outcomes = map(int, found.groups())
    # There is an outcome before each position in which a player is to move; the coin
    # ends some games, but not all.
    assert positions < outcomes < positions + 16


@pytest.fixture
def chomp(own_games, tmp_path, monkeypatch):
    """The example of the page, as a module in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "chomp.py"
    path.write_text(example("# chomp.py"))
    spec = importlib.util.spec_from_file_location("chomp", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "chomp", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "size", [2, pytest.param(4, marks=pytest.mark.slow, id="slow")]
)
@pytest.mark.usefixtures("chomp")
def test_the_example_keeps_the_contract(size):
    check(azjax.games.make("chomp", size=size), num_games=16)


def test_the_example_plays_by_the_rules_of_chomp(chomp):
    game = compiled(chomp.Chomp(3))
    # The remaining cells are a3, b3 and a2.
    state = play(game, "b2 c3 a1")
    assert np.asarray(game.board(state)).tolist() == [
        [-1, -1, 1],
        [-1, 0, 0],
        [0, 0, 0],
    ]
    assert not state.terminated
    state = play(game, "a3", state)  # player 1 takes the last cell
    assert state.terminated
    assert np.asarray(game.rewards(state)).tolist() == [1, -1]


@pytest.mark.usefixtures("chomp")
def test_the_example_of_extra_turns_lets_a_player_move_again():
    exec(example("# greedy_chomp.py"), {"__name__": "greedy_chomp"})
    game = azjax.games.make("greedy_chomp:3")
    check(game, num_games=16)
    state = play(game, "c1 b1")  # single squares
    assert state.current_player == 0
    assert play(game, "b2", state).current_player == 1


def test_the_example_of_chance_has_a_die_that_limits_the_moves(chomp):
    exec(example("# dice_chomp.py"), {"__name__": "dice_chomp"})
    game = azjax.games.make("dice_chomp:3")
    check(game, num_games=16)
    hidden = {"observe": chomp.Chomp.observe}
    with pytest.raises(ValueError, match=r"^observe: must differ after outcomes"):
        check(type("Hidden", (type(game),), hidden)(3), num_games=1)
    state = host.first_state(game)
    np.testing.assert_allclose(
        host.outcome_probabilities(game, state), np.full(6, 1 / 6)
    )
    for word in "outcome_5", "b2", "outcome_0":
        state = host.next_state(game, state, host.word_to_move(game, state, word))
    # a3, b3, c3, a2 and a1 are left; c3 and a1 are single squares.
    assert host.legal_actions(game, state) == [2, 6]


@pytest.mark.usefixtures("chomp")
def test_the_example_refuses_a_wrong_size():
    for size in 1, 9, 3.0, True:
        with pytest.raises(ValueError, match=f"size must be an int .*: {size!r}"):
            azjax.games.make("chomp", size=size)


@pytest.mark.usefixtures("chomp")
def test_the_example_of_many_games_runs(capsys):
    exec(example("num_envs=256").replace("256", "4"), {})
    assert capsys.readouterr().out.startswith("(4, 6, 7, 2)")


@pytest.mark.slow
@pytest.mark.usefixtures("chomp")
def test_the_example_can_be_trained_and_loaded():
    exec(example("minutes=2").replace("minutes=2", "minutes=0.01"), {})


def test_the_example_of_a_style_draws_another_piece():
    names: dict = {}
    exec(example("TAFL"), names)
    kings = broken(pieces="XOK", style=names["TAFL"], board=lambda *_: np.int8([[2]]))
    svg = Game.to_svg(kings(), kings().init())
    assert "1 kings" in svg
    assert 'fill="gold"' in svg


@pytest.fixture
def nim(own_games, monkeypatch):
    """The example of the page whose actions are not cells."""
    module = types.ModuleType("nim")
    monkeypatch.setitem(sys.modules, "nim", module)
    exec(example("# nim.py"), vars(module))
    return azjax.games.make("nim:5")


@pytest.mark.slow
def test_the_example_without_cells_keeps_the_contract(nim):
    check(nim, num_games=8)


def test_the_example_without_cells_plays_writes_and_draws(nim):
    game = compiled(nim)
    assert game.action_cells(game.init(), 1) == ((0, 3),)
    svg = game.to_svg(game.init(), policies={"search": np.array([0.1, 0.2, 0.7])})
    assert "70%" in svg
    state = play(game, "3 2")
    assert game.last_cells(state, game.text_to_action(play(game, "3"), "2")) == (
        (0, 0),
        (0, 1),
    )
    assert np.asarray(game.rewards(state)).tolist() == [-1, 1]
