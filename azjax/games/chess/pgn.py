"""Games of chess in PGN, Portable Game Notation."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import jax
import numpy as np

from azjax.games.chess import notation
from azjax.games.chess.moves import generate
from azjax.games.chess.scores import centipawns, expected_result
from azjax.games.core import Game
from azjax.games.game_record import (
    MAX_MOVES,
    RANDOM_MOVES,
    RESULTS,
    GameRecord,
    GameText,
    RecordFormat,
    ends_opening,
    escaped,
    result_of,
)
from azjax.games.host import first_states
from azjax.text import quoted

_NO_BREAK_SPACE = "\xa0"  # a space at which no line ends
# Values of the tag Variant. The last is accepted with the first position of chess.
_STANDARD = ("standard", "chess", "normal", "from position")
_FIGURINES = str.maketrans("♔♕♖♗♘♚♛♜♝♞", "KQRBNKQRBN", "♙♟()")
_NULL_MOVES = ("--", "Z0", "0000")
_RESULTS = dict.fromkeys(("1/2", "½", "½-½"), "1/2-1/2") | {"": "*", "?": "*"}
# The parts of PGN; the name of a group says what they are. A quotation mark in a tag
# may lack its backslash. A comment with tags in it has no end.
_TOKEN = re.compile(
    r"""
      (?P<space> [\s\x1a]+ | ^%.* | ;.* )
    | (?P<tag> \[ \s* (?P<name> [\w+\#=:-]+ ) \s+
          "(?P<value> (?: \\. | [^"\\\n] | "(?![ \t]*\]) )* )" \s* \] )
    | (?P<comment> \{ (?: [^}\n] | \n (?! \[\w+[ \t]+" ) )*+ \} )
    | (?P<result> 1-0 | 0-1 | 1/2-1/2 | 1/2 | ½-½ | ½ | \* ) (?![\w-])
    | (?P<move>
          [KQRBN♔♕♖♗♘♙♚♛♜♝♞♟]? [a-h]? [1-8]? [-x]? [a-h][1-8]
          (?: =?[QRBNqrbn] | \([QRBN]\) )?
        | [O0]-[O0] (?: -[O0] )? | -- | Z0 | 0000
      ) (?: (?= e\.p\. ) | (?! [\w-] ) )
    | (?P<sign> \$\d+ | [()] | [!?]{1,2} )
    | (?P<no_move> \d+ (?: \s*\.)+ (?! \d ) | \d+ (?! [\w-] ) | \.+ | \+-+ | -+\+
        | [+\#=±∓∞⩲⩱□]+
        | (?: e\.p\. | N ) (?! \w ) )
    """,
    re.VERBOSE | re.MULTILINE,
)
# Numbers of moves: of the first, by White, and of a later one.
_FIRST = re.compile(r"1(?:\s*\.(?!\s*[.\d])|(?<![-+.,\d]1)\s+(?=[^\W\d_]|[♔-♟]))")
_LATER = re.compile(r"([2-9]|1\d|[2-9]\d|1\d\d)\s*\.")
# A line that is no tag, before the tags of the next game; and more games without tags.
_NEXT_GAME = re.compile(r'^[ \t]*+[^\[\s].*\n\s*+(?=\[\w+[ \t]+")', re.MULTILINE)
_MORE = re.compile(r"(?:1-0|0-1|1/2|½|\*)\s+[\w{]")
# Parts of the tag Termination, by the standard, Lichess, Chess.com and cutechess; and a
# comment of FICS.
_FAULTS = (
    *("time forfeit", "won on time", "rules infraction", "abandoned"),
    *("illegal move", "stalled connection"),
)
_FORFEIT = re.compile(r"(?:White|Black) (forfeits (?:on time|by disconnection))")
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

    board: jax.Array
    legal: jax.Array
    in_check: jax.Array


def to_pgn(game: Game, records: Sequence[GameRecord]) -> str:
    """Returns games of chess as PGN (Edwards 1994, "Standard: Portable Game Notation
    Specification and Implementation Guide")."""
    texts: list[list[str]] = [[] for _ in records]
    longest = max((len(record.moves) for record in records), default=0)
    size = 1 << len(records).bit_length()  # few sizes, so that few are compiled
    states = first_states(game, size)
    view = jax.device_get(_look(game, states))
    for number in range(longest):
        actions = np.zeros(size, np.int32)
        has_move = np.array([number < len(record.moves) for record in records])
        actions[: len(records)][has_move] = [
            record.moves[number] for record in records if number < len(record.moves)
        ]
        states = _step(game, states, actions)
        after = jax.device_get(_look(game, states))
        for index in np.flatnonzero(has_move):
            short = _short_text(
                view.board[index], view.legal[index], int(actions[index]), number % 2
            )
            check = "+" if after.legal[index].any() else "#"
            texts[index].append(short + (check if after.in_check[index] else ""))
        view = after
    return "\n".join(map(_game_text, records, texts))


def _game_text(record: GameRecord, moves: Sequence[str]) -> str:
    """Returns a game with its moves in Standard Algebraic Notation."""
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
    if record.fault:
        tags["Termination"] = "rules infraction" if record.is_forfeit else "normal"
        words.append(f"{{{' '.join(record.fault.split()).replace('}', ')')}}}")
    written = {name: escaped(text, '"') for name, text in tags.items()}
    head = "".join(f'[{name} "{text}"]\n' for name, text in written.items())
    body = textwrap.fill(
        " ".join([*words, result]), 79, break_long_words=False, break_on_hyphens=False
    )
    return f"{head}\n{body.replace(_NO_BREAK_SPACE, ' ')}\n"


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
def _look(game: Game, states) -> _View:
    return _View(
        jax.vmap(game.board)(states),
        jax.vmap(game.legal_action_mask)(states),
        jax.vmap(lambda state: generate(state.position).in_check)(states),
    )


@jax.jit(static_argnames="game")
def _step(game: Game, states, actions):
    return jax.vmap(game.step)(states, actions)


def read_pgn(text: str) -> Iterator[GameText | ValueError]:
    """Yields the games of chess of a PGN file, without variations, or why one cannot be
    read. Of the comments it reads evaluations, such as `[%eval 0.35]` (pawns, as White
    sees it) and `[%eval #-3]` (a mate), and the arena's about random moves.

    A termination marker ends a game (PGN, section 8.2.6), and so do the tags or the
    number 1 of the next one. The marker counts if the tag `Result` differs. After a
    text that is not PGN the next game is the one that begins with tags.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.replace("\ufe0e", "").replace("\ufe0f", "")  # presentation of figurines
    tags: dict[str, str] = {}
    moves: list[str] = []
    comments: list[list[str]] = []  # after each move
    number, place, line, depth, is_apart = 1, 0, 1, 0, False
    while place < len(text) or tags or moves or depth:
        found = _TOKEN.match(text, place)
        kind = "end" if place >= len(text) else found and found.lastgroup
        word = found[0] if found else ""
        name = (found["name"] or "").lower() if found else ""
        ends = kind == "end" or (kind == "result" and depth == 0)
        ends |= kind == "tag" and (bool(moves) or (is_apart and name in tags))
        ends |= bool(moves and depth == 0 and _FIRST.match(text, place))
        is_wrong = kind is None or (depth and ends) or (word == ")" and not depth)
        if not (moves or depth or "fen" in tags):
            is_wrong |= _LATER.match(text, place) is not None
        if is_wrong or len(tags) + len(moves) > MAX_MOVES:
            later = _NEXT_GAME.search(text, text.rfind("\n", 0, place) + 1)
            rest = "" if later or not _MORE.search(text, place) else "; so is the rest"
            problem = f"it has more than {MAX_MOVES:,} moves"
            if is_wrong:
                problem = _problem(text[place : place + 20], line, depth if kind else 0)
            yield ValueError(f"game {number}: {problem}{rest}")
            next_place = later.end() if later else len(text)
            word = "" if kind == "tag" else text[place:next_place]
            ends, kind, depth = True, None, 0
        elif ends:
            marker = word if kind == "result" else "*"
            texts = [" ".join(parts) for parts in comments]
            yield _game_of(f"game {number}", tags, marker, moves, texts)
        if ends:
            tags, moves, comments, number, is_apart = {}, [], [], number + 1, False
        if kind == "tag" and found:
            tags[name] = re.sub(r'\\(["\\])', r"\1", found["value"])
            is_apart = False
        elif kind == "space":
            is_apart |= word.count("\n") > 1
        elif kind == "move" and not depth:
            moves.append(word.translate(_FIGURINES))
            comments.append([])
        elif kind == "comment" and moves and not depth:
            comments[-1].append(word)
        elif kind == "sign":
            depth += (word == "(") - (word == ")")
        line += word.count("\n")
        place += len(word)


def _problem(text: str, line: int, depth: int) -> str:
    """Returns what is wrong with a text that is no PGN."""
    if text[:1] == "{":
        return f"the comment that begins in line {line} has no end"
    if (found := _LATER.match(text)) and not depth:
        return f"its moves begin with number {int(found[1])} in line {line}"
    if depth or text[:1] == ")":
        return f"the parentheses of a variation do not match in line {line}"
    return (
        f"{quoted(text.split(maxsplit=1)[0])} in line {line} is no part of PGN; the "
        "pieces are K, Q, R, B and N, or figurines"
    )


def _game_of(
    place: str,
    tags: Mapping[str, str],
    marker: str,
    moves: Sequence[str],
    comments: Sequence[str],
) -> GameText | ValueError:
    """Returns a game as text.

    Args:
        place: its place in the file.
        tags: values by name in lower case.
        marker: the termination marker.
        moves: in Standard Algebraic Notation.
        comments: after each move, with their braces.
    """
    stated, marker = (
        _RESULTS.get(text, text) for text in (tags.get("result", "*"), marker)
    )
    note = ""
    if marker != "*" and stated not in ("*", marker):
        note = f"the tag Result says {stated[:20]}, the moves end with {marker}"
    start = tags.get("fen", notation.FIRST_POSITION)
    try:
        if not tags and not moves:
            raise ValueError("it has neither tags nor moves")
        if tags.get("variant", "standard").lower() not in _STANDARD:
            raise ValueError(
                f"it is of the variant {quoted(tags['variant'])}, not of chess"
            )
        if start.split()[:4] != notation.FIRST_POSITION.split()[:4]:
            raise ValueError(f"it starts from another position: {start[:100]}")
        result = result_of(stated if marker == "*" else marker)
        values = tuple(map(_value, range(1, len(moves) + 1), moves, comments))
        nulls = [number for number, move in enumerate(moves, 1) if move in _NULL_MOVES]
        if nulls:
            raise ValueError(
                f"move {nulls[0]} is a null move, which chess does not have"
            )
    except ValueError as error:
        return ValueError(f"{place}: {error}")
    ending = tags.get("termination", "").lower()
    fault = ending if any(fault in ending for fault in _FAULTS) else ""
    if forfeit := _FORFEIT.search(comments[-1] if comments else ""):
        fault = forfeit[1]
    openings = [n for n, comment in enumerate(comments, 1) if ends_opening(comment)]
    return GameText(
        place,
        "chess",
        (tags.get("white", "?"), tags.get("black", "?")),
        moves,
        result,
        fault,
        max(openings, default=0),
        values if any(value is not None for value in values) else (),
        note,
    )


def _value(number: int, move: str, comment: str) -> float | None:
    """Returns the expected result for White of the first evaluation after a move."""
    scores = []
    for text in _EVALUATION.finditer(comment):
        found = _MATE_OR_PAWNS.fullmatch("".join(text[1].split()))
        if found is None:
            dots = "." if number % 2 else "..."
            raise ValueError(
                "an evaluation must be like [%eval 0.35], in pawns with a point, or "
                f"[%eval #-3]: {text[0][:40]!r} after {(number + 1) // 2}{dots} {move}"
            )
        scores.append(found[1])
    if not scores:
        return None
    score = scores[0]
    if not score.startswith("#"):
        return expected_result(100 * float(score))
    if not score.strip("#+-0"):  # the player to move is mated
        return 1.0 if number % 2 else -1.0
    return -1.0 if "-" in score else 1.0


PGN = RecordFormat("pgn", r"\[|\d+\.", to_pgn, read_pgn)
