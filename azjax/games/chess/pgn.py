"""Games of chess in PGN, Portable Game Notation."""

import io
import logging
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.chess import notation
from azjax.games.chess.moves import generate
from azjax.games.chess.scores import centipawns, expected_result
from azjax.games.game_record import (
    RANDOM_MOVES,
    RESULTS,
    GameRecord,
    GameText,
    RecordFormat,
    ends_opening,
    result_of,
)

if TYPE_CHECKING:
    from azjax.games.chess.game import Chess

_NO_BREAK_SPACE = "\xa0"  # a space at which no line ends
# Values of the tag Variant. The last is accepted with the first position of chess.
_STANDARD = ("standard", "chess", "normal", "from position")
_FIGURINES = str.maketrans("♔♕♖♗♘♚♛♜♝♞", "KQRBNKQRBN", "♙♟")
# The parts of PGN; the name of a group says what they are.
_TOKEN = re.compile(
    r"""
      (?P<space> \s+ | ^%.* | ;.* )
    | (?P<tag> \[ \s* (?P<name> \w+ ) \s+ "(?P<value> (?:\\.|[^"\\\n])* )" \s* \] )
    | (?P<comment> \{ [^}]* \} )
    | (?P<result> 1-0 | 0-1 | 1/2-1/2 | 1/2 | ½-½ | ½ | \* ) (?![\w-])
    | (?P<move>
          [KQRBN♔♕♖♗♘♙♚♛♜♝♞♟]? [a-h]? [1-8]? [-x]? [a-h][1-8] (?: =?[QRBNqrbn] )?
        | [O0]-[O0] (?: -[O0] )? | -- | Z0
      ) (?! [\w-] )
    | (?P<sign> \$\d+ | [()] | [!?]{1,2} )
    | (?P<no_move> \d+\.* (?! [\w-] ) | \d+\.+ | \.+ | \+-+ | -+\+ | [+\#=±∓∞⩲⩱□]+
        | (?: e\.p\. | N ) (?! \w ) )
    """,
    re.VERBOSE | re.MULTILINE,
)
# Parts of the tag Termination, by the standard, Lichess and Chess.com.
_FAULTS = ("time forfeit", "won on time", "rules infraction", "abandoned")
# An evaluation, wherever a program breaks the line, and what it may hold: a mate, or
# pawns with a point (ChessBase writes centipawns without one), and a search depth.
_EVALUATION = re.compile(r"\[%eval\b([^]]*)\]?")
_MATE_OR_PAWNS = re.compile(
    r"(#[+-]?[0-9]+|[+-]?[0-9]*\.[0-9]+|[+-]?[0-9]+\.)(,[0-9]+)?"
)


class _View(NamedTuple):
    """N positions.

    board: `[N, 8, 8]` int8, as White sees it, places in `PNBRQKpnbrqk`, -1 if empty.
    legal: `[N, A]` bool.
    in_check: `[N]` bool; whether the player to move is.
    """

    board: np.ndarray
    legal: np.ndarray
    in_check: np.ndarray


def to_pgn(game: "Chess", records: Sequence[GameRecord]) -> str:
    """Returns games of chess as PGN (Edwards 1994, "Standard: Portable Game Notation
    Specification and Implementation Guide")."""
    texts: list[list[str]] = [[] for _ in records]
    longest = max((len(record.moves) for record in records), default=0)
    states = jax.vmap(lambda _: game.init())(jnp.arange(len(records)))
    view = _View(*map(np.asarray, _look(game, states)))
    for number in range(longest):
        actions = np.zeros(len(records), np.int32)
        has_move = [number < len(record.moves) for record in records]
        actions[has_move] = [r.moves[number] for r in records if number < len(r.moves)]
        states = _step(game, states, jnp.asarray(actions))
        after = _View(*map(np.asarray, _look(game, states)))
        for index in np.flatnonzero(has_move):
            short = _short_text(
                view.board[index], view.legal[index], int(actions[index]), number % 2
            )
            check = "+" if after.legal[index].any() else "#"
            texts[index].append(short + (check if after.in_check[index] else ""))
        view = after
    return "\n".join(map(_game_text, records, texts))


def _game_text(record: GameRecord, moves: Sequence[str]) -> str:
    result = "*" if record.result is None else RESULTS[record.result]
    tags = {
        "Event": "azjax arena",
        "Site": "?",
        "Date": "????.??.??",
        "Round": "?",
        "White": record.names[0],
        "Black": record.names[1],
        "Result": result,
    }
    words = _movetext(record, moves)
    if record.fault:
        tags["Termination"] = "rules infraction" if record.is_forfeit else "normal"
        words.append(f"{{{' '.join(record.fault.split()).replace('}', ')')}}}")
    head = "".join(f'[{name} "{_escaped(text)}"]\n' for name, text in tags.items())
    body = textwrap.fill(
        " ".join([*words, result]), 79, break_long_words=False, break_on_hyphens=False
    )
    return f"{head}\n{body.replace(_NO_BREAK_SPACE, ' ')}\n"


def _movetext(record: GameRecord, moves: Sequence[str]) -> list[str]:
    """Returns moves, move numbers and comments."""
    words, has_comment = [], False
    for number, move in enumerate(moves):
        if number % 2 == 0 or has_comment:
            words.append(f"{number // 2 + 1}{'...' if number % 2 else '.'}")
        words.append(move)
        value = record.values[number] if record.values else None
        comments = []
        if value is not None:
            comments.append(f"[%eval {centipawns(value) / 100:.2f}]")
        if number + 1 == record.opening_moves:
            comments.append(RANDOM_MOVES)
        has_comment = bool(comments)
        if has_comment:
            text = f"{{{' '.join(comments)}}}"
            words.append(text.replace(" ", _NO_BREAK_SPACE))
    return words


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')


def _short_text(board: np.ndarray, legal: np.ndarray, action: int, player: int) -> str:
    """Returns a legal move in Standard Algebraic Notation, without the sign of check.

    Args:
        board: `[8, 8]` of the position, as in `_View`.
        legal: `[A]` bool.
        action: the move.
        player: who makes it, 0 for White.
    """
    start, end = notation.ends(action, player)
    pawns = board == 6 * player
    move = notation.move_text(action, player, pawns)
    piece = notation.PIECES[board[start] % 6]
    if piece == "K" and abs(start[1] - end[1]) == 2:
        return "O-O" if end[1] > start[1] else "O-O-O"
    if piece == "P":
        captures = f"{move[0]}x" if start[1] != end[1] else ""
        promotion = f"={move[4].upper()}" if len(move) == 5 else ""
        return captures + move[2:4] + promotion
    rivals = [
        other_start
        for other_start, other_end in (
            notation.ends(int(other), player) for other in np.flatnonzero(legal)
        )
        if other_end == end
        and other_start != start
        and board[other_start] == board[start]
    ]
    file, rank = move[0], move[1]
    if not rivals:
        origin = ""
    elif all(column != start[1] for _, column in rivals):
        origin = file
    elif all(row != start[0] for row, _ in rivals):
        origin = rank
    else:
        origin = file + rank
    return piece + origin + ("x" if board[end] >= 0 else "") + move[2:4]


@jax.jit(static_argnames="game")
def _look(game: "Chess", states):
    return (
        jax.vmap(game.board)(states),
        jax.vmap(game.legal_action_mask)(states),
        jax.vmap(lambda state: generate(state.position).in_check)(states),
    )


@jax.jit(static_argnames="game")
def _step(game: "Chess", states, actions):
    return jax.vmap(game.step)(states, actions)


def read_pgn(text: str) -> Iterator[GameText]:
    """Yields the games of chess of a PGN file, without variations. Of the comments it
    reads evaluations, such as `[%eval 0.35]` (pawns, as White sees it) and `[%eval
    #-3]` (a mate), and the arena's about random moves.

    Raises:
        ValueError: python-chess, which reads PGN, is not installed; or a game is of a
            variant, starts from another position, or it or an evaluation cannot be
            read.
    """
    try:
        import chess.pgn as reader  # noqa: PLC0415, an extra
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{error.name} is not installed: pip install 'azjax[records]'"
        ) from None

    logger = logging.getLogger("chess.pgn")  # errors are raised below
    logger.addFilter(_drop)
    try:
        for number, each in enumerate(_games_of(text), 1):
            yield _game_of(reader.read_game(io.StringIO(each)), f"game {number}")
    finally:
        logger.removeFilter(_drop)


def _games_of(text: str) -> Iterator[str]:
    """Yields the text of each game of a file, as python-chess reads all of it.

    python-chess drops what it does not know, such as the `S` of a German `Sf3`, and
    takes games for one if there is no empty line between them. Here a termination
    marker ends a game (PGN, section 8.2.6), and so do the tags of the next one. The
    marker counts if the tag `Result` differs.

    Raises:
        ValueError: a part of the text is not PGN.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.replace("\ufe0e", "").replace("\ufe0f", "")  # presentation of figurines
    tags: dict[str, str] = {}
    words: list[str] = []
    number, place, depth, has_moves = 1, 0, 0, False
    while place < len(text) or tags or words:
        found = _TOKEN.match(text, place)
        kind = "end" if place >= len(text) else found and found.lastgroup
        word = found[0] if found else ""
        ends = kind == "end" or (kind == "tag" and has_moves)
        ends |= kind == "result" and depth == 0
        if kind is None or (depth and ends) or (word == ")" and not depth):
            raise ValueError(f"game {number}: {_problem(text, place, depth)}")
        if kind == "result" and depth == 0 and word != "*":
            tags["Result"] = word
        if ends:
            marks = ("1/2", "½", "½-½")
            result = tags.get("Result", "*")
            tags["Result"] = "1/2-1/2" if result in marks else result
            head = "".join(f'[{name} "{value}"]\n' for name, value in tags.items())
            yield f"{head}\n{' '.join(words)}\n"
            tags, words, has_moves, number = {}, [], False, number + 1
        if kind == "tag" and found:
            tags[found["name"]] = found["value"]
        elif kind == "move":
            words.append(word.translate(_FIGURINES).replace("0-0", "O-O"))
            has_moves = True
        elif kind in ("comment", "sign"):
            words.append(word)
        depth += (word == "(") - (word == ")")
        place += len(word)


def _problem(text: str, place: int, depth: int) -> str:
    """Returns what is wrong with a text that is no PGN from this place on."""
    line = text.count("\n", 0, place) + 1
    if text[place : place + 1] == "{":
        return f"the comment that begins in line {line} has no end"
    if depth or text[place : place + 1] == ")":
        return f"the parentheses of a variation do not match in line {line}"
    word = text[place : place + 20].split(maxsplit=1)[0]
    return (
        f"{word!r} in line {line} is no part of PGN; the pieces are K, Q, R, B and N, "
        "or figurines"
    )


def _drop(_record: logging.LogRecord) -> bool:
    return False


def _game_of(game: Any, place: str) -> GameText:
    """Returns a game of python-chess as text."""
    tags = game.headers
    if game.errors:
        raise ValueError(f"{place}: {game.errors[0]}")
    if tags == type(game)().headers and not game.variations:
        raise ValueError(f"{place} has neither tags nor moves")
    if tags.get("Variant", "Standard").lower() not in _STANDARD:
        raise ValueError(f"{place} is of the variant {tags['Variant']!r}, not of chess")
    if game.board().fen() != notation.FIRST_POSITION:
        raise ValueError(f"{place} starts from another position: {game.board().fen()}")
    nodes = list(game.mainline())
    try:
        result = result_of(tags.get("Result", "*"))
        values = tuple(map(_value, nodes))
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
    ending = tags.get("Termination", "").lower()
    openings = [
        number for number, node in enumerate(nodes, 1) if ends_opening(node.comment)
    ]
    return GameText(
        place,
        "chess",
        (_unescaped(tags.get("White", "?")), _unescaped(tags.get("Black", "?"))),
        [node.move.uci() for node in nodes],
        result,
        ending if any(fault in ending for fault in _FAULTS) else "",
        max(openings, default=0),
        values if any(value is not None for value in values) else (),
    )


def _value(node: Any) -> float | None:
    """Returns the expected result for White of the first evaluation after a move.

    python-chess would ignore what it cannot read, and take centipawns for pawns.

    Raises:
        ValueError: an evaluation cannot be read.
    """
    scores = []
    for text in _EVALUATION.finditer(node.comment):
        found = _MATE_OR_PAWNS.fullmatch("".join(text[1].split()))
        if found is None:
            dots = "." if node.ply() % 2 else "..."
            move = f"{(node.ply() + 1) // 2}{dots} {node.san()}"
            raise ValueError(
                "an evaluation must be like [%eval 0.35], in pawns with a point, or "
                f"[%eval #-3]: {text[0][:40]!r} after {move}"
            )
        scores.append(found[1])
    if not scores:
        return None
    score = scores[0]
    if not score.startswith("#"):
        return expected_result(100 * float(score))
    if not score.strip("#+-0"):  # the player to move is mated
        return -1.0 if node.turn() else 1.0
    return -1.0 if "-" in score else 1.0


def _unescaped(text: str) -> str:
    return re.sub(r'\\(["\\])', r"\1", text)


PGN = RecordFormat("pgn", r"\[|\d+\.", to_pgn, read_pgn)
