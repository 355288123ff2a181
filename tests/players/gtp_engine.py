"""A GTP engine for small boards that plays the first free cell and can fail on demand.

    python gtp_engine.py [BEHAVIOR [LOG]]

LOG: a file for the received commands; `LOG.pids` gets the process id.
"""

import os
import pathlib
import subprocess
import sys
import time

BEHAVIOR, LOG = (*sys.argv[1:], "good", os.devnull)[:2]
CELLS = [f"{column}{row}" for row in "321" for column in "abc"]
COMMANDS = "protocol_version name list_commands clear_board play genmove undo quit"
CLEANUP = "kgs-genmove_cleanup"

moves = []


def genmove(is_cleanup=False):
    free = [cell for cell in CELLS if cell not in moves]
    if BEHAVIOR == "dies":
        print("out of\n\x1b[31mluck", file=sys.stderr, flush=True)
        sys.exit(3)
    if BEHAVIOR == "meets":  # waits for a second engine
        while len(pathlib.Path(f"{LOG}.pids").read_text().split()) < 2:
            time.sleep(0.01)
    if BEHAVIOR == "hangs":
        time.sleep(1000)
    if BEHAVIOR == "cheats":
        return moves[-1]
    if BEHAVIOR == "babbles":
        return "the corner" + "!" * 100_000
    if BEHAVIOR == "resigns":
        return "Resign"
    if BEHAVIOR == "floods":
        while True:
            print("x" * 10_000)
    if BEHAVIOR == "fails":
        raise ValueError("no\x1b idea")
    if BEHAVIOR.startswith("passes") and not is_cleanup:
        moves.append("pass")
        return "PASS"
    moves.append(free[0])
    return free[0].upper()


def clean_up():
    if BEHAVIOR == "passes untidily":
        raise ValueError("not now")
    if BEHAVIOR == "passes or resigns":
        return "resign"
    return genmove(is_cleanup=True)


def undo():
    if BEHAVIOR == "passes for good":
        raise ValueError("cannot undo")
    moves.pop()


def execute(name, words):
    match name:
        case "protocol_version":
            return "1" * 10_000 if BEHAVIOR == "old" else "2"
        case "name":
            return "Fake"
        case "list_commands":
            known = COMMANDS.split() + [CLEANUP] * BEHAVIOR.startswith("passes")
            lacking = {"forgets": "undo", "helpless": "genmove"}.get(BEHAVIOR)
            return "\n".join(command for command in known if command != lacking)
        case "clear_board":
            moves.clear()
        case "play":
            if BEHAVIOR == "strict":
                raise ValueError("illegal move")
            moves.append(words[1].lower())
        case "undo":
            undo()
        case "genmove":
            return genmove()
        case "kgs-genmove_cleanup":
            return clean_up()
        case "boardsize" | "komi" if not BEHAVIOR.startswith("passes"):
            raise ValueError("unacceptable")
        case "boardsize" | "komi" | "quit":
            pass
        case _:
            raise ValueError("unknown command")
    return ""


if os.devnull != LOG:
    with open(f"{LOG}.pids", "a") as pids:
        print(os.getpid(), file=pids)
if BEHAVIOR == "silent":
    time.sleep(1000)
if BEHAVIOR == "noisy":
    print("Welcome to Fake!", flush=True)
if BEHAVIOR == "parent":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
for line in sys.stdin:
    number, name, *words = line.split()
    with open(LOG, "a") as log:
        print(name, *words, file=log)
    if BEHAVIOR == "confused":
        number = "77"
    try:
        answer = f"={number} {execute(name, words)}"
    except ValueError as error:
        answer = f"?{number} {error}"
    end = "\r\n" if BEHAVIOR == "windows" else "\n"
    print(answer, end=end * 2, flush=True)
    if name == "quit":
        break
