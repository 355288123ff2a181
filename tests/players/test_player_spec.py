import pytest

from azjax.players.player_spec import public_name, split_name, unused_name


def test_a_name_is_split_at_the_equals_sign():
    assert split_name("gnu=gtp:gnugo --mode=gtp") == ("gnu", "gtp:gnugo --mode=gtp")
    assert split_name("mcts:7?exploration=2") == (None, "mcts:7?exploration=2")
    assert split_name("random") == (None, "random")


def test_a_name_in_use_gets_a_number():
    assert unused_name("a", {"b"}) == "a"
    assert unused_name("a", {"a", "a#2"}) == "a#3"


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("random", "random"),
        ("mcts:7?exploration=2", "mcts:7?exploration=2"),
        ("alphazero:pretrained", "alphazero:pretrained"),
        ("alphazero:/home/me/runs/go/?simulations=9", "alphazero:go?simulations=9"),
        ("gtp:'/games/my engines/gnugo' --mode gtp --secret /games/key", "gnugo"),
        ("gtp:cat", "cat"),
        ("uci:/games/stockfish x?SyzygyPath=/a b&Skill Level=0", "stockfish"),
    ],
)
def test_public_names_have_no_directory_and_no_arguments(spec, name):
    assert public_name(spec) == name
