"""Games of Go in SGF, the Smart Game Format."""

import codecs
import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.game_record import (
    RANDOM_MOVES,
    RESIGNED,
    GameRecord,
    GameText,
    RecordFormat,
    ends_opening,
    score_text,
)

if TYPE_CHECKING:
    from azjax.games.go.game import Go

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
_VALUE = re.compile(r"\[(?:\\.|[^]\\])*\]", re.DOTALL)  # of a property
_FAULTS = {"r": RESIGNED, "t": "time", "f": "forfeit"}  # after B+ or W+


def to_sgf(game: "Go", records: Sequence[GameRecord]) -> str:
    """Returns games of Go as an SGF collection (FF[4], red-bean.com/sgf)."""
    longest = max((len(record.moves) for record in records), default=0)
    moves = np.full((len(records), longest), -1, np.int32)
    for row, record in zip(moves, records, strict=True):
        row[: len(record.moves)] = record.moves
    margins = np.asarray(_margins(game, jnp.asarray(moves)))
    return "".join(
        _tree(game, record, float(margin))
        for record, margin in zip(records, margins, strict=True)
    )


def _tree(game: "Go", record: GameRecord, margin: float) -> str:
    result = "?" if record.result is None else score_text(record.result * abs(margin))
    if record.fault and record.result:
        winner = "B" if record.result > 0 else "W"
        result = f"{winner}+{'F' if record.is_forfeit else 'R'}"
    properties = {
        "FF": "4",
        "GM": "1",
        "CA": "UTF-8",
        "AP": "azjax",
        "SZ": str(game.size),
        "KM": f"{game.komi:g}",
        "RU": "Tromp-Taylor",
        "PB": record.names[0],
        "PW": record.names[1],
        "RE": result,
    }
    if record.fault:
        properties["GC"] = record.fault
    root = "".join(f"{name}[{_escaped(text)}]" for name, text in properties.items())
    nodes = [
        f";{'BW'[number % 2]}[{_point(game, action)}]"
        for number, action in enumerate(record.moves)
    ]
    if record.opening_moves:
        nodes[record.opening_moves - 1] += f"C[{RANDOM_MOVES}]"
    lines = ["".join(nodes[start : start + 10]) for start in range(0, len(nodes), 10)]
    return "\n".join([f"(;{root}", *lines]) + ")\n"


def _point(game: "Go", action: int) -> str:
    """Returns column and row from the top left; an empty text for a pass."""
    if action == game.size**2:
        return ""
    row, column = divmod(action, game.size)
    return _LETTERS[column] + _LETTERS[row]


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("]", "\\]")


@jax.jit(static_argnames="game")
def _margins(game: "Go", moves: jax.Array) -> jax.Array:
    """Returns `[N]` float32, by how many points black is ahead after the moves."""

    def play(row):
        def step(state, action):
            after = game.step(state, action)
            return jax.tree.map(
                lambda new, old: jnp.where(action >= 0, new, old), after, state
            ), None

        black, white = game.score(jax.lax.scan(step, game.init(), row)[0])
        return black - white

    return jax.vmap(play)(moves)


def read_sgf(text: str) -> Iterator[GameText]:
    """Yields the games of Go of an SGF collection, without variations, and of the
    comments only the arena's about random moves.

    Raises:
        ValueError: sgfmill, which reads SGF, is not installed; or a game is of another
            kind, has handicap stones, or cannot be read.
    """
    try:
        from sgfmill import sgf, sgf_grammar  # noqa: PLC0415, an extra
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{error.name} is not installed: pip install 'azjax[records]'"
        ) from None
    trees = sgf_grammar.parse_sgf_collection(text.encode())
    for number, tree in enumerate(trees, 1):
        try:
            # The text is decoded already, whatever property CA says.
            game = sgf.Sgf_game.from_coarse_game_tree(tree, "UTF-8")
            yield _game_of(game, f"game {number}")
        except ValueError as error:
            raise ValueError(f"game {number}: {error}") from None


def _game_of(game: Any, place: str) -> GameText:
    """Returns a game of sgfmill as text."""
    root = game.get_root()
    with _naming(root, "GM"):
        kind = root.get("GM") if root.has_property("GM") else 1
    if kind != 1:
        raise ValueError(f"GM is {kind}, and 1 is Go")
    with _naming(root, "KM"):
        komi = game.get_komi()
    size = game.get_size()
    if size > len(_COLUMNS):
        raise ValueError(f"size must be at most {len(_COLUMNS)}: {size}")
    moves: list[str] = []
    opening_moves = 0
    for node in game.get_main_sequence():
        if node.has_setup_stones():
            raise ValueError("handicap stones and set-up positions cannot be read")
        with _naming(node, "B" if node.has_property("B") else "W"):
            color, point = node.get_move()
        if color is None:
            continue
        if color != "bw"[len(moves) % 2]:
            raise ValueError(f"move {len(moves) + 1} is of {color.upper()} out of turn")
        at = "pass" if point is None else f"{_COLUMNS[point[1]]}{point[0] + 1}"
        moves.append(at)
        if node.has_property("C") and ends_opening(_text(node, "C")):
            opening_moves = len(moves)
    result = _text(root, "RE").strip().lower()
    return GameText(
        place,
        f"go:size={size},komi={komi:g}",
        (_text(root, "PB"), _text(root, "PW")),
        moves,
        _result(result),
        _FAULTS.get(result[2:3], ""),
        opening_moves,
    )


def _text(node: Any, name: str) -> str:
    """Returns the text of a property, `?` if it is missing or empty."""
    with _naming(node, name):
        return (node.get(name) if node.has_property(name) else "") or "?"


@contextlib.contextmanager
def _naming(node: Any, name: str) -> Iterator[None]:
    """A context in which sgfmill's errors, which may be empty, get the property."""
    try:
        yield
    except ValueError:
        values = (value.decode()[:40] for value in node.get_raw_list(name)[:2])
        shown = " and ".join(map(repr, values))
        raise ValueError(f"property {name} cannot be read: {shown}") from None


def _result(text: str) -> int | None:
    """Returns the result that a value of the property RE in lower case stands for."""
    if text in ("0", "draw", "jigo"):
        return 0
    return {"b+": 1, "w+": -1}.get(text[:2])


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
    return max(texts, key=lambda text: sum(1 for _ in _VALUE.finditer(text)))


SGF = RecordFormat("sgf", r"\(", to_sgf, read_sgf, decode_sgf)
