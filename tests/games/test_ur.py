import re

import numpy as np
import pytest
from compiled_games import compiled

from azjax.games import host, make, ur

GAME = compiled("ur")
WHITE, BLACK = 0, 1
PASS, HOME = 0, 15


def position(own, other, roll, player=WHITE, num_moves=0):
    """Returns the position of the pieces of the player to move and of the opponent.

    own, other: the places of those that are not at the start, 1 to 15.
    """
    return ur.State(
        pieces=tuple(
            np.uint32(sum(1 << place for place in side)) for side in (own, other)
        ),
        roll=np.int8(roll),
        num_moves=np.int16(num_moves),
        current_player=np.int8(player),
        outcome=np.int8(0),
        terminated=np.bool_(False),
    )


def places(side):
    """Returns the places of the pieces of a player that are not at the start."""
    bits = int(side)
    squares = [place for place in range(1, HOME) if bits >> place & 1]
    return squares + [HOME] * (bits >> HOME)


def legal(own, other, roll, game=GAME):
    return host.legal_actions(game, position(own, other, roll))


def after(own, other, roll, action, player=WHITE):
    """Returns the pieces of the player who moved and of the opponent, and the player
    who rolls next.
    """
    state = host.next_state(GAME, position(own, other, roll, player), action)
    assert host.waits_for_chance(GAME, state)
    sides = list(map(places, state.pieces))
    next_player = int(state.current_player)
    return *(sides if next_player == player else sides[::-1]), next_player


both_players = pytest.mark.parametrize("player", [WHITE, BLACK])


def test_the_dice_are_thrown_before_each_move(engine):
    rolls = engine("ur").PlainUr(**GAME.options).chance_outcomes()
    probabilities = [probability for _, probability in rolls]
    assert [roll for roll, _ in rolls] == [0, 1, 2, 3, 4]
    state = host.first_state(GAME)
    np.testing.assert_array_equal(
        host.outcome_probabilities(GAME, state), probabilities
    )
    assert host.legal_moves(GAME, state) == [16, 17, 18, 19, 20]
    assert GAME.move_to_text(state, 19) == "roll 3"
    state = host.next_state(GAME, state, 19)
    assert not host.waits_for_chance(GAME, state)
    assert (state.roll, state.current_player) == (3, WHITE)
    assert host.legal_moves(GAME, state) == [3]
    state = host.next_state(GAME, state, 3)
    assert host.waits_for_chance(GAME, state)
    assert state.current_player == BLACK


def test_a_piece_moves_by_the_roll_and_not_to_an_own_piece():
    assert legal([], [], 2) == [2]
    assert legal([2], [], 2) == [4]
    assert legal([1, 3, 6], [], 2) == [2, 5, 8]
    assert legal([1, 2, 3, 4, 5, 6, 7], [], 1) == [8]
    # Nobody is left at the start.
    assert legal([1], [], 3, game=compiled("ur:1")) == [4]
    assert legal([1, HOME], [], 3, game=compiled("ur:2")) == [4]


@both_players
def test_a_piece_on_a_shared_square_is_captured(player):
    assert after([3, 9], [6, 7], 3, 6, player) == ([6, 9], [7], 1 - player)
    # The other rows are not shared.
    for square in (1, 4, 13, 14):
        own, other, _ = after([square - 1], [square], 1, square, player)
        assert (own, other) == ([square], [square])


@both_players
@pytest.mark.parametrize("rosette", [4, 8, 14])
def test_a_rosette_gives_another_throw(rosette, player):
    for square in rosette - 1, rosette, rosette + 1:
        own, _, next_player = after([square - 1], [], 1, square, player)
        assert own == [square]
        assert next_player == (player if square == rosette else 1 - player)


def test_a_piece_on_the_rosette_in_the_middle_is_not_captured():
    assert legal([6, 7], [8], 2) == [2, 9]
    assert legal([6, 7], [9], 2) == [2, 8, 9]
    assert after([6, 7], [9], 2, 9) == ([6, 9], [], BLACK)


def test_a_piece_goes_home_by_the_exact_roll():
    game = compiled("ur:2")
    assert legal([13, 14], [], 1, game) == [HOME]
    assert legal([13, 14], [], 2, game) == [HOME]
    assert legal([13, 14], [], 3, game) == [PASS]
    assert legal([11, 12], [], 4, game) == [HOME]
    state = position([12, HOME], [9, HOME], 3)
    assert game.evaluate(state) == pytest.approx((12 - 9) / 30)
    state = host.next_state(game, state, HOME)
    assert state.terminated
    assert host.rewards(game, state) == (1, -1)
    assert not host.outcome_probabilities(game, state).any()
    assert game.result_text(state) == "2 to 1"


@both_players
def test_who_cannot_move_passes(player):
    assert legal([3, 9], [], 0) == [PASS]
    assert legal([1, 2, 3, 4, 5, 6], [8], 4, compiled("ur:6")) == [7, 9, 10]
    blocked = [4, 6, 14, 13, HOME, HOME, HOME]
    assert legal(blocked, [8], 4) == [10]
    assert legal([6, 14, 13, *[HOME] * 4], [8], 4) == [10]
    stuck = [6, *[HOME] * 6]
    assert legal(stuck, [8], 2) == [PASS]
    assert after(stuck, [8], 2, PASS, player) == (stuck, [8], 1 - player)


@both_players
def test_a_game_is_a_draw_after_the_limit_of_moves(player):
    game = compiled("ur:2,30")
    state = position([12, HOME], [14, HOME], 2, player, num_moves=29)
    assert game.result_text(state) == ""
    state = host.next_state(game, state, 14)
    assert state.terminated
    assert host.rewards(game, state) == (0, 0)
    assert not host.outcome_probabilities(game, state).any()
    assert game.result_text(state) == "move limit"
    # The last move can win.
    state = position([12, HOME], [14, HOME], 3, player, num_moves=29)
    state = host.next_state(game, state, HOME)
    assert host.rewards(game, state)[player] == 1
    assert game.without_move_limit().max_moves == 32767


@both_players
def test_an_action_before_the_throw_and_a_needless_pass_are_illegal(player):
    waiting = position([], [], -1, player)
    assert not GAME.legal_action_mask(waiting).any()
    for state, action in (waiting, PASS), (position([], [], 2, player), PASS):
        end = host.next_state(GAME, state, action)
        assert end.terminated
        assert host.rewards(GAME, end)[player] == -1
        assert GAME.result_text(end) == ""


def test_random_games_are_shorter_than_the_limit(random_games):
    """200,000 games had 157 moves on average, and 270 at most."""
    over = random_games(make("ur"), 20)["terminated"]
    lengths = over.argmax(axis=1)
    assert over[:, -1].all()
    assert 130 < lengths.mean() < 185
    assert lengths.max() < make("ur").max_moves


# Notation and drawings


def test_actions_are_named_by_squares():
    names = "pass d1 c1 b1 a1 a2 b2 c2 d2 e2 f2 g2 h2 h1 g1 home"
    for player, row in (WHITE, "1"), (BLACK, "3"):
        state = position([], [], 1, player)
        texts = [GAME.action_to_text(state, action) for action in range(16)]
        assert " ".join(texts) == names.replace("1", row)
        assert GAME.action_cells(state, PASS) == ()
        assert GAME.action_cells(state, 5) == ((1, 0),)
        assert GAME.action_cells(state, HOME) == ((2 - 2 * player, 5),)
    with pytest.raises(ValueError, match="action 16 of ur"):
        GAME.action_to_text(state, 16)


@pytest.fixture
def state():
    """Black has rolled 3, after White moved to `c2`."""
    return position([3, 5, 8, HOME, HOME], [4, 7, 10, HOME], 3, BLACK)


def test_a_position_is_drawn_with_the_roll(state):
    assert GAME.to_text(state, 7).splitlines() == [
        "  a  b  c  d  e  f  g  h roll",
        "3 *  O  .  .  2  2  *  .  3",
        "2 O  . [X] O  .  X  .  .",
        "1 X  .  .  .  3  X  *  .",
    ]
    expected = [
        [-1, 12, -1, -1, 13, 13, -1, -1, 22],
        [12, -1, 0, 12, -1, 0, -1, -1, -1],
        [0, -1, -1, -1, 2, 0, -1, -1, -1],
    ]
    np.testing.assert_array_equal(GAME.board(state), expected)
    svg = GAME.to_svg(state, 7)
    title = svg[svg.index("<title>") : svg.index("</title>")]
    assert title.endswith(
        "4 white pieces, 1 piles of 3 white pieces, 3 black pieces, "
        "2 piles of 2 black pieces, 1 rolls of 3 by black, last move c2"
    )
    assert re.findall(r'bold"[^>]*>(\d)<', svg) == list("22" + "3" + "3")


def test_the_square_of_the_last_move_is_marked():
    """After a pass or a roll there is none."""
    generator, marked = np.random.default_rng(0), set()
    state = host.first_state(GAME)
    while not state.terminated:
        move = host.random_outcome_move(GAME, state, generator)
        state = host.next_state(GAME, state, move)
        assert GAME.last_cells(state, move) == ()
        move = int(generator.choice(host.legal_actions(GAME, state)))
        cells = GAME.action_cells(state, move)
        state = host.next_state(GAME, state, move)
        assert GAME.last_cells(state, move) == cells
        marked.add(cells)
    assert len(marked) > 20


def test_policies_are_arrows_from_square_to_square(state):
    policy = np.zeros(16)
    policy[[6, 11]] = 0.25, 0.75
    arrows = GAME.policies_on_board(state, {"network": policy})["network"]
    assert arrows == [((0, 1), (1, 1), 0.25), ((1, 3), (1, 6), 0.75)]
    policy = np.eye(16)[PASS]
    found = GAME.policies_on_board(position([3], [], 0), {"network": policy})
    assert found == {"network (pass 100%)": []}


def test_the_observation_is_the_board_of_the_player_to_move(state):
    seen = np.asarray(GAME.observe(state))
    as_white = position([3, 5, 8, HOME, HOME], [4, 7, 10, HOME], 3, WHITE)
    np.testing.assert_array_equal(seen, GAME.observe(as_white))
    planes = [
        "........ O..O.... .O......",
        "O....... ..O..O.. ........",
        # From 3 to 6, from 8 to 11, and from the start to 3 it cannot.
        "........ .O....O. ........",
        "O.....O. ...O.... O.....O.",
    ]
    for plane, picture in enumerate(planes):
        expected = np.array([[*row] for row in picture.split()]) == "O"
        np.testing.assert_array_equal(seen[..., plane], expected)
    expected = np.array([0, 0, 1, 0, 2 / 7, 2 / 7, 3 / 7, 1 / 7], np.float32)
    np.testing.assert_allclose(seen[..., 4:] - expected, 0, atol=1e-7)


def test_wrong_options_are_named():
    for options, message in (
        ({"pieces": 8}, "pieces of ur .* 1 to 7: 8"),
        ({"max_moves": 0}, "max_moves of ur .* 1 to 32767: 0"),
    ):
        with pytest.raises(ValueError, match=message):
            make("ur", **options)


# Other engines


@pytest.mark.parametrize(
    "spec",
    [
        *("ur", "ur:3,20"),
        *(pytest.param(spec, marks=pytest.mark.slow) for spec in ("ur:2", "ur:1")),
    ],
)
def test_a_plain_engine_agrees_at_every_position(engine, random_games, spec):
    game = make(spec)
    record = random_games(game, 20)
    counts = engine("ur").compare(game, record)
    assert counts.pop("positions") > 20 * 10
    assert not any(counts.values())
    # The comparison detects a wrong rule.
    wrong = {name: np.array(facts[:10]) for name, facts in record.items()}
    wrong["legal"][:, 1, 0] ^= True
    wrong["board"][:, 2, 0, 0] += 1
    counts = engine("ur").compare(game, wrong)
    assert counts["legal"] == counts["board"] == 10
