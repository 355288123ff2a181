/**
 * What the page asks of whoever knows the game and thinks about it.
 *
 * The page talks to an `Engine` only. `WorkerEngine` is the one that lives in the
 * visitor's browser; one that asks a server needs the same five methods.
 *
 * @typedef {Object} Engine
 * @property {(onLoading: (share: number) => void) => Promise<Description>} start called
 *     once, and answered as soon as there is a board; `onLoading` is told how much of the
 *     player is there, from 0 to 1, also later
 * @property {(actions: number[]) => Promise<Position>} position after these actions from
 *     the first position
 * @property {(request: Request, onProgress: (thought: Thought) => void) =>
 *     Promise<Thought|null>} think null if it was stopped or another thought was asked for
 * @property {() => void} stop gives up the thought that is under way
 * @property {() => void} forget lets go of what earlier thoughts found
 *
 * @typedef {Object} Description
 * @property {string} game its name
 * @property {string} title its name as people write it
 * @property {string} player the computer's name
 * @property {number} simulations how far it looks ahead if nothing else is asked
 * @property {number} height
 * @property {number} width
 * @property {"discs"|"marks"} style how the board looks
 * @property {string[]} sides what each player's pieces are called
 * @property {"columns"|"cells"} targets what a player points at
 *
 * @typedef {Object} Position
 * @property {number} player who is to move, 0 or 1
 * @property {number[]} cells the player whose piece lies there, -1 where empty
 * @property {Move[]} moves what is legal; nothing at the end
 * @property {boolean} isOver
 * @property {number[]} rewards the result for each player: 1 win, -1 loss, 0 draw
 * @property {Move|null} last the move that led here
 * @property {number[]} winningCells
 *
 * @typedef {Object} Move
 * @property {number} action its number
 * @property {string} text as people write it
 * @property {number} cell where the piece comes to lie
 *
 * @typedef {Object} Request
 * @property {number[]} actions the position to think about
 * @property {number} simulations how many
 * @property {"play"|"hint"} purpose each has a tree of its own, kept from move to move, so
 *     that looking at an analysis does not make the computer stronger
 *
 * @typedef {Object} Thought
 * @property {number} action the best move: the most visited
 * @property {{action: number, text: string, prior: number, visits: number,
 *     value: number|null}[]} moves the legal ones; values are in [-1, 1], for the player
 *     to move, null where never tried
 * @property {number} visits of the position
 * @property {number} value for the player to move, in [-1, 1]
 * @property {number[]} result chances of win, draw and loss for the player to move
 * @property {{action: number, text: string}[]} line what is expected to follow
 * @property {number} simulations made for this thought so far
 * @property {number} seconds that they took
 */

/** @implements {Engine} */
export class WorkerEngine {
  #worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  #waiting = new Map();
  #nextId = 0;
  #failure = null;
  #onLoading = () => {};

  /** @param {(error: Error) => void} onFailure called when nothing more can be done */
  constructor(onFailure) {
    this.#worker.onmessage = ({ data }) => this.#receive(data, onFailure);
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#fail(
        new Error(event.message || "the player's program did not load"),
        onFailure,
      );
    };
  }

  start(onLoading) {
    this.#onLoading = onLoading;
    return this.#ask("start", {});
  }

  position(actions) {
    return this.#ask("position", { actions });
  }

  think(request, onProgress) {
    return this.#ask("think", request, onProgress);
  }

  stop() {
    this.#ask("stop", {});
  }

  forget() {
    this.#ask("forget", {});
  }

  #ask(method, params, onProgress = () => {}) {
    if (this.#failure) return Promise.reject(this.#failure);
    const id = this.#nextId++;
    this.#worker.postMessage({ id, method, params });
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, onProgress });
    });
  }

  #receive({ id, kind, value }, onFailure) {
    if (kind === "failure") {
      this.#fail(new Error(value), onFailure);
      return;
    }
    if (kind === "loading") {
      this.#onLoading(value);
      return;
    }
    const asked = this.#waiting.get(id);
    if (kind === "progress") {
      asked.onProgress(value);
      return;
    }
    this.#waiting.delete(id);
    if (kind === "answer") asked.resolve(value);
    else asked.reject(new Error(value));
  }

  #fail(error, onFailure) {
    this.#failure = error;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
    onFailure(error);
  }
}
