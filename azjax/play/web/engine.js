/**
 * The interface between the page and an engine, which provides rules and search.
 *
 * `WorkerEngine` runs in the browser, `ServerEngine` uses a server; a notebook has its
 * own.
 *
 * @typedef {Object} Engine
 * @property {(onLoading: (share: number) => void, player?: string,
 *     onPreview?: (preview: Preview) => void, setup?: string) =>
 *     Promise<Description>} start resolves when the rules are ready; `onLoading` receives
 *     the loaded share of the player in [0, 1], also later; `setup` is the FEN of the first
 *     position, "" for the usual one; a further call changes the player
 * @property {boolean} [setsUp] whether `start` takes a FEN
 * @property {(actions: number[]) => Promise<Position>} position after these actions
 * @property {(actions: number[]) => Promise<Position>} [roll] position after these actions
 *     and an outcome of chance, which the engine draws; not in a worker
 * @property {(actions: number[]) => Promise<(Move & {player: number})[]>} replay the
 *     notation and the player of each move, `CHANCE` for an outcome of chance
 * @property {(request: Request, onProgress: (decision: Decision) => void) =>
 *     Promise<Decision|{resigns: true}|null>} decide null if it was stopped or replaced by
 *     a newer request
 * @property {(actions: number[], text: string) => Promise<number>} parse the action that
 *     a text names after these actions
 * @property {(text: string) => Promise<{actions: number[], players: string[],
 *     result: string}>} [read] the game of a text; not in a worker
 * @property {(actions: number[], player: string,
 *     onMove: (move: import("./review.js").ReviewedMove) => void) =>
 *     Promise<{summaries: string[]}|null>} [review] what holds for the whole game, null if
 *     it was stopped; not in a worker
 * @property {() => void} stop cancels the running decision or review
 * @property {() => void} forget drops the search trees
 * @property {(stage: string) => void} onStage receives what runs before an answer, such as
 *     compiling
 *
 * @typedef {Object} Preview a game that is not ready yet
 * @property {Description} description without the player
 * @property {Position} position the first one, without moves
 *
 * @typedef {Object} Description
 * @property {string} game key
 * @property {string} title name of the game for people
 * @property {string} player name of the computer player
 * @property {number|null} simulations its default number of simulations
 * @property {number[]} strengths allowed numbers of simulations; may be empty
 * @property {string|null} [search] description of the search for people
 * @property {number} height
 * @property {number} width
 * @property {string[]} sides names of the players' pieces
 * @property {"columns"|"cells"} targets what the user clicks
 * @property {string[]} pieces name of each kind of piece, those of player 0 first
 * @property {string[]} columns labels
 * @property {string[]} rows labels from the top; may be empty
 * @property {boolean} hasFen whether positions have a FEN
 * @property {BoardParts} board
 *
 * @typedef {Object} BoardParts the drawing of an empty board; texts are SVG elements, empty
 *     if another library draws the positions
 * @property {number} left
 * @property {number} top
 * @property {number} width
 * @property {number} height
 * @property {number} cell size of a cell
 * @property {number[][]} centers of the cells, row by row
 * @property {string} ground behind the pieces
 * @property {string} front in front of the pieces
 * @property {string[]} pieces each kind of piece, centered at (0, 0)
 * @property {string} mark of a cell of the last move, centered at (0, 0)
 * @property {boolean} marksBelow whether pieces are drawn over marks
 * @property {string[]|null} sideColors colors of the players if the pieces belong to neither
 * @property {number[][]} columnLabels centers
 * @property {number[][]} rowLabels centers
 * @property {boolean} isTwoSided whether player 1 sees the board from the opposite side
 *
 * @typedef {Object} Position
 * @property {number} player to move, 0 or 1, or `CHANCE`
 * @property {number[]} cells kind of the piece in each cell, -1 where empty
 * @property {Move[]} moves legal moves; empty at the end, and where chance is next
 * @property {boolean} isOver
 * @property {number[]} rewards of each player: 1 win, -1 loss, 0 draw
 * @property {Move|null} last the previous move
 * @property {number[]} marked its cells in this position
 * @property {string} resultText reason or score of the result; may be empty
 * @property {number[]} winningCells cells that decide the game, such as four in a row
 * @property {boolean} [isResigned] whether the game ended by resignation
 * @property {Position} [unresigned] the position before the resignation
 * @property {string|null} picture SVG document, if another library draws the positions
 *
 * @typedef {Object} Move
 * @property {number} action or the number of an outcome of chance
 * @property {string} text notation
 * @property {number[]} cells of the move: one cell, or start and end; may be empty
 * @property {number} [becomes] where several moves have the same cells: the kind of the
 *     piece in the last cell after the move
 *
 * @typedef {Object} Request
 * @property {number[]} actions that lead to the position
 * @property {number|null} simulations null for a player without strengths
 * @property {"play"|"hint"} purpose each has its own tree, kept from move to move, so that
 *     an analysis does not make the computer stronger
 * @property {boolean} tree whether the final answer includes the tree
 *
 * @typedef {Object} Decision
 * @property {number} action the chosen move
 * @property {{action: number, text: string, prior: number, visits: number,
 *     value: number|null, weight?: number}[]} moves considered moves; values are in
 *     [-1, 1], for the player to move, null without visits; visits are 0 without a search;
 *     the weight is the move's probability in the policy that the search returns
 * @property {number} visits of the position
 * @property {number|null} value for the player to move, in [-1, 1]; null if unknown
 * @property {number[]|null} result probabilities of win, draw and loss for the player to
 *     move; null if unknown
 * @property {{action: number, text: string}[]} line principal variation
 * @property {Branch[]} [tree] the most visited nodes below the position, parents before
 *     children; empty without a search
 * @property {number} simulations completed so far
 * @property {number} seconds duration so far
 * @property {boolean} [isTimedOut] whether the time limit ended the search
 *
 * @typedef {Object} Branch
 * @property {number} parent its index in the list; -1 for the root
 * @property {number} player who makes the move to it; of an outcome, the player for whom
 *     the value is stated
 * @property {number} action that leads here
 * @property {string} text notation of the action
 * @property {boolean} [isOutcome] whether the action is an outcome of chance
 * @property {number} prior of the action; of an outcome, its probability
 * @property {number} visits
 * @property {number} value for this player, in [-1, 1]
 */

/** In place of the player where a position waits for an outcome of chance. */
export const CHANCE = -1;

/** The engine rejected a request; the message is for the user. */
export class RefusedError extends Error {}

/**
 * Sends messages `{id, method, params}` and receives `{id, kind, value}`.
 * @implements {Engine}
 */
export class MessageEngine {
  #pending = new Map();
  #nextId = 0;
  #failure = null;
  #onLoading = () => {};
  onStage = () => {};

  /**
   * @param {(message: Object) => void} post
   * @param {(error: Error) => void} onFailure called after a fatal error
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

  roll(actions) {
    return this.ask("roll", { actions });
  }

  replay(actions) {
    return this.ask("replay", { actions });
  }

  decide({ actions, simulations, tree }, onProgress) {
    return this.ask("decide", { actions, simulations, tree }, onProgress);
  }

  parse(actions, text) {
    return this.ask("parse", { actions, text });
  }

  read(text) {
    return this.ask("read", { text });
  }

  review(actions, player, onMove) {
    return this.ask("review", { actions, player }, onMove);
  }

  stop() {
    this.tell("stop");
  }

  /** Does nothing: no tree is kept between decisions. */
  forget() {}

  /** The unanswered messages, the oldest first. */
  get open() {
    return [...this.#pending.values()].map(({ message }) => message);
  }

  /** Sends a request; resolves to its answer. */
  ask(method, params, onProgress = () => {}) {
    if (this.#failure) return Promise.reject(this.#failure);
    const message = { id: this.#nextId++, method, params };
    return new Promise((resolve, reject) => {
      this.#pending.set(message.id, { message, resolve, reject, onProgress });
      this.post(message);
    });
  }

  /** Sends a request without waiting for the answer. */
  tell(method) {
    if (!this.#failure) this.post({ id: this.#nextId++, method, params: {} });
  }

  /** Handles a received message. */
  receive({ id, kind, value }) {
    if (kind === "failure") this.fail(new Error(value));
    if (kind === "loading") this.#onLoading(value);
    const request = this.#pending.get(id);
    if (!request) return;
    if (kind === "stage") {
      this.onStage(value);
      return;
    }
    if (kind === "progress") {
      request.onProgress(value);
      return;
    }
    this.#pending.delete(id);
    if (kind === "answer") request.resolve(value);
    else request.reject(new RefusedError(value));
  }

  /** Rejects all requests after a fatal error. */
  fail(error) {
    this.#failure = error;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
    this.onFailure(error);
  }
}

/** The engine in a worker of the browser. */
export class WorkerEngine extends MessageEngine {
  /** @param {(error: Error) => void} onFailure called after a fatal error */
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

  /** Sends the purpose too: the worker keeps a tree for each. */
  decide(request, onProgress) {
    return this.ask("decide", request, onProgress);
  }

  forget() {
    this.tell("forget");
  }
}
