import itertools
import os
import re
import subprocess
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coin_toss import CoinToss
from flax import struct
from play.front_end import answers_to, run_with_front_end
from untrained import untrained_player

from azjax import games, players
from azjax.games.host import first_state
from azjax.play.gtp import GtpEngine, Inbox, serve
from azjax.players import Analysis, MoveDecision
from azjax.players.gtp import GtpPlayer


class Conversation:
    """An engine that receives lines of text."""

    def __init__(self, game: str, player: str | players.AnyPlayer):
        def load(game: games.Game) -> players.AnyPlayer:
            if isinstance(player, str):
                return players.load(player, game)
            return player

        self.engine = GtpEngine(games.make(game), load)

    def send(self, text: str | bytes) -> str:
        """Returns the complete output for some lines."""
        lines = (text.encode() if isinstance(text, str) else text).split(b"\n")
        written: list[str] = []
        serve(self.engine, Inbox(lines), written.append)
        return "".join(written)

    def ask(self, *commands: str) -> list[str]:
        """Returns the answer to each command."""
        answers = self.send("\n".join(commands)).split("\n\n")
        assert answers.pop() == ""
        assert len(answers) == len(commands)
        return answers


@pytest.fixture
def talk() -> Callable[..., Conversation]:
    """Starts a conversation: `talk(game, player)`."""
    return Conversation


class Scripted:
    """An external player with scripted moves, decisions and errors."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def start_session(self, game, seed):
        return self

    def choose(self, state, moves):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, MoveDecision) else MoveDecision(answer)

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


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b"12 play w D4\r", "=12 \n\n"),
        (b"\t7\tundo\t\t", "?7 cannot undo\n\n"),
        (b"komi 6.5 # as always", "= \n\n"),
        (b"un\x00d\x07o\x7f", "? cannot undo\n\n"),
        (b"na\xffme\xc3\xa9", "= azjax\n\n"),
        (b"007 name", "=007 azjax\n\n"),
        (b"-1 name", "? unknown command\n\n"),
        (b")(*&", "? unknown command\n\n"),
        (b"x" * 100_000, "? unknown command\n\n"),
        (b"play b c3" + b" x" * 100_000, "= \n\n"),
        *((line, "") for line in (b"", b"  \t\r", b"# play b D4", b"\x00\xff", b" #")),
    ],
)
def test_invalid_and_long_lines_are_answered_one_by_one_until_quit(talk, line, answer):
    found = talk("go:5", "random").send(line + b"\n5 quit\nname\n")
    assert found == f"{answer}=5 \n\n"


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
            players.ForfeitError("it\n\ndied"),
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
    conversation.engine = GtpEngine(games.make("go:5,0.5"), load)
    asked = ["boardsize 5", "komi 0.5", "boardsize 7", "komi 7.5", "genmove b"]
    answers = ["= ", "= ", "? unacceptable size", "= ", "= A5"]
    assert conversation.ask(*asked) == answers
    assert "azjax: not for go:7,komi=0.5" in capsys.readouterr().err
    with pytest.raises(ValueError, match="not for go:7"):
        GtpEngine(games.make("go:7"), load)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Returns the directory of a small network for 3x3 Go with a komi of 0.5."""
    directory = tmp_path_factory.mktemp("run")
    players.save_player(directory, untrained_player(games.make("go:3,0.5")))
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


INFO = (
    r"info move (\S+) visits (\d+) winrate (\d+) prior (\d+) order (\d+) "
    r"pv (\S+(?: (?!info)\S+)*) ?"
)


def decision_of_search(visits=(0, 30, 10, 0), line=(1, 24, 25)):
    def full(values):
        return np.array([*values, *[0] * (26 - len(values))])

    return MoveDecision(
        action=1,
        policy=full([0, 1, 0, 0]).astype(np.float32),
        value=0.2,
        analysis=Analysis(
            prior=full([0.25, 0.5, 0.125, 0.125]).astype(np.float32),
            visits=full(visits).astype(np.int32),
            action_values=full([0, 0.1, -0.5, 0]).astype(np.float32),
            line=np.array([*line, *[-1] * (16 - len(line))], np.int32),
        ),
    )


def test_lines_have_the_formats_of_leela_zero_and_katago(talk):
    engine = talk("go:5", Scripted(*[decision_of_search()] * 2))
    assert engine.ask("lz-genmove_analyze b", "undo", "kata-genmove_analyze b") == [
        "= \ninfo move B5 visits 30 winrate 5500 prior 5000 order 0 pv B5 E1 pass "
        "info move C5 visits 10 winrate 2500 prior 1250 order 1 pv C5\nplay B5",
        "= ",
        "= \ninfo move B5 visits 30 utility 0.100000 winrate 0.550000 prior 0.500000 "
        "order 0 pv B5 E1 pass info move C5 visits 10 utility -0.500000 winrate "
        "0.250000 prior 0.125000 order 1 pv C5\nplay B5",
    ]


POLICY = np.zeros(26, np.float32)
POLICY[[3, 7]] = 0.25, 0.75


@pytest.mark.parametrize(
    ("decision", "moves"),
    [
        (decision_of_search((0, 5, 10, 5)), "B5 5 5500, C5 10 2500, D5 5 5000"),
        (MoveDecision(3, POLICY, 0.5), "D5 1 7500, C4 0 7500"),
        (MoveDecision(25), "pass 1 5000"),
    ],
)
def test_the_chosen_move_is_first_and_without_a_search_has_a_visit(
    talk, decision, moves
):
    (answer,) = talk("go:5", Scripted(decision)).ask("lz-genmove_analyze b")
    found = [" ".join(words[:3]) for words in re.findall(INFO, answer)]
    assert ", ".join(found) == moves


def test_a_search_is_repeated_while_its_visits_grow(talk):
    searches = [decision_of_search((0, n)) for n in (10, 20, 30, 30)]
    # Without a search, the first decision is repeated.
    for scripted, visits in (
        (searches, [10, 20, 30, 30, 30, 30]),
        ([MoveDecision(3)], [1, 1, 1]),
    ):
        engine = talk("go:5", Scripted(*scripted)).engine
        lines = engine.execute("lz-analyze", ["b"]).lines
        found = [re.search(INFO, line) for line in itertools.islice(lines, len(visits))]
        assert [int(move[2]) for move in found] == visits


@pytest.mark.slow
def test_an_analysis_continues_until_the_next_line(talk):
    player = "alphazero:pretrained?simulations=32&tree_reuse_nodes=200"
    engine = talk("tic_tac_toe", player).engine
    report = engine.execute("lz-analyze", ["b", "interval", "20"])
    assert report.interval == 0.2
    visits = []
    for line in itertools.islice(report.lines, 4):
        assert re.sub(INFO, "", line) == ""
        found = re.findall(INFO, line)
        assert all(pv.split()[0] == move for move, _, _, _, _, pv in found)
        assert [int(order) for _, _, _, _, order, _ in found] == list(range(len(found)))
        assert all(0 <= int(rate) <= 10_000 for _, _, rate, _, _, _ in found)
        visits.append(sum(int(count) for _, count, _, _, _, _ in found))
    assert visits[0] == 32
    assert visits == sorted(visits)
    assert visits[-1] > 32


@pytest.mark.parametrize(
    "words", ["", "b", "50", "b 50", "interval 50", "w 50 maxmoves 3 ownership true"]
)
def test_an_analysis_is_answered_and_ended_by_the_next_line(talk, words):
    engine = talk("go:5", "random")
    first, name = engine.ask(f"5 kata-analyze {words}", "6 name")
    lines = first.split("\n")
    assert lines[0] == "=5"
    assert all(line.startswith("info move ") for line in lines[1:])
    assert name == "=6 azjax"
    assert "maxmoves" not in words or lines[1].count("info") == 3


@pytest.mark.parametrize(
    ("words", "moves"),
    [
        ("b allow b a1,B2 1", {"A1", "B2"}),
        ("allow b a1,c3 1 allow b b1 5 avoid b b1 1 maxmoves 9", {"A1"}),
        ("w 10 avoid b a1 1 allow w pass,c1 1", {"pass", "C1"}),
    ],
)
def test_an_analysis_is_restricted_to_moves(talk, words, moves):
    engine = talk("go:3", "random")
    engine.ask("play b c3", "play w c2")
    for command in ("kata-analyze", "lz-genmove_analyze"):
        answer, _ = engine.ask(f"{command} {words}", "name")
        assert set(re.findall(r"info move (\S+)", answer.split("\n")[1])) == moves
    scripted = talk("go:3", GtpPlayer("true"))
    refused = "? the moves of this player cannot be restricted"
    assert scripted.ask(f"lz-analyze {words}") == [refused]


def test_an_empty_line_ends_an_analysis(talk):
    answers = talk("go:5", "random").send("lz-analyze 1\n\nname")
    assert re.fullmatch(r"=\n(info .*\n)+\n= azjax\n\n", answers)


def test_a_move_is_made_after_its_analysis(talk):
    engine = talk("tic_tac_toe", "mcts:32")
    for command in ("lz-genmove_analyze b 10", "kata-genmove_analyze w 10"):
        (answer,) = engine.ask(command)
        first, info, play = answer.split("\n")
        assert first == "= "
        assert info.startswith(f"info move {play.removeprefix('play ')} visits")
    assert engine.ask("undo", "undo", "undo") == ["= ", "= ", "? cannot undo"]


def test_the_analysis_of_a_proven_win_has_winrate_1(talk):
    engine = talk("tic_tac_toe", "mcts:32")
    engine.ask("play b a1", "play w a2", "play b b1", "play w b2")
    info = engine.ask("lz-analyze b", "name")[0].split("\n")[1]
    assert info.startswith("info move C1 ")
    assert " winrate 10000 " in info.partition("order 1")[0]


TIC_TAC_TOE = ["gtp", "tic_tac_toe", "--player", "random"]


def test_a_program_answers_and_ends_at_the_end_of_its_input(capsys):
    text = b"\xff\x00\r\n1 name\r\n\xe4\xb8\xad play b c3\nplay b c3\nkomi 8.5\n4 undo"
    status, output = answers_to(text, "gtp", "go:5", "--player", "random")
    assert output == b"=1 azjax\n\n= \n\n? illegal move\n\n= \n\n=4 \n\n"
    assert status == 0
    assert "compiling" not in capsys.readouterr().err


def test_it_answers_before_the_next_command_and_quits_with_an_open_input(capsys):
    def converse(to_program, from_program):
        for line, answer in ((b"name\n", b"= azjax\n"), (b"play b b2\n", b"= \n")):
            to_program.write(line)
            assert [from_program.readline() for _ in range(2)] == [answer, b"\n"]
        to_program.write(b"quit\n")

    assert run_with_front_end([*TIC_TAC_TOE, "--seed", "3"], converse) == 0
    assert "Error" not in capsys.readouterr().err


def test_it_analyzes_until_the_next_command(capsys):
    def converse(to_program, from_program):
        to_program.write(b"lz-analyze b 1\n")
        assert from_program.readline() == b"=\n"
        for _ in range(3):
            assert from_program.readline().startswith(b"info move ")
        to_program.write(b"7 name\n")
        to_program.close()
        assert from_program.read().endswith(b"\n=7 azjax\n\n")

    assert run_with_front_end(TIC_TAC_TOE, converse) == 0
    assert capsys.readouterr().err.splitlines() == [
        "azjax: loading tic_tac_toe ...",
        "azjax: random plays",
        "azjax: compiling the player; its first answer takes longer",
    ]


def test_it_ends_without_an_error_when_its_output_is_closed(capsys):
    def converse(to_program, from_program):
        from_program.close()
        to_program.write(b"showboard\n" * 50)

    assert run_with_front_end(TIC_TAC_TOE, converse) == 0
    assert "Error" not in capsys.readouterr().err


def test_games_with_chance_are_refused():
    with pytest.raises(ValueError, match=r"GTP has no .* coin_toss needs them"):
        GtpEngine(CoinToss(), lambda game: players.load("random", game))
