/**
 * The game in the page's address: `?player=NAME&setup=FEN#you=0&moves=3-3-2`. The moves are
 * actions; `you` is the user's player: 0, 1 or `nobody`.
 */
import { RefusedError } from "./engine.js";

const LONGEST = 8000; // characters of the moves

function replace(change) {
  const url = new URL(location);
  change(url);
  if (url.href === location.href) return;
  try {
    history.replaceState(null, "", url);
  } catch {
    // Browsers limit the rate; the next move writes the address again.
  }
}

export const address = {
  get link() {
    return location.href;
  },

  /**
   * @returns {{you: number|null, actions: number[]}|null} null without a game
   * @throws {RefusedError} the address has an invalid game
   */
  readGame() {
    if (location.hash === "") return null;
    const refuse = (reason) => {
      throw new RefusedError(reason);
    };
    const parts = new URLSearchParams(location.hash.slice(1));
    const [you, moves] = [parts.get("you"), parts.get("moves") ?? ""];
    if (!["0", "1", "nobody"].includes(you)) {
      refuse(`“you” must be 0, 1 or nobody: ${you ?? "missing"}`.slice(0, 100));
    }
    if (moves.length > LONGEST) refuse("“moves” is too long");
    const texts = moves === "" ? [] : moves.split("-");
    if (!texts.every((text) => /^\d{1,9}$/.test(text))) {
      refuse(`“moves” must be numbers, as in 3-3-2: “${moves.slice(0, 40)}”`);
    }
    return { you: you === "nobody" ? null : Number(you), actions: texts.map(Number) };
  },

  /** Writes a game; nothing for a new game with the default settings. */
  writeGame(you, actions) {
    const isDefault = you === 0 && actions.length === 0;
    const text = `you=${you ?? "nobody"}&moves=${actions.join("-")}`;
    replace((url) => {
      url.hash = isDefault ? "" : text;
    });
  },

  /** Writes the opponent and the FEN; removes `?watch`, which the game's `you` replaces. */
  writePlayer(name, setup) {
    replace(({ searchParams }) => {
      searchParams.set("player", name);
      if (setup) searchParams.set("setup", setup);
      else searchParams.delete("setup");
      searchParams.delete("watch");
    });
  },

  /** Calls the listener when the user changes the game in the address. */
  onOtherGame(listener) {
    addEventListener("hashchange", listener);
  },
};
