/**
 * The interface between the page and an engine, which has rules and search.
 *
 * The page talks to an `Engine` only. `WorkerEngine` is the one that lives in the
 * visitor's browser, `ServerEngine` the one that asks a server, and a notebook has one
 * more.
 *
 * @typedef {Object} Engine
 * @property {(onLoading: (share: number) => void, player?: string,
 *     onPreview?: (preview: Preview) => void) =>
 *     Promise<Description>} start answered as soon as there are moves to choose from;
 *     `onLoading` receives the loaded share of the player, from 0 to 1, also later;
 *     called again for another player, where there are several
 * @property {(actions: number[]) => Promise<Position>} position after these actions from
 *     the first position
 * @property {(actions: number[]) => Promise<(Move & {player: number})[]>} replay what
 *     these moves from the first position are called, and who made them
 * @property {(request: Request, onProgress: (thought: Thought) => void) =>
 *     Promise<Thought|{resigns: true}|null>} think null if it was stopped or another
 *     thought was asked for
 * @property {(actions: number[], text: string) => Promise<number>} [read] the action that
 *     a text means after these actions, as people write moves; for pictures of boards only
 * @property {() => void} stop gives up the thought that is under way
 * @property {() => void} forget lets go of what earlier thoughts found
 * @property {(stage: string) => void} onStage told what is done before the answer to a
 *     question begins, such as compiling
 *
 * @typedef {Object} Preview what can be drawn before the game can begin
 * @property {Description} description without the player
 * @property {Position} position the first one, without its moves
 *
 * @typedef {Object} Description
 * @property {string} game its name
 * @property {string} title its name as people write it
 * @property {string} player the computer's name
 * @property {number|null} simulations how far it looks ahead if nothing else is asked
 * @property {number[]} strengths the simulations to choose from; none: it has no strengths
 * @property {string|null} [search] how it searches, for people to read
 * @property {number} height
 * @property {number} width
 * @property {"discs"|"marks"|"picture"} style how the board looks
 * @property {string[]} sides what each player's pieces are called
 * @property {"columns"|"cells"} targets what a player points at
 * @property {string[]} [pieces] the name of each kind of piece, those of player 0 first;
 *     like what follows, for the style `picture`
 * @property {string[]} [figures] an SVG document of each kind of piece, around (0, 0)
 * @property {string[]} [columns] their names
 * @property {string[]} [rows] their names, from the top; none if nobody names rows
 * @property {{left: number, top: number, width: number, height: number, cell: number,
 *     centres: number[][]}} [picture] the measures of a position's picture
 *
 * @typedef {Object} Position
 * @property {number} player who is to move, 0 or 1
 * @property {number[]} cells the kind of piece that lies there, -1 where empty; where
 *     nothing else is said, a player has one kind
 * @property {Move[]} moves what is legal; nothing at the end
 * @property {boolean} isOver
 * @property {number[]} rewards the result for each player: 1 win, -1 loss, 0 draw
 * @property {Move|null} last the move that led here
 * @property {string} resultText what there is to say about the end beside who has won: a
 *     score, or a reason
 * @property {number[]} winningCells those that won the game, such as four in a row
 * @property {boolean} [isResigned] whether that is the end, and not one by the rules
 * @property {string} [picture] an SVG document, for the style `picture`
 * @property {string|null} [turnedPicture] what the second player sees; null if the same
 *
 * @typedef {Object} Move
 * @property {number} action its number
 * @property {string} text as people write it
 * @property {number[]} cells what is pointed at, or where the piece comes to lie: one
 *     cell, or from and to; none where the move has no place on the board
 * @property {number} [becomes] of several moves with the same cells: the kind of piece
 *     that this one puts into the last of them
 *
 * @typedef {Object} Request
 * @property {number[]} actions the position to think about
 * @property {number|null} simulations how many; null for a player without strengths
 * @property {"play"|"hint"} purpose each has a tree of its own, kept from move to move, so
 *     that looking at an analysis does not make the computer stronger
 * @property {boolean} tree whether to tell the tree at the end
 *
 * @typedef {Object} Thought
 * @property {number} action the best move: the most visited
 * @property {{action: number, text: string, prior: number, visits: number,
 *     value: number|null, weight?: number}[]} moves the legal ones, or those that were
 *     considered; values are in [-1, 1], for the player to move, null where never tried;
 *     visits are 0 from a player that does not search; the weight is the probability of
 *     the move in the policy that the search returns
 * @property {number} visits of the position
 * @property {number|null} value for the player to move, in [-1, 1]; null if unknown
 * @property {number[]|null} result chances of win, draw and loss for the player to move;
 *     null if unknown
 * @property {{action: number, text: string}[]} line what is expected to follow
 * @property {Branch[]} [tree] the most visited positions below this one, each after the
 *     one that it follows; told at the end of a thought if it was asked for, or also
 *     before; none from a player that does not search
 * @property {number} simulations made for this thought so far
 * @property {number} seconds that they took
 * @property {boolean} [isCut] whether the time was up before all simulations were made
 *
 * @typedef {Object} Branch
 * @property {number} parent where in the list the position before is; -1 if that is the
 *     one that was thought about
 * @property {number} action that leads here
 * @property {string} text what that move is called
 * @property {number} prior of that move
 * @property {number} visits
 * @property {number} value for the player who moved here, in [-1, 1]
 */

/** Why what was asked for is not done. */
export class RefusedError extends Error {}

/**
 * Asks by messages `{id, method, params}`, which are answered by `{id, kind, value}`.
 * @implements {Engine}
 */
export class MessageEngine {
  #waiting = new Map();
  #nextId = 0;
  #failure = null;
  #onLoading = () => {};
  onStage = () => {};

  /**
   * @param {(message: Object) => void} post
   * @param {(error: Error) => void} onFailure called when nothing more can be done
   */
  constructor(post, onFailure) {
    this.post = post;
    this.onFailure = onFailure;
  }

  start(onLoading) {
    this.#onLoading = onLoading;
    return this.ask("start", {});
  }

  position(actions) {
    return this.ask("position", { actions });
  }

  replay(actions) {
    return this.ask("replay", { actions });
  }

  think({ actions, simulations, tree }, onProgress) {
    return this.ask("think", { actions, simulations, tree }, onProgress);
  }

  read(actions, text) {
    return this.ask("read", { actions, text });
  }

  stop() {
    this.tell("stop");
  }

  /** Nothing is kept from thought to thought. */
  forget() {}

  /** The messages that are not answered yet, the oldest first. */
  get open() {
    return [...this.#waiting.values()].map(({ message }) => message);
  }

  /** Asks for an answer. */
  ask(method, params, onProgress = () => {}) {
    if (this.#failure) return Promise.reject(this.#failure);
    const message = { id: this.#nextId++, method, params };
    return new Promise((resolve, reject) => {
      this.#waiting.set(message.id, { message, resolve, reject, onProgress });
      this.post(message);
    });
  }

  /** Says something whose answer nobody waits for. */
  tell(method) {
    if (!this.#failure) this.post({ id: this.#nextId++, method, params: {} });
  }

  /** Takes a message of the other side. */
  receive({ id, kind, value }) {
    if (kind === "failure") this.fail(new Error(value));
    if (kind === "loading") this.#onLoading(value);
    const asked = this.#waiting.get(id);
    if (!asked) return;
    if (kind === "stage") {
      this.onStage(value);
      return;
    }
    if (kind === "progress") {
      asked.onProgress(value);
      return;
    }
    this.#waiting.delete(id);
    if (kind === "answer") asked.resolve(value);
    else asked.reject(new RefusedError(value));
  }

  /** Gives up for good. */
  fail(error) {
    this.#failure = error;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
    this.onFailure(error);
  }
}

/** The player that lives in the visitor's browser. */
export class WorkerEngine extends MessageEngine {
  /** @param {(error: Error) => void} onFailure called when nothing more can be done */
  constructor(onFailure) {
    const url = new URL("./worker.js", import.meta.url);
    const worker = new Worker(url, { type: "module" });
    super((message) => worker.postMessage(message), onFailure);
    worker.onmessage = ({ data }) => this.receive(data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.fail(new Error(event.message || "the player's program did not load"));
    };
  }

  /** Here trees are kept, one for each purpose. */
  think(request, onProgress) {
    return this.ask("think", request, onProgress);
  }

  forget() {
    this.tell("forget");
  }
}
