import os
import re
import subprocess

import jax
import jax.numpy as jnp
import pytest
from flax import struct

from azjax import games, players
from azjax.games.host import first_state
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.play.gtp import Engine
from azjax.search import GumbelConfig


class Scripted:
    """An external player with scripted moves."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def start_session(self, game, seed):
        return self

    def choose(self, state, moves):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return players.MoveDecision(answer)

    def close(self):
        pass


def test_the_protocol_and_the_commands_are_listed(talk):
    asked = talk("go:5", "random").ask(
        "1 protocol_version", "2 name", "3 known_command genmove", "known_command x"
    )
    assert asked == ["=1 2", "=2 azjax", "=3 true", "= false"]
    needed = """protocol_version name version known_command list_commands quit boardsize
        clear_board komi play genmove"""
    for game in ("go:5", "tic_tac_toe"):
        listed = talk(game, "random").ask("list_commands")[0][2:].split()
        assert {*needed.split()} <= {*listed}
        assert ("fixed_handicap" in listed) == ("loadsgf" in listed) == (game == "go:5")


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("frobnicate", "? unknown command"),
        ("7 frobnicate", "?7 unknown command"),
        ("7", "?7 unknown command"),
        ("known_command", "? syntax error"),
        ("boardsize", "? syntax error"),
        ("boardsize five", "? syntax error"),
        ("boardsize -5", "? syntax error"),
        ("boardsize " + "9" * 5000, "? syntax error"),
        ("boardsize 1", "? unacceptable size"),
        ("boardsize 20", "? unacceptable size"),
        ("boardsize 1000000", "? unacceptable size"),
        ("komi", "? syntax error"),
        ("komi much", "? syntax error"),
        ("komi nan", "? syntax error"),
        ("komi -inf", "? syntax error"),
        ("play", "? syntax error"),
        ("play b", "? syntax error"),
        ("play green a1", "? syntax error"),
        ("play b a6", "? illegal move"),
        ("play b f1", "? illegal move"),
        ("play b i1", "? illegal move"),
        ("play b 11", "? illegal move"),
        ("play b resign", "? illegal move"),
        ("play w c3", "? illegal move"),
        ("genmove", "? syntax error"),
        ("genmove red", "? syntax error"),
        ("final_status_list", "? syntax error"),
        ("final_status_list asleep", "? syntax error"),
        ("fixed_handicap 4", "? invalid number of stones"),
        ("set_free_handicap a1", "? bad vertex list"),
        ("set_free_handicap a1 A1", "? bad vertex list"),
        ("set_free_handicap a1 pass", "? bad vertex list"),
        ("set_free_handicap a1 z9", "? illegal move"),
        ("set_free_handicap a1 a2", "? board not empty"),
        ("lz-analyze b fast", "? syntax error"),
        ("lz-analyze b interval", "? syntax error"),
        ("lz-analyze avoid b a1 1 x", "? syntax error"),
        ("lz-analyze b avoid b a1", "? syntax error"),
        ("kata-analyze b allow b a1,z9 1", "? syntax error"),
        ("lz-genmove_analyze b allow b c3,c2 1", "? no legal move is left"),
        ("kgs-rules japanese", "? the rules must be one of chinese, aga, new_zealand"),
        ("loadsgf", "? syntax error"),
        ("printsgf game.sgf", "? no file is written: without a name the answer has it"),
    ],
)
def test_a_wrong_line_is_answered_and_changes_nothing(talk, line, answer):
    begin = ["boardsize 5", "play b c3", "play w c2"]
    if line.startswith("set_free_handicap") and "empty" not in answer:
        begin = ["boardsize 5"]
    engine = talk("go:5", "random")
    before = engine.ask(*begin, "showboard")[-1]
    assert engine.ask(line, "showboard") == [answer, before]
    undone = engine.ask(*["undo"] * len(begin))
    assert undone == ["= "] * (len(begin) - 1) + ["? cannot undo"]


def test_invalid_and_long_lines_are_answered_one_by_one_until_quit(talk):
    text = b"\x00\xff\n\n  # nothing\r\nplay\tb\tC3 # good\r\n\x80\x811 undo\n)(*&\n"
    engine = talk("go:5", "random")
    assert engine.send(text) == "= \n\n=1 \n\n? unknown command\n\n"
    long = ["x" * 100_000, "play b c3" + " x" * 100_000]
    assert engine.ask(*long) == ["? unknown command", "= "]
    assert engine.send("5 quit\nname\n") == "=5 \n\n"


def test_a_move_is_generated_and_made(talk):
    engine = talk("go:5", Scripted(0, 24, 25))
    assert engine.ask("reg_genmove b", "genmove b", "genmove w", "showboard") == [
        "= A5",
        "= E1",
        "= pass",
        "= \n  a  b  c  d  e\n5 .  .  .  .  .\n4 .  .  .  .  .\n3 .  .  .  .  .\n"
        "2 .  .  .  .  .\n1 .  .  .  .  X",
    ]


def test_a_failing_player_fails_the_command(talk):
    engine = talk(
        "go:5",
        Scripted(
            players.ResignError("resigned"),
            players.ForfeitError("it died"),
            players.ResignError("resigned"),
            players.ResignError("resigned"),
            7,
        ),
    )
    assert engine.ask(
        "genmove b", "genmove b", "lz-analyze b", "lz-genmove_analyze b", "genmove b"
    ) == ["= resign", "? it died", "? resigned", "= \nplay resign", "= C4"]


def test_moves_are_undone_to_the_first(talk):
    engine = talk("go:5", Scripted(3))
    empty = engine.ask("showboard")
    asked = ["undo", "play b c3", "genmove w", "undo", "undo", "undo", "showboard"]
    wrong = "? cannot undo"
    assert engine.ask(*asked) == [wrong, "= ", "= D5", "= ", "= ", wrong, *empty]


def test_both_names_of_a_color_are_accepted(talk):
    moves = ["play B a1", "play WHITE a2", "play black A3", "play W Pass"]
    asked = [*moves, "final_score"]  # area 2 to 1, and the komi
    assert talk("go:5", "random").ask(*asked) == [*["= "] * 4, "= W+6.5"]


def test_a_move_resumes_a_game_that_two_passes_ended(talk):
    engine = talk("go:5,0.5", Scripted(0, 1, 2, 3))
    asked = ["play b c3", "play w pass", "play b pass", "final_score", "genmove w"]
    assert engine.ask(*asked) == ["= ", "= ", "= ", "= B+24.5", "= A5"]
    assert engine.ask("undo", "reg_genmove b", "genmove b") == ["= ", "= B5", "= C5"]
    assert engine.ask("undo", "play w a1", "lz-genmove_analyze b")[:2] == ["= ", "= "]
    assert engine.ask("final_status_list alive") == ["= D5 C3\nA1"]
    searching = talk("go:3,0.5,max_moves=3", "random")  # there is no limit of moves
    passes = searching.ask("play b pass", "play w pass", "genmove b", "kata-analyze w")
    assert all(answer.startswith("=") for answer in passes)


def test_a_color_can_move_or_pass_several_times_in_a_row(talk):
    engine = talk("go:5,0.5", Scripted(0, 1, 2, 3))
    asked = ["play w c3", "play w c2", "genmove w", "genmove w", "play b d1"]
    assert engine.ask(*asked, "genmove b") == ["= ", "= ", "= A5", "= B5", "= ", "= C5"]
    assert engine.ask("final_status_list alive") == ["= C5 D1\nA5 B5 C3 C2"]
    assert engine.ask(*["undo"] * 7) == ["= "] * 6 + ["? cannot undo"]
    passes = ["play b pass", "play b pass", "play w c3", "play b pass", "play b pass"]
    assert engine.ask(*passes, "genmove b") == [*["= "] * 5, "= D5"]
    assert engine.ask("play w pass", "play w d1", "play w pass") == ["= "] * 3


def test_a_game_without_passes_requires_alternate_moves(talk):
    asked = ["play w a1", "genmove w", "play b a1", "play b b1"]
    answers = ["? illegal move", "? illegal move", "= ", "? illegal move"]
    assert talk("tic_tac_toe", "random").ask(*asked) == answers


def test_ko_and_suicide_are_illegal(talk):
    engine = talk("go:5,0.5", "random")
    vertices = ["c3", "d3", "b2", "e2", "c1", "d1", "a5", "c2", "d2"]
    moves = [f"play {'bw'[turn % 2]} {vertex}" for turn, vertex in enumerate(vertices)]
    assert engine.ask(*moves) == ["= "] * 9
    assert engine.ask("play w c2", "play w e5") == ["? illegal move", "= "]
    assert engine.ask("play b a4", "play w c2") == ["= ", "= "]
    assert engine.ask("clear_board", "play b a2", "play b b1") == ["= "] * 3
    assert engine.ask("play w a1", "play b a1") == ["? illegal move", "= "]


@pytest.mark.parametrize(
    ("name", "size", "other"),
    [("go:5", 5, 7), ("hex:5", 5, 4), ("othello", 8, 10), ("connect_four", 7, 6)],
)
def test_a_game_without_sizes_accepts_only_its_own(talk, name, size, other):
    engine = talk(name, "random")
    changeable = name in ("go:5", "hex:5")
    answers = engine.ask(f"boardsize {size}", f"boardsize {other}")
    fits = name != "connect_four"
    assert answers[0] == ("= " if fits else "? unacceptable size")
    assert answers[1] == ("= " if changeable else "? unacceptable size")


def test_another_size_is_another_game(talk):
    corner = ["boardsize 7", "play b g7", "boardsize 5", "play b g7", "final_score"]
    answers = ["= ", "= ", "= ", "? illegal move", "= W+6.5"]
    assert talk("go:5,6.5", "random").ask(*corner) == answers


def test_the_komi_changes_in_the_middle_of_a_game(talk):
    engine = talk("go:5", Scripted(0))
    asked = ["play b c3", "final_score", "komi 25", "final_score", "komi 30.5"]
    answers = engine.ask(*asked, "final_score", "undo", "undo")
    assert answers[1::2] == ["= B+17.5", "= 0", "= W+5.5", "? cannot undo"]
    assert answers[::2] == ["= "] * 4
    ridiculous = ["komi 1e9", "final_score", "komi -0.3", "play b c3", "final_score"]
    assert engine.ask(*ridiculous)[1::3] == ["= W+25", "= B+25.5"]
    assert talk("othello", "random").ask("komi 6.5") == ["= "]  # it has none


def test_a_player_of_one_game_refuses_others(talk, capsys):
    def load(game):
        if game != games.make("go:5,0.5"):
            raise ValueError(f"not for {game}")
        return Scripted(0)

    conversation = talk("go:5,0.5", "random")
    conversation.engine = Engine(games.make("go:5,0.5"), load)
    asked = ["boardsize 5", "komi 0.5", "boardsize 7", "komi 7.5", "genmove b"]
    answers = ["= ", "= ", "? unacceptable size", "= ", "= A5"]
    assert conversation.ask(*asked) == answers
    assert "azjax: not for go:7,komi=0.5" in capsys.readouterr().err
    with pytest.raises(ValueError, match="not for go:7"):
        Engine(games.make("go:7"), load)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Returns the directory of a small network for 3x3 Go with a komi of 0.5."""
    game = games.make("go:3,0.5")
    config = NetworkConfig(trunk=DenseTrunkConfig(width=8, num_blocks=1))
    network, variables = players.first_network(0, game, config)
    directory = tmp_path_factory.mktemp("run")
    player = players.TrainedPlayer(
        game, network, variables, config, GumbelConfig(), seed=0
    )
    players.save_player(directory, player)
    return directory


@pytest.mark.parametrize("kind", ["network", "alphazero"])
def test_a_network_refuses_another_size_and_accepts_any_komi(talk, run, kind, capsys):
    engine = talk("go:3,0.5", f"{kind}:{run}")
    asked = ["play b b2", "boardsize 4", "komi 20", "komi 20", "final_score"]
    assert engine.ask(*asked) == [
        *("= ", "? unacceptable size", "= ", "= ", "= W+11"),
    ]
    errors = capsys.readouterr().err
    assert f"azjax: the player in {run} is for go:" in errors
    assert errors.count("the network was trained for") == 1
    if kind == "network":  # compiling a search would take long
        assert engine.ask("genmove w")[0].startswith("= ")
    again = engine.ask("boardsize 3", "komi 0.5", "boardsize 19", "showboard")
    assert again[:3] == ["= ", "= ", "? unacceptable size"]
    assert capsys.readouterr().err.count("the network was trained") == 0


def test_the_compilation_of_the_player_is_announced_once(talk, capsys):
    engine, note = talk("go:3", "random"), "azjax: compiling the player"
    engine.ask("showboard", "play b a1")
    assert capsys.readouterr().err == ""
    engine.ask("genmove w", "genmove b", "clear_board", "genmove b")
    assert capsys.readouterr().err.count(note) == 1
    engine.ask("komi 1.5", "genmove w")
    assert capsys.readouterr().err.count(note) == 1
    talk("go:3", Scripted(0)).ask("genmove b")
    assert capsys.readouterr().err == ""


def test_handicap_stones_are_placed_and_not_undone(talk):
    engine = talk("go:9", Scripted(0))
    alive = "final_status_list alive"
    assert engine.ask("fixed_handicap 3", alive) == ["= C3 G7 C7", "= C7 G7 C3"]
    undone = engine.ask("genmove w", "undo", "undo", alive)
    assert undone == ["= A9", "= ", "? cannot undo", "= C7 G7 C3"]
    assert engine.ask("fixed_handicap 2") == ["? board not empty"]
    free = engine.ask("clear_board", "set_free_handicap a1 b2 J9", alive)
    assert free == ["= ", "= ", "= J9 B2 A1"]
    placed = engine.ask("clear_board", "place_free_handicap 50")
    assert placed == ["= ", "= C3 G7 C7 G3 C5 G5 E3 E7 E5"]
    assert engine.ask("final_status_list dead", "final_status_list seki") == ["= "] * 2


@struct.dataclass
class LastPlayer:
    """Chooses the last legal action, which is the pass in Go."""

    game: games.Game = struct.field(pytree_node=False)

    def choose(self, rng_key, states):
        legal = jax.vmap(self.game.legal_action_mask)(states)
        action = legal.shape[-1] - 1 - jnp.argmax(legal[:, ::-1], axis=-1)
        policy = jax.nn.one_hot(action, legal.shape[-1])
        return players.Choice(action, policy, jnp.zeros(len(action)))


def test_a_cleanup_does_not_pass_while_points_are_shared(talk):
    engine = talk("go:3,0.5", LastPlayer(games.make("go:3,0.5")))
    engine.ask("kgs-rules chinese", "play b b2", "play b a2", "play b c2", "play w a1")
    assert engine.ask("genmove b", "undo") == ["= pass", "= "]
    captured = engine.ask("kgs-genmove_cleanup b", "kgs-genmove_cleanup b")
    assert captured == ["= C1", "= B1"]
    assert engine.ask("kgs-genmove_cleanup b") == ["= pass"]


def test_a_game_is_printed_and_loaded_as_sgf(talk, tmp_path):
    engine, path = talk("go:5,2.5", "random"), tmp_path / "game.sgf"
    moves = ["play b c3", "play w d4", "play b pass"]
    *_, board, text = engine.ask(*moves, "showboard", "printsgf")
    assert re.search(r"SZ\[5\]KM\[2.5\].*;B\[cc\];W\[db\];B\[\]\)$", text, re.DOTALL)
    path.write_text(text.removeprefix("= "))
    loading = engine.ask("boardsize 7", "komi 0", f"loadsgf {path}", "showboard")
    assert loading[2:] == ["= ", board]
    assert engine.ask("final_score", "undo", "undo", "undo", "undo") == [
        *("= W+2.5", "= ", "= ", "= "),
        "? cannot undo",
    ]
    engine.ask(f"loadsgf {path} 2")
    assert engine.ask("final_status_list alive") == ["= C3"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_what_is_no_game_of_go_is_not_loaded(talk, tmp_path):
    os.mkfifo(tmp_path / "pipe.sgf")
    (tmp_path / "large.sgf").write_bytes(b"(;GM[1]" + b" " * 10**6 + b")")
    (tmp_path / "chess.pgn").write_text("1. e4 e5 *")
    (tmp_path / "size.sgf").write_text("(;GM[1]SZ[25])")
    (tmp_path / "moves.sgf").write_text("(;GM[1]SZ[5]KM[0];B[aa];W[aa])")
    engine = talk("go:5", "random")
    _, board = engine.ask("play b c3", "showboard")
    for name in [*sorted(p.name for p in tmp_path.iterdir()), "none.sgf", ""]:
        (answer,) = engine.ask(f"loadsgf {tmp_path / name}")
        assert answer.startswith("? cannot load file: "), name
    assert engine.ask("showboard") == [board]


def test_the_scripts_of_front_ends_and_servers_are_answered(talk):
    engine = talk("go:9", Scripted(0, 1, 2))
    script = """list_commands|known_command loadsgf|name|version|protocol_version
        boardsize 9|clear_board|komi 6.5|komi 6.5|time_settings 0 30 1
        kgs-rules chinese|kgs-time_settings byoyomi 600 30 5|fixed_handicap 2
        time_left w 600 0|genmove w|play b e5|time_left w 580 0|kgs-genmove_cleanup w
        final_status_list dead|final_score|undo|showboard|printsgf|quit"""
    lines = [line.strip() for line in re.split(r"[|\n]", script)]
    assert all(answer.startswith("=") for answer in engine.ask(*lines))


def test_fixed_handicaps_are_those_of_gnu_go(talk, gnugo):
    # 12x12 differs: the fourth lines start at 13, as gomill also reads GTP.
    sizes, stones = (6, 7, 8, 9, 19), range(1, 11)
    asked = [
        f"{line}"
        for size in sizes
        for number in stones
        for line in (f"boardsize {size}", "clear_board", f"fixed_handicap {number}")
    ]
    done = subprocess.run(
        [gnugo, "--mode", "gtp"],
        input="\n".join([*asked, "quit", ""]),
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = done.stdout.split("\n\n")[:-2][2::3]
    ours = talk("go:5", "random").ask(*asked)[2::3]
    for our_answer, their_answer in zip(ours, theirs, strict=True):
        assert our_answer[0] == their_answer[0]
        if our_answer[0] == "=":
            assert sorted(our_answer.split()) == sorted(their_answer.split())


def test_the_result_of_a_game_other_than_go_is_reported(talk):
    engine = talk("connect_four", Scripted(0))
    assert engine.ask("final_score") == ["? cannot score"]
    for column in "121212":
        color = "b" if column == "1" else "w"
        assert engine.ask(f"play {color} {column}") == ["= "]
    assert engine.ask("genmove b", "final_score") == ["= 1", "= B+1"]


@pytest.mark.parametrize(
    ("name", "moves"),
    [
        pytest.param("chess", ["e2e4", "e7e5", "Nf3"], marks=pytest.mark.slow),
        ("hex:5,swap=true", ["C3", "swap"]),
        ("breakthrough", ["a2a3", "b7a6"]),
        ("othello", ["d3", "C3"]),
        ("gomoku:9,9,5", ["H8", "i9"]),
        ("connect_four", ["4", "4"]),
    ],
)
def test_every_game_uses_its_own_notation(talk, name, moves):
    first, *rest = moves
    game = games.make(name)
    action = game.text_to_action(first_state(game), first)
    engine = talk(name, Scripted(action))
    asked = [f"play {'wb'[turn % 2]} {move}" for turn, move in enumerate(rest)]
    played, *answers = engine.ask("genmove b", *asked)
    assert played.lower() == f"= {first}".lower()
    assert answers == ["= "] * len(rest)


def test_games_have_different_seeds_and_engines_the_same(talk):
    asked = [line for _ in range(6) for line in ("clear_board", "genmove b")]
    asked += [f"genmove {color}" for color in "wbwbw"]
    answers = talk("go:5", "random").ask(*asked)
    assert talk("go:5", "random").ask(*asked) == answers
    assert len(set(answers[1:12:2])) > 1
