"""Games of Go in SGF, the Smart Game Format."""

import codecs
import contextlib
import re
from collections.abc import Iterator, Sequence

import numpy as np

from azjax.games import host
from azjax.games.core import Game
from azjax.games.game_record import (
    MAX_MOVES,
    RANDOM_MOVES,
    RESIGNED,
    GameRecord,
    GameText,
    RecordFormat,
    ends_opening,
    escaped,
    score_text,
)

_LETTERS = "abcdefghijklmnopqrs"
_COLUMNS = "abcdefghjklmnopqrst"  # of the game's notation, without i
# Encodings of SGF files by Python's names; the last, SGF's default, reads everything.
_CODECS = ("cp932", "gb18030", "big5hkscs", "cp949", "euc_jp", "iso8859-1")
# More of them, and what is read in place of those that have a superset.
_NAMED_CODECS = {name: name for name in (*_CODECS, "utf-8", "cp1252", "koi8-r")} | {
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "euc_kr": "cp949",
}
_HEAD_BYTES = 2**16  # in which CA is looked for
_KATAKANA = re.compile("[｡-ﾟ]")
_VALUE = re.compile(r"\[(?:\\.|[^]\\])*\]", re.DOTALL)  # of a property
# The parts of SGF; and how games begin, where a variation cannot.
_TOKEN = re.compile(
    r"\[(?P<value>(?:\\.|[^]\\])*)\]|(?P<name>[A-Za-z]+)|(?P<mark>[();])|\s+", re.DOTALL
)
_GAME = re.compile(r"\(\s*;")
_ROOT = re.compile(r"\(\s*;\s*(?:FF|GM|SZ|CA)\s*\[", re.IGNORECASE)
_RESULTS = {"b": 1, "w": -1, "black": 1, "white": -1, "draw": 0, "jigo": 0, "0": 0}
_FAULTS = {
    "r": RESIGNED,
    "t": "time",
    "f": "forfeit",
    "i": "illegal move",
}  # after B+ or W+


Node = dict[str, list[str]]  # the values of properties, as they are written


def to_sgf(game: Game, records: Sequence[GameRecord]) -> str:
    """Returns games of Go as an SGF collection (FF[4], red-bean.com/sgf)."""
    return "".join(_tree(game, record) for record in records)


def _tree(game: Game, record: GameRecord) -> str:
    result, size = "?", game.observation_shape[0]
    if record.result is not None and not record.fault:
        state = host.first_state(game)
        for action in record.moves:
            state = host.next_state(game, state, action)
        black, white = np.asarray(host.score(game, state)).tolist()
        result = score_text(record.result * abs(black - white))
    if record.fault and record.result:
        winner = "B" if record.result > 0 else "W"
        result = f"{winner}+{'F' if record.is_forfeit else 'R'}"
    properties = {
        "FF": "4",
        "GM": "1",
        "CA": "UTF-8",
        "AP": "azjax",
        "SZ": str(size),
        "KM": f"{game.options['komi']:g}",
        "RU": "Tromp-Taylor",
        "PB": record.names[0],
        "PW": record.names[1],
        "RE": result,
    }
    if record.fault:
        properties["GC"] = record.fault
    root = "".join(f"{name}[{escaped(text, ']')}]" for name, text in properties.items())
    nodes = []
    for number, action in enumerate(record.moves):
        row, column = divmod(action, size)  # a pass comes after the rows: no text
        point = _LETTERS[column] + _LETTERS[row] if row < size else ""
        nodes.append(f";{'BW'[number % 2]}[{point}]")
    if record.opening_moves:
        nodes[record.opening_moves - 1] += f"C[{RANDOM_MOVES}]"
    lines = ["".join(nodes[start : start + 10]) for start in range(0, len(nodes), 10)]
    return "\n".join([f"(;{root}", *lines]) + ")\n"


def read_sgf(text: str) -> Iterator[GameText | ValueError]:
    """Yields the games of Go of an SGF collection, without variations, and of the
    comments only the arena's about random moves; or why one cannot be read: it is of
    another kind, has set-up stones other than a handicap, or is damaged.

    A handicap, of set-up stones or of Black's moves before White's first, is read as
    moves between which White passes.

    Raises:
        ValueError: there is no game.
    """
    for number, nodes in enumerate(_main_lines(text), 1):
        try:
            if isinstance(nodes, ValueError):
                raise nodes
            found = _game_of(nodes, f"game {number}")
        except ValueError as error:
            found = ValueError(f"game {number}: {error}")
        yield found


def _main_lines(text: str) -> Iterator[list[Node] | ValueError]:
    """Yields the main line of each game, or what is wrong with it; then the next game
    is one that begins with FF, GM, SZ or CA."""
    begin = _GAME.search(text)
    if begin is None:
        raise ValueError("it has no game of SGF, which begins with `(;`")
    while begin:
        nodes: list[Node] = []
        place, name, depth, is_main, problem = begin.start(), "", 0, True, ""
        while (depth or not nodes) and not problem:
            found = _TOKEN.match(text, place)
            if text[place : place + 1] == "[" and not found:
                problem = "a value has no end, so that the rest cannot be read either"
                place = len(text)
            elif found is None or (depth and _ROOT.match(text, place)):
                rest = text[place : place + 20]
                problem = f"it has no end before {rest!r}" if rest else "it has no end"
            elif len(nodes) > MAX_MOVES:
                problem = f"it has more than {MAX_MOVES:,} moves"
            else:
                place, mark = found.end(), found["mark"]
                depth += (mark == "(") - (mark == ")")
                is_main &= mark != ")"
                if mark == ";" and is_main:
                    nodes.append({})
                elif found["name"]:
                    name = found["name"]  # as in `White[aa]` or `w[aa]`
                    name = re.sub("[a-z]", "", name) or name.upper()
                elif found["value"] is not None and is_main and nodes:
                    nodes[-1].setdefault(name, []).append(found["value"])
        begin = (_ROOT if problem else _GAME).search(text, place)
        if re.search(r"[][)]", text[place : begin.start() if begin else None]):
            problem = problem or "there are moves or properties after its end"
        yield ValueError(problem) if problem else nodes


def _game_of(nodes: Sequence[Node], place: str) -> GameText:
    """Returns a game as text."""
    root = nodes[0]
    kind, size = _text(root, "GM", "1"), _text(root, "SZ", "19")
    if kind != "1":
        raise ValueError(f"GM is {kind[:40]!r}, and 1 is Go")
    is_square = re.fullmatch(r"(\d{1,2})(?::\1)?", size)
    if not is_square or not int(is_square[1]) <= len(_COLUMNS):
        raise ValueError(f"size must be at most {len(_COLUMNS)}: {size[:40]!r}")
    lines = int(is_square[1])
    if any("SZ" in node for node in nodes[1:]):
        raise ValueError("SZ is not in the first node")
    colors: list[str] = []
    points: list[str] = []
    num_stones = opening = 0
    for node in nodes:
        for name, values in node.items():
            if name in ("AB", "AW", "AE") and "".join(values).strip():
                if name != "AB" or len(points) > num_stones:
                    raise ValueError(f"{name} sets up stones other than a handicap")
                num_stones += len(values)
                colors += ["B"] * len(values)
                points += [_point_text(name, value, lines) for value in values]
            elif name in ("B", "W"):
                colors.append(name)
                points.append(_point_text(name, _text(node, name), lines) or "pass")
        if ends_opening(" ".join(node.get("C", []))):
            opening = len(points)
    handicap = colors.index("W") if "W" in colors else num_stones
    stated = _text(root, "HA")
    if stated.isdecimal() and 1 < int(stated[:4]) != handicap:
        raise ValueError(
            f"HA is {stated[:4]}, and Black has {handicap} stones before White's move"
        )
    if handicap > 1:
        opening = max(opening, handicap)
    moves, opening_moves = _in_turn(colors, points, handicap, opening)
    result = _text(root, "RE").lower()
    return GameText(
        place,
        f"go:size={lines},komi={_komi(root):g}",
        (_text(root, "PB") or "?", _text(root, "PW") or "?"),
        moves,
        _RESULTS.get(result.partition("+")[0].strip()),
        _FAULTS.get(result.partition("+")[2].strip()[:1], ""),
        opening_moves,
    )


def _in_turn(
    colors: Sequence[str], points: Sequence[str], handicap: int, opening: int
) -> tuple[list[str], int]:
    """Returns the moves with White's passes between the first `handicap` of Black's,
    and how many of them are the first `opening` moves."""
    moves: list[str] = []
    opening_moves = 0
    for number, (color, point) in enumerate(zip(colors, points, strict=True), 1):
        if 1 < number <= handicap:
            moves.append("pass")
        if color != "BW"[len(moves) % 2]:
            raise ValueError(f"move {number} is of {color} out of turn")
        moves.append(point)
        if number == opening:
            opening_moves = len(moves)
    return moves, opening_moves


def _text(node: Node, name: str, default: str = "") -> str:
    """Returns the text of a property that has one value."""
    values = node.get(name, [default])
    if len(values) > 1:
        raise _unreadable(name, *values[:2])
    return re.sub(r"\\(.)", r"\1", re.sub(r"\\\r?\n", "", values[0])).strip()


def _unreadable(name: str, *values: str) -> ValueError:
    shown = " and ".join(repr(value[:40]) for value in values)
    return ValueError(f"property {name} cannot be read: {shown}")


def _point_text(name: str, value: str, lines: int) -> str:
    """Returns a point in the notation of the game, an empty text for a pass."""
    letters = _LETTERS[:lines]
    value = value.strip()
    if name != "AB" and value in ("", "tt"):
        return ""
    if len(value) != 2 or not set(value) <= set(letters):
        raise _unreadable(name, value)
    return f"{_COLUMNS[letters.index(value[0])]}{lines - letters.index(value[1])}"


def _komi(root: Node) -> float:
    """Returns the komi in points.

    Fox writes hundredths, of 6.5 points or of the 3.75 stones of Chinese rules, which
    are 7.5 points.
    """
    text = _text(root, "KM") or "0"
    try:
        komi = float(text.replace(",", "."))
    except ValueError:
        raise _unreadable("KM", text) from None
    are_hundredths = komi >= (50 if "foxwq" in "".join(root.get("AP", [])) else 200)
    if are_hundredths:
        komi /= 100
    is_of_stones = komi % 0.5 == 0.25 or (are_hundredths and 2.5 < komi < 4)
    return 2 * komi if is_of_stones else komi


def decode_sgf(content: bytes) -> str:
    """Returns the text of an SGF file that is not in UTF-8, in the encoding that its
    property CA names.

    In East Asian encodings the second byte of a character may be a bracket or a
    backslash of ASCII, so that another encoding would hide the end of a value, and with
    it moves. Without CA the encoding is the one that shows most values.

    Raises:
        ValueError: the content has another encoding than CA says.
    """
    named = re.search(rb"\bCA\s*\[\s*([\w.:-]{1,40})\s*\]", content[:_HEAD_BYTES])
    if named:
        name = named[1].decode()
        with contextlib.suppress(LookupError):  # no encoding, or none of these
            try:
                return content.decode(_NAMED_CODECS[codecs.lookup(name).name])
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"the text is not in {name}, as CA says: {error}"
                ) from None
    # Of encodings that show equally many, latin-1 is likely if letters stand alone.
    alone = len(re.findall(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])", content))
    are_alone = 2 * alone > sum(byte >= 0x80 for byte in content)
    texts = []
    for name in (_CODECS[-1], *_CODECS) if are_alone else _CODECS:
        with contextlib.suppress(UnicodeDecodeError):
            texts.append(content.decode(name))
    # Chinese text read as Japanese has many katakana of half width.
    return max(
        texts,
        key=lambda text: (len(_VALUE.findall(text)), -len(_KATAKANA.findall(text))),
    )


SGF = RecordFormat("sgf", r"\(", to_sgf, read_sgf, decode_sgf)
