/** A game in the page's address and in a file. */
import { tag } from "./elements.js";
import { RefusedError } from "./engine.js";

const LONGEST = 8000; // characters of the moves
const RESULTS = { 1: "first wins", 0: "drawn", "-1": "second wins" };
const FORFEIT = ", the other side could not go on";

/**
 * The game in the page's address: `?player=NAME&setup=FEN#you=0&moves=3-3-2`. The moves are
 * actions; `you` is the user's player: 0, 1 or `nobody`.
 */
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

/** Changes the address of the page. */
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

/** The buttons that copy the link of the game and save its file. */
export class GameExport {
  #copied = null; // the copied link

  /**
   * @param {(id: string) => HTMLElement} find finds elements of index.html by id
   * @param {{link: string}} [address] of the page, if it has its own
   * @param {() => {name: string, text: string}} makeFile
   */
  constructor(find, address, makeFile) {
    this.address = address;
    this.field = find("link");
    this.message = find("shared");
    find("copy-link").hidden = !address;
    find("copy-link").onclick = () => this.#copy();
    find("save-game").onclick = () => download(makeFile());
  }

  /** Removes the message about a link that is out of date. */
  show() {
    if (this.address?.link === this.#copied) return;
    this.field.hidden = true;
    this.message.textContent = "";
  }

  async #copy() {
    const { link } = this.address;
    this.#copied = link;
    try {
      await navigator.clipboard.writeText(link); // may be missing or forbidden
      this.field.hidden = true;
      this.message.textContent = "Link copied.";
    } catch {
      this.field.value = link;
      this.field.hidden = false;
      this.field.select();
      this.message.textContent = "Copy it from here:";
    }
  }
}

/** Downloads a text as a file. */
function download({ name, text }) {
  const href = `data:text/plain;charset=utf-8,${encodeURIComponent(text)}`;
  tag("a", { href, download: name }).click();
}

/**
 * Returns a saved game; `azjax play GAME --load FILE` continues it.
 * @param {string} game its key
 * @param {string} computer name of the computer player
 * @param {import("./match.js").Match} match
 * @returns {{name: string, text: string}} of the file
 */
export function gameFile(game, computer, { steps, you, position }) {
  const [first, second] = [0, 1].map((side) => (side === you ? "human" : computer));
  const moves = steps.slice(1).map(({ move }) => move.text.replaceAll(" ", "_"));
  const { isOver, isResigned, rewards } = position;
  const result = `${RESULTS[rewards[0]]}${isResigned ? FORFEIT : ""}`;
  const lines = [
    "azjax game 1",
    `game: ${game}`,
    `first: ${first}`,
    `second: ${second}`,
    `result: ${isOver ? result : "unfinished"}`,
    "",
  ];
  for (let ply = 0; ply < moves.length; ply += 2) {
    lines.push([`${ply / 2 + 1}.`, ...moves.slice(ply, ply + 2)].join(" "));
  }
  const name = `${game}-${new Date().toISOString().slice(0, 19)}`;
  return {
    name: `${name.replace(/[^\w.-]+/g, "-")}.txt`,
    text: `${lines.join("\n")}\n`,
  };
}
