import numpy as np
import pytest

from azjax.games import (
    ContractError,
    TicTacToe,
    available,
    game_options,
    game_title,
    make,
    register,
)


class Sized(TicTacToe):
    """Tic-tac-toe with options, for the tests of `make`."""

    name = "sized"

    def __init__(self, size: int = 3, komi: float = 0.5, label: str = "", wrap=False):
        self.size, self.komi, self.label, self.wrap = size, komi, label, wrap


@pytest.fixture(autouse=True)
def _sized(own_games):
    register(Sized)


def test_games_are_made_by_name_and_their_options_listed_with_their_defaults():
    assert list(available()) == sorted(available())
    assert {"connect_four", "tic_tac_toe"} <= set(available())
    assert all(make(name).name == name for name in available())
    assert make("sized") != make("tic_tac_toe")
    options = game_options("sized")
    assert list(options) == ["size", "komi", "label", "wrap"]
    assert options["size"].default == 3


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("checkers", r"'checkers'.*connect_four.* your own, .* `python FILE`"),
        ("tic_tac_toe:9", "no option '9'; it has none"),
        ("sized:5,size=6", "'size' of sized is given twice"),
        ("sized:,7.5", "an option in 'sized:,7.5' is empty"),
        ("sized:5,", "an option in 'sized:5,' is empty"),
        ("sized:color=1", "size, komi, label, wrap"),
        ("sized:1,2,3,4,5", "size, komi, label, wrap"),
        ("conect_four", r"did you mean connect_four\?$"),
        ("Othelo", r"did you mean othello\?$"),
        ("hex:siez=3", r"did you mean size\?$"),
    ],
)
def test_a_wrong_specification_is_refused_with_the_known_names(spec, message):
    with pytest.raises(ValueError, match=message):
        make(spec)


@pytest.mark.parametrize(
    "spec",
    [
        "{}",
        "sized:{}=3",
        "hex:{}",
        "hex:4,{}",
        "gomoku:9,9,{}",
        "go:komi={:.0}9" + 400 * "9",
    ],
)
def test_a_long_name_or_option_is_quoted_in_part(spec):
    with pytest.raises(ValueError, match=r"x{50}|9{50}") as error:
        make(spec.format("x" * 10_000))
    assert len(str(error.value)) < 400


def test_options_after_the_colon_are_the_keyword_arguments():
    wanted = make("sized", size=5, komi=7.5)
    for options in "5,7.5", "size=5,komi=7.5", "komi=7.5,size=5", "5,komi=7.5":
        assert make(f"sized:{options}") == wanted
    with pytest.raises(ValueError, match="'size' of sized is given twice"):
        make("sized:5", size=5)
    # An option is parsed by its form.
    game = make("sized:5,-7.5,label=small,wrap=True")
    assert game.options == {"size": 5, "komi": -7.5, "label": "small", "wrap": True}
    assert [type(value) for value in game.options.values()] == [int, float, str, bool]
    assert make(repr(game)) == game


def test_numpy_numbers_are_accepted_as_options():
    options = {"size": np.int64(5), "komi": np.float32(7.5), "wrap": np.bool_(True)}
    game = make("sized", **options)
    assert game == make("sized:5,7.5,wrap=true") != make("sized:6,7.5,wrap=true")
    assert type(game.options["size"]) is int


def test_a_game_has_one_spelling():
    for text, spec in {
        "sized": "sized:size=3,komi=0.5",
        "sized:5": "sized:size=5,komi=0.5",
        "sized:komi=7.5,wrap=True": "sized:3,7.5,wrap=true",
        "sized:5,komi=7.5": "sized:5,7.5",
        "hex:5": "hex:size=5,swap=false",
        "hex:swap=True": "hex:11,true",
        "go:5": "go:size=5,max_moves=50",
        "go:komi=6.5,max_moves=99": "go:9,6.5,max_moves=99",
        "gomoku:9,width=9": "gomoku:9,9",
        "chess:repetition=True": "chess:repetition=true",
    }.items():
        assert repr(make(spec)) == text
        assert make(text) == make(spec)


def test_a_name_is_registered_once_and_a_redefined_class_replaces_the_old_one():
    assert register(Sized) is Sized
    with pytest.raises(ValueError, match="'tic_tac_toe' is already registered"):
        register(type("Other", (TicTacToe,), {"name": "tic_tac_toe"}))
    fields = {"__module__": Sized.__module__, "__qualname__": Sized.__qualname__}
    redefined = type("Sized", (Sized,), fields)
    assert register(redefined) is redefined
    assert type(make("sized")) is redefined


def test_a_users_game_with_wrong_types_is_refused_when_it_is_made():
    mask = {"legal_action_mask": lambda self, state: np.ones(9, np.int32)}
    register(type("Broken", (Sized,), {"name": "broken", **mask}))
    with pytest.raises(ContractError, match=r"legal_action_mask: must be .* int32"):
        make("broken")


def test_a_title_shows_the_options_of_a_game():
    for spec, title in {
        "tic_tac_toe": "Tic Tac Toe",
        "go:9,komi=6.5": "Go 9x9 (komi 6.5)",
        "hex:5,swap=True": "Hex 5x5 (swap)",
        "go:5,superko=False": "Go 5x5 (no superko)",
        "gomoku:7,width=9,length=4": "Gomoku 9x7 (length 4)",
        "gomoku:9": "Gomoku (height 9)",
        "somebodys_game:3": "Somebodys Game (3)",
    }.items():
        assert game_title(spec) == title
