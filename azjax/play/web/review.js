/** The review of a game: a player's value of every position, and the mistakes. */
import { svg, tag } from "./elements.js";
import { CHANCE, RefusedError } from "./engine.js";
import { playerText, signed } from "./texts.js";

const LARGEST = 60_000; // bytes of a message with the text of a game, on any server
const UNKNOWN = "?"; // name of a player
const HIGHEST = 1.1; // value at the upper edge of the curve
const WORDS = { "??": "Blunder", "?": "Mistake", "?!": "Inaccuracy" };

/**
 * @typedef {Object} ReviewedMove
 * @property {number} ply of the position after the move
 * @property {string} text notation of the move
 * @property {""|"?!"|"?"|"??"} mark
 * @property {number} before expected result for player 0 before the move
 * @property {number} after the same after the move
 * @property {number} loss of its player
 * @property {string} best the reviewer's move
 * @property {number} bestAction
 * @property {number[]} bestCells
 * @property {string} exact results under perfect play before and after; may be empty
 * @property {number|null} exactBefore result under perfect play for player 0
 * @property {number|null} exactAfter
 */

export class Review {
  /** @type {ReviewedMove[]} in order; fewer than the game has until the review is done */
  moves = [];
  isRunning = false;
  #actions = null; // of the reviewed game
  #title = ""; // of a game that was read
  #summaries = [];
  #turn = 0; // changes with each review

  /**
   * @param {(id: string) => HTMLElement} find finds elements of index.html by id
   * @param {import("./engine.js").Engine} engine
   * @param {Object[]} players as in `Options`
   * @param {{attempt: (action: () => Promise<void>) => void, onChange: () => void,
   *     match: import("./match.js").Match, sides: string[]}} page
   */
  constructor(find, engine, players, page) {
    Object.assign(this, { find, engine, page });
    const options = players.map((player) => new Option(playerText(player), player.name));
    find("reviewer").replaceChildren(...options);
    find("reviewer").parentElement.hidden = players.length < 2;
    const on = (id, event, action) => {
      find(id)[event] = () => page.attempt(action);
    };
    on("review-game", "onclick", () => this.start());
    on("stop-review", "onclick", () => this.stop());
    on("read-game", "onclick", () => this.#read(find("game-text").value));
    on("game-file", "onchange", () => this.#readFile());
    on("next-mistake", "onclick", () => page.match.look(this.#nextMistake));
    on("better", "onclick", () => this.#showBetter());
    find("curve").onclick = (event) => page.attempt(() => this.#look(event));
  }

  /** The reviewed move that leads to the shown position, if there is one. */
  get shownMove() {
    const { ply, ahead } = this.page.match;
    return ahead ? undefined : this.moves[ply - 1];
  }

  /** Reviews the game, as far as it is played. */
  async start() {
    const { match } = this.page;
    this.#clear();
    const turn = this.#turn;
    this.#actions = match.actions;
    this.isRunning = true;
    this.page.onChange();
    this.find("status").scrollIntoView({ block: "nearest" }); // far up on a phone
    const keep = (move) => {
      if (turn !== this.#turn) return;
      this.moves[move.ply - 1] = move;
      this.page.onChange();
    };
    const player = this.find("reviewer").value;
    try {
      const found = await this.engine.review(match.actions, player, keep);
      if (turn === this.#turn) this.#summaries = found?.summaries ?? [];
    } finally {
      if (turn === this.#turn) {
        this.isRunning = false;
        this.page.onChange();
        match.refresh(); // an open analysis goes on
      }
    }
  }

  /** Ends the running review; what was found remains. */
  stop() {
    if (this.isRunning) this.engine.stop();
  }

  /** Shows the review with the shown position; forgets it if the game has changed. */
  show() {
    const { find } = this;
    const { match } = this.page;
    if (this.#actions && String(this.#actions) !== String(match.actions)) {
      this.stop();
      this.#clear();
    }
    find("review-game").disabled = match.isComputersTurn || match.steps.length < 2;
    find("review-game").hidden = this.isRunning;
    find("stop-review").hidden = find("review-progress").hidden = !this.isRunning;
    find("review-progress").max = match.steps.length - 1;
    find("review-progress").value = this.moves.length;
    find("review-view").hidden = !this.#actions;
    find("main").classList.toggle("reviewed", Boolean(this.#actions));
    if (!this.#actions) return;
    find("review-title").textContent = this.#title;
    drawCurve(find("curve"), match, this.moves, this.page.sides);
    this.#showVerdict();
  }

  #clear() {
    this.#turn++;
    this.#actions = null;
    this.#title = "";
    this.#summaries = [];
    this.moves = [];
    this.isRunning = false;
  }

  async #readFile() {
    const [file] = this.find("game-file").files;
    if (!file) return;
    this.find("game-file").value = ""; // so that the same file can be chosen again
    checkSize(file.size);
    await this.#read(await file.text());
  }

  async #read(text) {
    checkSize(new TextEncoder().encode(JSON.stringify(text)).length);
    await this.open(await this.engine.read(text));
  }

  /**
   * Shows and reviews a game.
   * @param {{actions: number[], players: string[], result: string}} record
   */
  async open({ actions, players, result }) {
    await this.page.match.open(actions);
    const reviewing = this.start();
    const isKnown = players.some((name) => name !== UNKNOWN);
    this.#title = isKnown ? `${players.join(" – ")}: ${result}` : "";
    this.page.onChange();
    await reviewing;
  }

  /** Shows the position of a click on the curve. */
  async #look({ target, clientX }) {
    const { left, width } = this.find("curve").getBoundingClientRect();
    const last = this.page.match.steps.length - 1;
    const ply = target.dataset.ply ?? Math.round(((clientX - left) / width) * last);
    await this.page.match.look(Number(ply));
  }

  /** The ply after the next marked move, or else after the first one; -1 if none is. */
  get #nextMistake() {
    const marked = this.moves.filter(({ mark }) => mark).map(({ ply }) => ply);
    return marked.find((ply) => ply > this.page.match.ply) ?? marked[0] ?? -1;
  }

  /** Shows the position after the better move. */
  async #showBetter() {
    const { match } = this.page;
    const { ply, bestAction, best } = this.shownMove;
    await match.look(ply - 1);
    await match.lookAhead(match.shown, [{ action: bestAction, text: best }]);
  }

  #showVerdict() {
    const { find } = this;
    const move = this.shownMove;
    const hasBetter = Boolean(move && move.best !== move.text);
    find("verdict").textContent = this.#verdict(move);
    find("better").hidden = !hasBetter;
    if (hasBetter) find("better").textContent = `Show ${move.best}`;
    find("next-mistake").hidden = this.#nextMistake < 0;
    find("summaries").textContent = this.#summaries.join("\n");
  }

  #verdict(move) {
    const { ply, ahead, steps } = this.page.match;
    if (ahead) return "";
    if (this.isRunning && !this.moves.length) return "Preparing the reviewer.";
    if (!move) return ply ? "This move is not reviewed." : "Select a move.";
    const { text, mark, loss, best, bestCells, before, after, exact } = move;
    const values = `${signed(before)} to ${signed(after)}`;
    if (steps[ply - 1].player === CHANCE) return `By chance: ${text}, ${values}.`;
    const parts = [];
    const what = mark ? `${WORDS[mark]}: ${text} ${mark}` : text;
    const own = `${mark ? ", though it" : ""} is the reviewer's move`;
    if (best === text) parts.push(`${what}${own}, ${signed(after)}`);
    else if (!mark && loss < 0.005) {
      parts.push(`${what} is as good as the reviewer's move, ${best} (${signed(after)})`);
    } else {
      const where = mark && bestCells.length ? " (green on the board)" : "";
      parts.push(`${what} loses ${loss.toFixed(2)} (${values})`, `Better: ${best}${where}`);
    }
    if (exact) parts.push(`Solver: ${exact}`);
    return `${parts.join(". ")}.`;
  }
}

/** Returns the mark of a move as a word, "" for a good move. */
export function markText({ mark, text, best }) {
  if (!mark) return "";
  const better = best === text ? "" : `, better ${best}`;
  return `, ${WORDS[mark].toLowerCase()}${better}`;
}

function checkSize(bytes) {
  if (bytes <= LARGEST) return;
  const size = `${Math.ceil(bytes / 1000).toLocaleString("en")} kB`;
  const most = `${LARGEST / 1000} kB`;
  throw new RefusedError(`This has ${size}; a game may have ${most}. Give one game alone.`);
}

/**
 * Draws the curve of a review: the values for the user or for player 0, and the mistakes.
 * @param {HTMLElement} element
 * @param {import("./match.js").Match} match
 * @param {ReviewedMove[]} moves in order
 * @param {string[]} sides names of the players' pieces
 */
function drawCurve(element, { steps, ply, you }, moves, sides) {
  const last = steps.length - 1;
  const view = you ?? 0;
  const height = (value) => (view === 0 ? -value : value); // down is positive
  const points = moves.map(({ ply, after }) => [ply, height(after)]);
  if (moves[0]) points.unshift([0, height(moves[0].before)]);
  const exact = moves.map(
    ({ ply, exactAfter }) => `H${ply - 0.5}V${height(exactAfter)}`,
  );
  const line = points.join("L");
  const drawn = svg(
    "svg",
    {
      viewBox: `0 ${-HIGHEST} ${last} ${2 * HIGHEST}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `Value over ${last} moves; ${sides[view]} above, ${sides[1 - view]} below`,
    },
    svg("path", { d: `M0 0H${last}`, class: "axis" }),
  );
  if (points.length) {
    drawn.append(
      svg("path", { d: `M${points[0][0]} 0L${line}L${points.at(-1)[0]} 0z`, class: "area" }),
      svg("path", { d: `M${line}`, class: "curve" }),
    );
  }
  const isSolved = moves.length > 0 && moves[0].exactBefore !== null;
  if (isSolved) {
    const d = `M0 ${height(moves[0].exactBefore)}${exact.join("")}H${points.at(-1)[0]}`;
    drawn.append(svg("path", { d, class: "exact" }));
  }
  const at = (element, place, value) => {
    element.style.setProperty("left", `${(100 * place) / last}%`);
    element.style.setProperty("top", `${(50 * (value + HIGHEST)) / HIGHEST}%`);
    return element;
  };
  const dots = moves
    .filter(({ mark }) => mark)
    .map(({ ply, mark, after }) => {
      const dot = tag("i", { className: "dot-mark" });
      Object.assign(dot.dataset, { ply, mark });
      return at(dot, ply, height(after));
    });
  const now = at(tag("i", { className: "now" }), ply, -HIGHEST);
  element.replaceChildren(
    drawn,
    tag("span", { className: "above" }, `${sides[view]} ahead`),
    tag("span", { className: "below" }, `${sides[1 - view]} ahead`),
    ...(isSolved ? [tag("span", { className: "legend" }, "dashed: solver")] : []),
    now,
    ...dots,
  );
}
