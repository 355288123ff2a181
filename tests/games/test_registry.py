import numpy as np
import pytest

from azjax.games import (
    TicTacToe,
    available,
    game_options,
    game_title,
    make,
    register,
    registry,
)


class Sized(TicTacToe):
    """Tic-tac-toe with options, for the tests of `make`."""

    name = "sized_for_test"

    def __init__(self, size: int = 3, komi: float = 0.5, label: str = "", wrap=False):
        self.size, self.komi, self.label, self.wrap = size, komi, label, wrap

    @property
    def options(self):
        return {
            "size": self.size,
            "komi": self.komi,
            "label": self.label,
            "wrap": self.wrap,
        }


@pytest.fixture
def _sized(monkeypatch):
    monkeypatch.setattr(registry, "_GAMES", {**registry._GAMES, Sized.name: Sized})


def test_the_games_are_listed_in_order():
    assert list(available()) == sorted(available())
    assert {"connect_four", "tic_tac_toe"} <= set(available())


def test_make_returns_the_game_of_that_name():
    assert all(make(name).name == name for name in available())


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'checkers'.*connect_four"):
        make("checkers")


def test_a_game_without_options_refuses_options():
    with pytest.raises(ValueError, match="no option '9'; it has none"):
        make("tic_tac_toe:9")


@pytest.mark.usefixtures("_sized")
@pytest.mark.parametrize(
    "spec",
    [
        "sized_for_test:5,7.5",
        "sized_for_test:size=5,komi=7.5",
        "sized_for_test:komi=7.5,size=5",
        "sized_for_test:5,komi=7.5",
    ],
)
def test_options_after_the_colon_are_the_keyword_arguments(spec):
    assert make(spec) == make("sized_for_test", size=5, komi=7.5)


@pytest.mark.usefixtures("_sized")
def test_an_option_is_parsed_by_its_form():
    game = make("sized_for_test:5,-7.5,label=small,wrap=True")
    assert game.options == {"size": 5, "komi": -7.5, "label": "small", "wrap": True}
    assert [type(value) for value in game.options.values()] == [int, float, str, bool]


@pytest.mark.usefixtures("_sized")
def test_an_option_given_twice_is_refused():
    with pytest.raises(ValueError, match="'size' of sized_for_test is given twice"):
        make("sized_for_test:5", size=5)
    with pytest.raises(ValueError, match="'size' of sized_for_test is given twice"):
        make("sized_for_test:5,size=6")


@pytest.mark.usefixtures("_sized")
@pytest.mark.parametrize("spec", ["sized_for_test:,7.5", "sized_for_test:5,"])
def test_an_empty_option_is_refused(spec):
    with pytest.raises(ValueError, match=f"an option in '{spec}' is empty"):
        make(spec)


@pytest.mark.usefixtures("_sized")
def test_numpy_numbers_are_accepted_as_options():
    options = {"size": np.int64(5), "komi": np.float32(7.5), "wrap": np.bool_(True)}
    game = make("sized_for_test", **options)
    assert game == make("sized_for_test:5,7.5,wrap=true")
    assert type(game.options["size"]) is int


@pytest.mark.usefixtures("_sized")
@pytest.mark.parametrize("spec", ["sized_for_test:color=1", "sized_for_test:1,2,3,4,5"])
def test_an_unknown_option_is_refused_with_the_known_ones(spec):
    with pytest.raises(ValueError, match="size, komi, label, wrap"):
        make(spec)


@pytest.mark.usefixtures("_sized")
def test_the_options_of_a_game_are_listed_with_their_defaults():
    options = game_options("sized_for_test")
    assert list(options) == ["size", "komi", "label", "wrap"]
    assert options["size"].default == 3


@pytest.mark.usefixtures("_sized")
def test_games_with_other_options_differ():
    assert make("sized_for_test:5") != make("sized_for_test:6")
    assert make("sized_for_test") != make("tic_tac_toe")


@pytest.mark.usefixtures("_sized")
@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("sized_for_test:size=3,komi=0.5", "sized_for_test"),
        ("sized_for_test:size=5,komi=0.5", "sized_for_test:5"),
        ("sized_for_test:3,7.5,wrap=true", "sized_for_test:komi=7.5,wrap=True"),
        ("sized_for_test:5,7.5", "sized_for_test:5,komi=7.5"),
        ("hex:size=5,swap=false", "hex:5"),
        ("hex:11,true", "hex:swap=True"),
        ("go:size=5,max_moves=50", "go:5"),
        ("go:9,6.5,max_moves=99", "go:komi=6.5,max_moves=99"),
        ("gomoku:9,9", "gomoku:9,width=9"),
        ("chess:repetition=true", "chess:repetition=True"),
    ],
)
def test_a_game_has_one_spelling(spec, text):
    assert repr(make(spec)) == text
    assert make(text) == make(spec)


@pytest.mark.parametrize(
    ("spec", "close"),
    [("conect_four", "connect_four"), ("Othelo", "othello"), ("hex:siez=3", "size")],
)
def test_the_error_of_a_misspelled_name_suggests_a_close_one(spec, close):
    with pytest.raises(ValueError, match=f"did you mean {close}\\?$"):
        make(spec)


@pytest.mark.usefixtures("_sized")
def test_a_game_prints_as_its_specification():
    game = make("sized_for_test:5,label=small")
    assert make(repr(game)) == game


@pytest.mark.usefixtures("_sized")
def test_a_name_is_registered_once():
    assert register(Sized) is Sized
    with pytest.raises(ValueError, match="'tic_tac_toe' is already registered"):
        register(type("Other", (TicTacToe,), {"name": "tic_tac_toe"}))


@pytest.mark.usefixtures("_sized")
def test_a_redefined_class_replaces_the_old_one():
    fields = {"__module__": Sized.__module__, "__qualname__": Sized.__qualname__}
    redefined = type("Sized", (Sized,), fields)
    assert register(redefined) is redefined
    assert type(make("sized_for_test")) is redefined


@pytest.mark.parametrize(
    ("spec", "title"),
    [
        ("tic_tac_toe", "Tic Tac Toe"),
        ("go:9,komi=6.5", "Go (9, komi 6.5)"),
        ("hex:5,swap=True", "Hex (5, swap)"),
        ("go:5,positional_superko=False", "Go (5, no positional superko)"),
    ],
)
def test_a_title_shows_the_options_of_a_game(spec, title):
    assert game_title(spec) == title
