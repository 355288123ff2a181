"""A UCI engine that moves its knights to and fro and can fail on demand.

    python uci_engine.py [BEHAVIOR [LOG]]

BEHAVIOR: a fault, or `plays MOVE` for an engine that always answers with that move.
LOG: a file for the received lines; `LOG.pids` gets the process id.
"""

import os
import subprocess
import sys
import time

BEHAVIOR, LOG = (*sys.argv[1:], "good", os.devnull)[:2]
MOVES = ["g1f3", "g8f6", "f3g1", "f6g8"]
OPTIONS = [
    "option name Skill Level type spin default 20 min 0 max 20",
    "option name UCI_LimitStrength type check default false",
    "option name UCI_Elo type spin default 1350 min 1350 max 2850",
    "option name Threads type spin default 4 min 1 max 8",
    "option name Style type combo default Solid var Solid var Very Risky",
    "option name Clear Hash type button",
    "option name Book type string default <empty>",
    "option name Broken type",
]

position = []  # its moves


def say(*lines):
    end = "\r\n" if BEHAVIOR == "windows" else "\n"
    for line in lines:
        print(line, end=end, flush=True)


def go():
    match BEHAVIOR.split():
        case ["dies"]:
            print("out of\n\x1b[31mluck", file=sys.stderr, flush=True)
            sys.exit(3)
        case ["hangs"]:
            time.sleep(1000)
        case ["closes"]:
            os.close(1)
            time.sleep(1000)
        case ["floods"]:
            while True:
                print("x" * 10_000, end="")
        case ["babbles"]:
            while True:
                print("info string", "x" * 10_000)
        case ["plays", *words]:
            say(" ".join(["bestmove", *words]))
        case _:
            say("info depth 1 score cp 20 pv a2a4", "bestmoves are rare", "")
            say(f"bestmove {MOVES[len(position) % 4]} ponder a7a6")


def execute(line):
    match line.split():
        case ["uci"]:
            if BEHAVIOR == "deaf":
                return
            while BEHAVIOR == "boasts":
                say(f"option name {'x' * 10_000} type button")
            say("Fake by nobody", "id name Fake", "id author nobody")
            say(*([] if BEHAVIOR == "plain" else OPTIONS), "uciok")
        case ["isready"]:
            if BEHAVIOR != "unready":
                say("readyok")
        case ["position", "startpos", *moves]:
            position[:] = moves[1:]
        case ["go", *_]:
            go()
        case ["quit"]:
            sys.exit()


if os.devnull != LOG:
    with open(f"{LOG}.pids", "a") as pids:
        print(os.getpid(), file=pids)
if BEHAVIOR == "absent":
    sys.exit(1)
if BEHAVIOR == "parent":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
for received in sys.stdin:
    with open(LOG, "a") as log:
        print(received, end="", file=log)
    execute(received)
