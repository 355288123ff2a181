/**
 * The page's address, which holds the game: `?player=NAME#you=0&moves=3-3-2`. The moves
 * are the numbers of the actions; `you` is who the visitor is: 0, 1 or `nobody`.
 */
import { RefusedError } from "./engine.js";

const LONGEST = 8000; // letters, of any game's moves

function replace(change) {
  const url = new URL(location);
  change(url);
  if (url.href === location.href) return;
  try {
    history.replaceState(null, "", url);
  } catch {
    // Some browsers allow only so many in a while: the next move is written again.
  }
}

export const address = {
  get link() {
    return location.href;
  },

  /**
   * @returns {{you: number|null, actions: number[]}|null} null if there is no game
   * @throws {RefusedError} what is there is none
   */
  readGame() {
    if (location.hash === "") return null;
    const refuse = (reason) => {
      throw new RefusedError(reason);
    };
    const parts = new URLSearchParams(location.hash.slice(1));
    const [you, moves] = [parts.get("you"), parts.get("moves") ?? ""];
    if (!["0", "1", "nobody"].includes(you)) {
      refuse(`“you” must be 0, 1 or nobody: ${you ?? "it is missing"}`.slice(0, 100));
    }
    if (moves.length > LONGEST) refuse("no game is as long as that");
    const texts = moves === "" ? [] : moves.split("-");
    if (!texts.every((text) => /^\d{1,9}$/.test(text))) {
      refuse(`“moves” must be numbers, as in 3-3-2: “${moves.slice(0, 40)}”`);
    }
    return { you: you === "nobody" ? null : Number(you), actions: texts.map(Number) };
  },

  /** Writes a game; nothing for one that the page begins by itself. */
  writeGame(you, actions) {
    const isPlain = you === 0 && actions.length === 0;
    const text = `you=${you ?? "nobody"}&moves=${actions.join("-")}`;
    replace((url) => {
      url.hash = isPlain ? "" : text;
    });
  },

  /** Writes whom the visitor plays against; who plays is said by the game from now on. */
  writePlayer(name) {
    replace(({ searchParams }) => {
      searchParams.set("player", name);
      searchParams.delete("watch");
    });
  },

  /** Calls the listener when the visitor puts another game into the address. */
  onOtherGame(listener) {
    addEventListener("hashchange", listener);
  },
};
