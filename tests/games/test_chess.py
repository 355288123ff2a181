"""Expected results come from the FIDE rules, chessprogramming.org (counts) and
python-chess.
"""

import chess
import jax
import numpy as np
import pytest
from compiled_games import compiled, legal_texts, play, stack

from azjax.games import host, make

GAME = compiled("chess")
WITH_REPETITION = compiled("chess:repetition=True")
SHORT = make("chess", repetition=True, max_moves=100)
FIRST = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
WHITE_WINS, BLACK_WINS, DRAW = [1, -1], [-1, 1], [0, 0]
# It contains every kind of move except promotions.
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"


def read(fen, game=GAME):
    """Returns the position as NumPy arrays."""
    return jax.device_get(game.from_fen(fen))


def exchanged(fen):
    """Returns the FEN with exchanged colors and the board upside down."""
    ranks, player, castling, passing, *numbers = fen.swapcase().split()
    return " ".join(
        [
            "/".join(reversed(ranks.split("/"))),
            {"W": "b", "B": "w"}[player],
            castling,
            passing.lower().translate(str.maketrans("36", "63")),
            *numbers,
        ]
    )


def test_actions_are_numbered_as_documented():
    state = GAME.init()
    for text, square, plane in (
        ("e2e3", 52, 0),  # one square straight ahead
        ("e2e4", 52, 8),  # two
        ("g1h3", 62, 56),  # two ahead, one to the right
        ("g1f3", 62, 63),  # two ahead, one to the left
    ):
        assert GAME.text_to_action(state, text) == 73 * square + plane
    state = read("3n1n2/4P3/8/8/8/8/k6K/8 w - - 0 1")
    for text, plane in (("e7d8n", 64), ("e7e8n", 65), ("e7f8b", 69), ("e7e8r", 71)):
        assert GAME.text_to_action(state, text) == 73 * 12 + plane
    for text, plane in (("e7e8q", 0), ("e7f8q", 1), ("e7d8q", 7)):
        assert GAME.text_to_action(state, text) == 73 * 12 + plane


ROOKS = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"
CASTLINGS = {
    "both": (ROOKS, "e1g1 e1c1"),
    "black": (ROOKS.replace("w", "b"), "e8g8 e8c8"),
    "right lost": (ROOKS.replace("KQkq", "Qkq"), "e1c1"),
    "not empty": ("4k3/8/8/8/8/8/8/RN2K1NR w KQ - 0 1", ""),
    "b1 not empty": ("4k3/8/8/8/8/8/8/RN2K2R w KQ - 0 1", "e1g1"),
    "in check": ("4k3/8/8/8/4r3/8/8/R3K2R w KQ - 0 1", ""),
    "through check": ("4k3/8/8/8/5r2/8/8/R3K2R w KQ - 0 1", "e1c1"),
    "into check": ("4k3/8/8/8/6r1/8/8/R3K2R w KQ - 0 1", "e1c1"),
    "rooks attacked": ("4k3/8/8/8/1r5r/8/8/R3K2R w KQ - 0 1", "e1g1 e1c1"),
    "by a pawn": ("4k3/8/8/8/8/8/6p1/R3K2R w KQ - 0 1", "e1c1"),
    "by the king": ("8/8/8/8/8/8/1k6/R3K2R w KQ - 0 1", "e1g1"),
}


@pytest.mark.parametrize("case", CASTLINGS)
def test_castling_is_legal_under_its_conditions(case):
    fen, castlings = CASTLINGS[case]
    found = legal_texts(GAME, read(fen)) & {"e1g1", "e1c1", "e8g8", "e8c8"}
    assert found == set(castlings.split())


@pytest.mark.parametrize(
    ("fen", "moves", "expected"),
    [
        # Kings and rooks that move or are captured lose castling rights.
        (ROOKS, "O-O", "r3k2r/8/8/8/8/8/8/R4RK1 b kq - 1 1"),
        (ROOKS, "O-O-O O-O", "r4rk1/8/8/8/8/8/8/2KR3R w - - 2 2"),
        (ROOKS, "Ke2", "r3k2r/8/8/8/8/8/4K3/R6R b kq - 1 1"),
        (ROOKS, "Rh5", "r3k2r/8/8/7R/8/8/8/R3K3 b Qkq - 1 1"),
        (ROOKS, "Rxa8+", "R3k2r/8/8/8/8/8/8/4K2R b Kk - 0 1"),
        # A pawn that is captured en passant is removed.
        (
            *(FIRST, "e4 a6 e5 d5 exd6"),
            "rnbqkbnr/1pp1pppp/p2P4/8/8/8/PPPP1PPP/RNBQKBNR b KQkq - 0 3",
        ),
        # The en passant square is named where a capture is legal.
        (FIRST, "e4", "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"),
        (
            *(FIRST, "e4 a6 e5 d5"),
            "rnbqkbnr/1pp1pppp/p7/3pP3/8/8/PPPP1PPP/RNBQKBNR w KQkq d6 0 3",
        ),
        # A pawn promotes to each of four pieces.
        *(
            (
                *("r5k1/1P6/8/8/8/8/8/K7 w - - 5 40", f"b7a8{piece}"),
                f"{piece.upper()}5k1/8/8/8/8/8/8/K7 b - - 0 40",
            )
            for piece in "qrbn"
        ),
        # Other positions are written as they were read.
        (ROOKS.replace("w KQkq - 0 1", "b Kq - 12 34"), "", None),
        ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 7 100", "", None),
    ],
)
def test_moves_lead_to_the_position(fen, moves, expected):
    assert GAME.to_fen(play(GAME, moves, read(fen))) == (expected or fen)


EN_PASSANT = {
    "right": ("4k3/8/8/1pPp4/8/8/8/4K3 w - d6 0 2", "c5d6", True),
    "left": ("4k3/8/8/1pPp4/8/8/8/4K3 w - b6 0 2", "c5b6", True),
    "other": ("4k3/8/8/1pPp4/8/8/8/4K3 w - b6 0 2", "c5d6", False),
    "late": ("4k3/8/8/1pPp4/8/8/8/4K3 w - - 0 2", "c5d6", False),
    "black": ("4k3/8/8/8/pP6/8/8/4K3 b - b3 0 1", "a4b3", True),
    "far edge": ("4k3/8/8/p6P/8/8/8/4K3 w - a6 0 2", "h5a6", False),
    "opens the rank": ("8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1", "e4d3", False),
    "opens no line": ("8/8/8/8/k2Pp2N/8/8/3K4 b - d3 0 1", "e4d3", True),
    "ends a check": ("8/8/8/2k5/3Pp3/8/8/4K3 b - d3 0 1", "e4d3", True),
    "pinned": ("4r1k1/8/8/3pP3/8/8/8/4K3 w - d6 0 2", "e5d6", False),
}


@pytest.mark.parametrize("case", EN_PASSANT)
def test_pawns_are_captured_en_passant(case):
    fen, move, is_legal = EN_PASSANT[case]
    assert (move in legal_texts(GAME, read(fen))) == is_legal


@pytest.mark.parametrize(
    ("moves", "fen", "rewards", "result_text"),
    [
        ("f3 e5 g4 Qh4#", FIRST, BLACK_WINS, "checkmate"),
        ("e4 e5 Qh5 Nc6 Bc4 Nf6 Qxf7#", FIRST, WHITE_WINS, "checkmate"),
        ("Qg6", "7k/5K2/8/6Q1/8/8/8/8 w - - 0 1", DRAW, "stalemate"),
        ("Rh2", "k7/8/8/8/8/8/8/K6R w - - 99 80", DRAW, "fifty moves"),
        ("Rh8", "k7/8/1K6/8/8/8/8/7R w - - 99 80", WHITE_WINS, "checkmate"),
        ("Kxb2", "7k/8/8/8/8/8/1r6/K7 w - - 0 1", DRAW, "insufficient material"),
        ("Kb7", "k7/8/8/8/8/8/8/K6R b - - 10 256", DRAW, "limit of moves"),
    ],
)
def test_games_end_with_the_expected_result(moves, fen, rewards, result_text):
    state = read(fen)
    assert not state.terminated
    state = play(GAME, moves, state)
    assert state.terminated
    np.testing.assert_array_equal(GAME.rewards(state), rewards)
    assert GAME.result_text(state) == result_text


def test_pawn_moves_and_captures_reset_the_fifty_move_clock():
    for move in "a3", "Rxb2":
        state = play(GAME, move, read("k7/8/8/8/8/8/Pn6/KR6 w - - 99 80"))
        assert not state.terminated
        assert state.halfmove_clock == 0


@pytest.mark.parametrize(
    ("row", "is_drawn"),
    [
        *((row, True) for row in ("8", "N7", "B7", "B1b1B3")),
        *((row, False) for row in ("NN6", "Nn6", "Bn6", "P7", "R7", "Q7", "Bb6")),
    ],
)
def test_insufficient_material_is_a_draw(row, is_drawn):
    """Bishops on squares of one color are insufficient, however many."""
    assert read(f"8/7k/8/{row}/8/8/8/7K w - - 0 1").terminated == is_drawn


@pytest.mark.slow
def test_the_third_occurrence_is_a_draw_with_repetitions():
    there_and_back = "Nf3 Nf6 Ng1 Ng8 "
    for moves in (2 * there_and_back).rsplit(maxsplit=1)[0], 2 * there_and_back:
        state = play(WITH_REPETITION, moves)
        assert state.terminated == (moves == 2 * there_and_back)
    np.testing.assert_array_equal(WITH_REPETITION.rewards(state), DRAW)
    assert WITH_REPETITION.result_text(state) == "threefold repetition"
    assert not play(GAME, 2 * there_and_back).terminated


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fen", "moves", "num_moves"),
    [  # with a right or a capture that is lost, and without
        ("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "Rg1 Ke7 Rh1 Ke8", 9),
        ("4k3/8/8/8/8/8/8/4K2R w - - 0 1", "Rg1 Ke7 Rh1 Ke8", 8),
        ("4k3/8/8/8/3pP3/8/8/4K3 b - e3 0 1", "Ke7 Kd1 Ke8 Ke1", 9),
        ("4k3/8/8/8/4P3/7p/8/4K3 b - e3 0 1", "Ke7 Kd1 Ke8 Ke1", 8),
    ],
)
def test_positions_are_equal_only_with_equal_legal_moves(fen, moves, num_moves):
    moves = (3 * moves.split())[:num_moves]
    state = play(WITH_REPETITION, " ".join(moves[:-1]), read(fen, WITH_REPETITION))
    assert not state.terminated
    assert play(WITH_REPETITION, moves[-1], state).terminated


def test_an_illegal_move_loses():
    assert GAME.result_text(GAME.init()) == ""
    for action in 0, -1, GAME.num_actions, 73 * 52 + 16:
        state = host.next_state(GAME, GAME.init(), action)
        assert state.terminated
        np.testing.assert_array_equal(GAME.rewards(state), BLACK_WINS)
        assert GAME.result_text(state) == ""


def test_step_accepts_exactly_the_legal_moves():
    state = read(KIWIPETE)
    legal = np.asarray(GAME.legal_action_mask(state))
    own = (np.asarray(GAME.board(state)) >= 0) & (np.asarray(GAME.board(state)) < 6)
    # All moves of own pieces, and one way to move from each other square.
    actions = np.arange(GAME.num_actions, dtype=np.int32).reshape(64, 73)
    actions = [*actions[own.ravel()].ravel(), *actions[~own.ravel(), 8]]
    ends = [bool(host.next_state(GAME, state, action).terminated) for action in actions]
    np.testing.assert_array_equal(ends, ~legal[actions])
    assert legal[actions].sum() == legal.sum() == 48


@pytest.mark.parametrize(
    ("fen", "message"),
    [
        ("", "6 fields, this one 0"),
        ("k7/8/8/8/8/8/8/K7 w - -", "6 fields, this one 4"),
        ("k7/8/8/8/8/8/K7 w - - 0 1", "8 ranks, this one 7"),
        ("k7/8/8/8/8/8/8/K6 w - - 0 1", "'K6' has 7 squares"),
        ("k7/8/8/8/8/8/8/K8 w - - 0 1", "'K8' has 9 squares"),
        ("k7/8/8/8/8/8/44/K7 w - - 0 1", "two numbers follow each other in rank '44'"),
        ("k7/8/8/8/8/8/8/KX6 w - - 0 1", "'X'"),
        ("k7/9/8/8/8/8/8/K7 w - - 0 1", "'9'"),
        ("8/8/8/8/8/8/8/K7 w - - 0 1", "black has 0 kings"),
        ("k7/8/8/8/8/8/8/KK6 w - - 0 1", "white has 2 kings"),
        ("k6P/8/8/8/8/8/8/K7 w - - 0 1", "a white pawn stands on the first or last"),
        ("k7/8/8/8/8/8/8/K6p w - - 0 1", "a black pawn stands on the first or last"),
        ("k7/8/8/8/Q7/QP6/PPPPPPP1/K7 b - - 0 1", "more pieces than 8 pawns"),
        ("k7/8/8/8/8/8/8/K7 x - - 0 1", "'x'"),
        ("k7/8/8/8/8/8/8/K7 w KA - 0 1", "'KA'"),
        ("r3k3/8/8/8/8/8/8/4K3 w qq - 0 1", "'qq'"),
        ("k7/8/8/8/8/8/8/4K3 w K - 0 1", "K needs K on e1 and R on h1"),
        ("r2k4/8/8/8/8/8/8/4K3 w q - 0 1", "q needs k on e8 and r on a8"),
        ("k7/8/8/8/8/8/8/K7 w - e3 0 1", "rank 6 when white is to move"),
        ("k7/8/8/8/8/8/8/K7 w - e6 0 1", "double step over e6"),
        ("k7/4p3/8/4p3/8/8/8/K7 w - e6 0 1", "double step over e6"),
        ("k7/8/8/4p3/8/8/8/K7 w - e6 3 1", "halfmove clock is 0"),
        ("k7/8/8/8/8/8/8/K7 w - - -1 1", "halfmove clock is a number from 0 to 100"),
        ("k7/8/8/8/8/8/8/K7 w - - 101 90", "halfmove clock is a number from 0 to 100"),
        ("k7/8/8/8/8/8/8/K7 w - - 0 0", "move number is a number from 1"),
        ("k7/8/8/8/8/8/8/K7 w - - 0 x", "'x'"),
        ("k7/8/8/8/8/8/8/K7 w - - 0 300", "larger max_moves"),
        ("k6R/8/8/8/8/8/8/K7 w - - 0 1", "black is in check and not to move"),
        ("k7/1K5R/8/8/8/8/8/8 w - - 0 1", "the kings stand next to each other"),
        ("8/8/8/8/8/8/R7/4kK2 b - - 0 1", "the kings stand next to each other"),
    ],
)
def test_an_invalid_fen_is_refused_with_its_fault(fen, message):
    with pytest.raises(ValueError, match="FEN") as error:
        GAME.from_fen(fen)
    assert message in str(error.value)


def test_moves_are_accepted_in_several_notations():
    state = read(KIWIPETE)
    for move, texts in {
        "e5f7": ("e5f7", " E5F7 ", "Nxf7", "Ne5xf7"),
        "d5e6": ("dxe6!", "d5xe6"),
        "a2a4": ("a4", "a2-a4"),
        "e1g1": ("O-O", "o-o"),
        "e1c1": ("0-0-0",),
        "e1f1": ("Kf1", "Ke1-f1"),
        "h1f1": ("Rf1",),
        "c3b1": ("Nb1",),
        "c3b5": ("N3b5",),
    }.items():
        for text in texts:
            found = GAME.action_to_text(state, GAME.text_to_action(state, text))
            assert found == move, text


def test_a_promotion_without_a_piece_is_to_a_queen():
    state = read("1n4k1/P7/8/8/8/8/8/K7 w - - 0 1")
    for text in "a7b8", "a7b8q", "axb8=Q+", "axb8", "axb8=q", "a7xb8":
        assert GAME.action_to_text(state, GAME.text_to_action(state, text)) == "a7b8q"


def test_the_text_of_an_illegal_move_is_refused():
    for message, texts in {
        "is no move": ("", "castle", "e9"),
        "is not legal here; legal: ": ("e2e5", "Qd3", "O-O", "e7e5"),
    }.items():
        for text in texts:
            with pytest.raises(ValueError, match=f"{text!r} {message}.*g1f3"):
                GAME.text_to_action(GAME.init(), text)


def test_ambiguous_text_and_moves_after_the_end_are_refused():
    state = read("7k/8/8/8/8/8/8/KR3R2 w - - 0 1")
    with pytest.raises(ValueError, match="'Rd1' may mean each of b1d1 f1d1"):
        GAME.text_to_action(state, "Rd1")
    with pytest.raises(ValueError, match="over"):
        GAME.text_to_action(play(GAME, "f3 e5 g4 Qh4"), "a3")


def test_every_action_has_a_unique_text():
    state = read("8/PPPPPPPP/8/8/8/7k/8/K7 w - - 0 1")
    texts = [GAME.action_to_text(state, action) for action in range(4672)]
    assert len(set(texts)) == len(texts)
    for action in -1, GAME.num_actions:
        with pytest.raises(ValueError, match=str(action)):
            GAME.action_to_text(state, action)


@pytest.mark.parametrize(
    "fen",
    [
        "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 3 9",
        "rnbqkbnr/1pp1pppp/p7/3pP3/8/8/PPPP1PPP/RNBQKBNR w KQkq d6 0 3",
        "r3k2r/8/8/8/8/8/8/R3K2R b Kq - 12 34",
    ],
)
def test_the_observations_of_black_and_white_are_equivalent(fen):
    ours, theirs = read(fen), read(exchanged(fen))
    for look in GAME.observe, GAME.legal_action_mask:
        np.testing.assert_array_equal(look(ours), look(theirs))


def test_the_observation_has_the_documented_planes():
    state = read("rnbqkbnr/1pp1pppp/p7/3pP3/8/8/PPPP1PPP/RNBQKBNR w KQq d6 0 3")
    seen, board = np.asarray(GAME.observe(state)), np.asarray(GAME.board(state))
    for piece in range(12):
        np.testing.assert_array_equal(seen[..., piece], board == piece)
    assert [seen[..., plane].mean() for plane in (12, 13, 14, 15)] == [1, 1, 0, 1]
    assert np.argwhere(seen[..., 16]).tolist() == [[2, 3]]
    later = np.asarray(GAME.observe(read("k7/8/8/8/8/8/8/K6R w - - 25 80")))
    np.testing.assert_allclose(later[..., 29], 0.25)


def test_the_observation_has_the_squares_that_each_kind_of_piece_attacks():
    generator = np.random.default_rng(0)
    for _ in range(20):
        board = chess.Board()
        for _ in range(generator.integers(100)):
            if not board.is_game_over():
                board.push(generator.choice(list(board.legal_moves)))
        if board.is_game_over():
            continue
        seen = np.asarray(GAME.observe(read(board.fen())))[..., 17:29]
        if board.turn == chess.BLACK:
            seen = seen[::-1]
        sides = [
            (color, kind)
            for color in (board.turn, not board.turn)
            for kind in chess.PIECE_TYPES
        ]
        for plane, (color, kind) in enumerate(sides):
            squares = chess.SquareSet()
            for square in board.pieces(kind, color):
                squares |= board.attacks(square)
            expected = np.array(squares.tolist()).reshape(8, 8)[::-1]
            np.testing.assert_array_equal(seen[..., plane], expected)


@pytest.mark.slow
def test_the_observation_contains_repetitions_if_they_count():
    once = play(WITH_REPETITION, "Nf3 Nf6 Ng1")
    again = play(WITH_REPETITION, "Ng8", once)
    assert np.asarray(WITH_REPETITION.observe(once))[..., 30].max() == 0
    assert np.asarray(WITH_REPETITION.observe(again))[..., 30].min() == 1


def test_the_squares_of_the_last_move_are_marked():
    for fen, move, cells in (
        ("k7/8/8/8/8/8/8/K6R w - - 0 1", "h1h8", ((7, 7), (0, 7))),
        ("k6r/8/8/8/8/8/8/K7 b - - 0 1", "h8h1", ((0, 7), (7, 7))),
    ):
        before = read(fen)
        action = GAME.text_to_action(before, move)
        assert GAME.last_cells(play(GAME, move, before), action) == cells


def test_positions_and_policies_are_drawn():
    lines = GAME.to_text(GAME.init()).split("\n")
    assert lines[1].split() == ["8", *"rnbqkbnr"]
    assert lines[8].split() == ["1", *"RNBQKBNR"]
    # A policy has arrows.
    state = read("8/P7/8/8/8/8/k6K/8 w - - 0 1")
    policy = np.zeros(GAME.num_actions)
    policy[[GAME.text_to_action(state, t) for t in ("a7a8q", "a7a8n")]] = 0.5, 0.25
    assert ">75%<" in GAME.to_svg(state, policies={"network": policy})


def test_invalid_options_are_refused():
    refused = {"repetition": (1, "yes"), "max_moves": (0, 1.5, True, 100_000)}
    for name, values in refused.items():
        for value in values:
            with pytest.raises(ValueError, match=f"{name} of chess .*{value!r}"):
                make("chess", **{name: value})


@pytest.mark.parametrize(
    "number", [1, 2, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 4, 5))]
)
def test_the_number_of_lines_of_three_moves_is_the_published_one(engine, number):
    rules = engine("chess_rules")
    fen, counts = list(rules.PERFT.items())[number]
    assert rules.perft(GAME, read(fen), 3) == counts[2]


@pytest.fixture(scope="module")
def record(engine):
    """Returns random games, replayed below."""
    player = engine("chess_rules").make_player(SHORT, 0.3)
    firsts = stack([compiled(SHORT).init()] * 4)
    return jax.device_get(player(firsts, jax.random.split(jax.random.key(0), 4)))


def test_python_chess_agrees_at_every_position(engine, record):
    rules = engine("chess_rules")
    counts = rules.compare(SHORT, record)
    assert counts["positions"] > 100
    assert {fact: counts[fact] for fact in rules.FACTS} == dict.fromkeys(rules.FACTS, 0)


@pytest.mark.parametrize(
    "name", ["legal", "board", "player", "rewards", "terminated", "en_passant"]
)
def test_a_wrong_fact_is_detected(engine, record, name):
    wrong = record[name].copy()
    wrong[3, 5] = 1 - wrong[3, 5]
    counts = engine("chess_rules").compare(SHORT, {**record, name: wrong})
    assert counts["fen" if name == "en_passant" else name] > 0


def test_a_wrong_rule_is_detected(engine, record):
    without_repetition = make("chess", max_moves=100)
    counts = engine("chess_rules").compare(without_repetition, record)
    assert counts["terminated"] > 0


@pytest.mark.parametrize(
    ("fen", "lead"),
    [
        ("4k3/8/8/8/8/8/P7/QRBN1K2 w - - 0 1", 9 + 5 + 3 + 3 + 1),
        ("4k3/8/8/8/8/8/P7/QRBN1K2 b - - 0 1", -(9 + 5 + 3 + 3 + 1)),
        ("rnbqk3/8/8/8/8/8/8/RQ2K3 w - - 0 1", 5 + 9 - (5 + 3 + 3 + 9)),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 1", 0),
    ],
)
def test_the_heuristic_value_counts_material(fen, lead):
    assert GAME.evaluate(read(fen)) == pytest.approx(lead / (10 + abs(lead)))


def test_front_ends_have_no_short_limit_of_moves():
    for game in GAME, WITH_REPETITION:
        endless = game.without_move_limit()
        assert endless == make("chess", repetition=game.repetition, max_moves=9999)
        assert endless.without_move_limit() == endless
