/** The board of any game: a drawing, with a button over each cell or column. */
import { parsedSvg, svg, svgNodes, tag } from "./elements.js";
import { RefusedError } from "./engine.js";
import { percent, singular } from "./texts.js";

const MOST_ARROWS = 6;
const LARGEST = 2; // width relative to the board's own
const SMALL = 34; // touch on smaller cells needs a confirmation (pixels)
const LABEL = 15; // font size on the board
const SMALLEST_LABEL = 10; // least font size on the screen (pixels)
const ARROW_LABEL = 0.7; // its place, as a share of the arrow
const CELL = 64; // reference size of a cell
const SMALLEST_SHARE = 0.01; // least share that is drawn
const CHOICE = 1.25; // size of a piece to choose (cells)
const MOST_BUTTONS = 12; // if there are more moves without a cell, they must be typed

/**
 * @typedef {import("./engine.js").Move} Move
 *
 * @typedef {Object} Estimate
 * @property {number} action
 * @property {number} share of the visits; without a search, the prior
 * @property {number} prior
 */

export class Board {
  /**
   * @param {HTMLElement} container
   * @param {import("./engine.js").Description} description
   * @param {(action: number) => void} onChoose
   * @param {(text: string) => Promise<number>} parse returns the action of a typed text
   */
  constructor(container, description, onChoose, parse) {
    const { board, targets, width, height } = description;
    this.container = container;
    this.description = description;
    this.onChoose = onChoose;
    this.isByColumn = targets === "columns";
    this.mayChoose = false;
    this.isTurned = false; // shown from the opposite side
    this.isFlipped = false; // by the user
    this.pointing = new Pointing([], (cell) => this.#targetOf(cell));
    this.from = null; // selected start of a move
    this.aim = null; // touched target that needs a confirmation
    this.over = null; // target under the pointer or with the focus
    this.pieces = new Pieces(description, this.#center);
    this.ghost = svg("g", { class: "ghost" });
    this.labels = svg("g", { class: "labels" });
    this.hints = svg("g", {});
    this.estimates = svg("g", {});
    this.better = svg("g", { class: "better" });
    this.buttons = this.#makeButtons(this.isByColumn ? width : height * width);
    const layer = document.createElement("div");
    layer.className = "targets";
    layer.append(...this.buttons);
    container.style.setProperty("--ratio", `${board.width} / ${board.height}`);
    container.style.setProperty("--widest", `${LARGEST * board.width}px`);
    this.choice = new PieceChoice(
      (action) => this.#play(action),
      () => this.#reset(),
    );
    container.replaceChildren(this.#makePicture(), layer, this.choice.element);
    this.#showLabels();
    new ResizeObserver(() => this.#fitLabels()).observe(container);
    this.entry = new MoveEntry(
      (action) => this.#play(action),
      parse,
      () => this.#reset(),
    );
    container.after(this.entry.element);
  }

  /**
   * Shows a position.
   * @param {import("./engine.js").Position} position
   * @param {boolean} mayChoose whether the user may move
   * @param {number|null} you the user's player, if any
   */
  show(position, mayChoose, you = null) {
    // Keeps the selection if the position is the same.
    if (position === this.position && mayChoose === this.mayChoose) return;
    if (position !== this.position) {
      const isOpposite = you === 1 && this.description.board.isTwoSided;
      this.#turn(isOpposite !== this.isFlipped);
      this.pieces.show(position);
    }
    this.position = position;
    this.you = you;
    this.mayChoose = mayChoose;
    this.pointing = new Pointing(mayChoose ? position.moves : [], (cell) =>
      this.#targetOf(cell),
    );
    this.#reset();
  }

  /** Shows the position from the opposite side, and all later ones. */
  flip() {
    const { position, mayChoose, you } = this;
    this.isFlipped = !this.isFlipped;
    this.position = null;
    this.show(position, mayChoose, you);
  }

  /**
   * Draws the estimates of a decision: in the cells, or as arrows.
   * @param {import("./engine.js").Decision|null} decision
   */
  showDecision(decision) {
    const moves = new Map(this.position.moves.map((move) => [move.action, move]));
    const shown = estimates(decision)
      .map((estimate) => ({ ...estimate, move: moves.get(estimate.action) }))
      .filter(({ move }) => move)
      .sort((a, b) => b.share - a.share);
    const withCells = (number) => shown.filter(({ move }) => move.cells.length === number);
    const { cell } = this.description.board;
    const arrows = withCells(2)
      .slice(0, MOST_ARROWS)
      .map((one) => [...one.move.cells.map(this.#center), one, cell]);
    this.estimates.replaceChildren(
      ...arrows.map((arrow) => drawnArrow(...arrow)),
      ...arrows.map((arrow) => drawnArrowLabel(...arrow)),
      ...withCells(1).map((one) => drawnEstimate(this.#center(one.move.cells[0]), one, cell)),
    );
    this.entry.showShares(withCells(0));
  }

  /**
   * Draws what a reviewer prefers to a marked move.
   * @param {import("./review.js").ReviewedMove} [move] the last one
   */
  showBetter(move) {
    const isShown = move?.mark && move.best !== move.text;
    const places = isShown ? move.bestCells.map(this.#center) : [];
    const { cell } = this.description.board;
    const drawn =
      places.length > 1
        ? [drawnArrow(...places, { share: 0.3 }, cell)]
        : places.map((place) => drawnRing(place, cell));
    this.better.replaceChildren(...drawn);
  }

  #center = (cell) => {
    const { centers } = this.description.board;
    return centers[this.isTurned ? centers.length - 1 - cell : cell];
  };

  #targetOf(cell) {
    return this.isByColumn ? cell % this.description.width : cell;
  }

  /** Returns the drawing; its layers change with the position. */
  #makePicture() {
    const { left, top, width, height, ground, front, marksBelow } = this.description.board;
    const { pieces, marks } = this.pieces;
    return svg(
      "svg",
      { viewBox: [left, top, width, height].join(" "), "aria-hidden": "true" },
      svg("g", { class: "ground" }, ...svgNodes(ground)),
      ...(marksBelow ? [marks] : []),
      this.ghost,
      pieces,
      svg("g", { class: "ground" }, ...svgNodes(front)),
      ...(marksBelow ? [] : [marks]),
      this.labels,
      this.hints,
      this.estimates,
      this.better,
    );
  }

  #turn(isTurned) {
    if (isTurned === this.isTurned) return;
    this.isTurned = isTurned;
    this.pieces.clear();
    this.#showLabels();
    this.buttons.forEach((button, target) => this.#place(button, target));
  }

  #showLabels() {
    const { columns, rows, board } = this.description;
    const drawn = (labels, places) =>
      places.map(([x, y], number) => {
        const index = this.isTurned ? labels.length - 1 - number : number;
        return svg("text", { x, y, dy: ".333em" }, labels[index]);
      });
    this.labels.replaceChildren(
      ...drawn(columns, board.columnLabels),
      ...drawn(rows, board.rowLabels),
    );
  }

  /** Keeps the labels readable on a small board. */
  #fitLabels() {
    const scale = this.container.clientWidth / this.description.board.width;
    const size = Math.max(LABEL, SMALLEST_LABEL / scale);
    this.container.style.setProperty("--label", `${size}px`);
  }

  #makeButtons(number) {
    return Array.from({ length: number }, (_, target) => {
      const button = document.createElement("button");
      button.type = "button";
      button.tabIndex = target === 0 ? 0 : -1;
      this.#place(button, target);
      let isTouched = false;
      button.onpointerdown = ({ pointerType }) => {
        isTouched = pointerType !== "mouse";
      };
      button.onclick = ({ detail }) => this.#point(target, isTouched && detail > 0);
      button.onkeydown = (event) => this.#moveFocus(event, target);
      button.onpointerenter = ({ pointerType }) => {
        if (pointerType === "mouse") this.#preview((this.over = target));
      };
      button.onpointerleave = () => this.#preview((this.over = this.aim));
      button.onfocus = () => {
        for (const other of this.buttons) other.tabIndex = other === button ? 0 : -1;
        if (button.matches(":focus-visible")) this.#preview((this.over = target));
      };
      button.onblur = () => this.#preview((this.over = this.aim));
      return button;
    });
  }

  #place({ style, classList }, target) {
    const { left, top, width, height, cell, centers } = this.description.board;
    const [x, y] = this.#center(target);
    const lowest = centers.at(-this.description.width); // of the first column
    const bottom = this.isByColumn ? lowest[1] : y;
    const set = (name, share) => style.setProperty(name, `${100 * share}%`);
    set("left", (x - cell / 2 - left) / width);
    set("top", (y - cell / 2 - top) / height);
    set("width", cell / width);
    set("height", (bottom - y + cell) / height);
    classList.toggle("round", centers[0][0] !== lowest[0]); // hexagons
  }

  /** Moves the focus by arrow keys; Escape clears the selection. */
  #moveFocus(event, target) {
    const { width } = this.description;
    const sign = this.isTurned ? -1 : 1;
    const [right, down] = {
      ArrowLeft: [-sign, 0],
      ArrowRight: [sign, 0],
      ArrowUp: [0, -sign],
      ArrowDown: [0, sign],
    }[event.key] ?? [0, 0];
    const column = (target % width) + right;
    const isStep = (right || down) && column >= 0 && column < width;
    const next = this.buttons[isStep ? target + right + down * width : -1];
    if (event.key === "Escape") this.#reset();
    if (!next) return;
    event.preventDefault();
    next.focus();
  }

  /** Clears the selection. */
  #reset() {
    if (this.aim !== null) this.over = null;
    this.from = this.aim = null;
    this.choice.close();
    this.entry.show(this.position.moves, this.mayChoose);
    this.#showHints();
    this.#preview(this.over);
  }

  #point(target, isTouched) {
    const moves = this.#movesAt(target);
    if (!moves.length) {
      const canStart = this.from !== target && this.pointing.ends(target).length > 0;
      this.#reset();
      if (canStart) this.from = target;
      this.#showHints();
    } else if (this.#makeDifferentPieces(moves)) {
      this.#choosePiece(moves);
    } else if (isTouched && this.#isSmall() && this.aim !== target) {
      this.aim = this.over = target;
      this.entry.choose(moves, "Play");
      this.#preview(target);
    } else if (moves.length > 1) {
      this.entry.choose(moves);
    } else {
      this.#play(moves[0].action);
    }
  }

  /** Whether each move puts another kind of piece into the last cell. */
  #makeDifferentPieces(moves) {
    const kinds = new Set(moves.map(({ becomes }) => becomes));
    return moves.length > 1 && kinds.size === moves.length && !kinds.has(undefined);
  }

  /** Shows a choice of pieces. */
  #choosePiece(moves) {
    const { board } = this.description;
    const choices = moves.map(({ action, becomes }) => ({
      action,
      name: this.#pieceName(becomes),
      piece: svgNodes(board.pieces[becomes] ?? ""),
    }));
    this.choice.show(choices, this.#center(moves[0].cells.at(-1)), board);
  }

  /** Returns the moves that a click on a target makes now. */
  #movesAt(target) {
    const moves = this.from === null ? [] : this.pointing.between(this.from, target);
    return moves.length ? moves : this.pointing.at(target);
  }

  #isSmall() {
    const { cell, width } = this.description.board;
    return (this.container.clientWidth * cell) / width < SMALL;
  }

  #play(action) {
    this.mayChoose = false;
    this.#reset();
    this.onChoose(action);
  }

  #showHints() {
    const { cell } = this.description.board;
    const empty = this.position.cells.filter((kind) => kind < 0).length;
    const { singles } = this.pointing;
    const hasHints = !this.isByColumn && singles.length <= empty / 2;
    const ends = this.from === null ? [] : this.pointing.ends(this.from);
    const hinted = this.from !== null ? [this.from, ...ends] : hasHints ? singles : [];
    this.hints.replaceChildren(
      ...hinted.map((one) => {
        const draw = this.position.cells[one] < 0 ? drawnDot : drawnRing;
        return draw(this.#center(one), cell);
      }),
    );
    const starts = new Set([...this.pointing.starts, ...ends]);
    this.buttons.forEach((button, target) => {
      button.setAttribute("aria-disabled", String(!starts.has(target)));
      button.setAttribute("aria-label", this.#label(target));
      if (target === this.from) button.setAttribute("aria-pressed", "true");
      else button.removeAttribute("aria-pressed");
    });
  }

  /** Shows a ghost of the move that a click on a target makes. */
  #preview(target) {
    const [move] = target === null ? [] : this.#movesAt(target);
    const { board } = this.description;
    const drawn = [];
    if (move) {
      const cell = move.cells.at(-1);
      const piece = board.sideColors
        ? drawnRing(this.#center(cell), board.cell) // the pieces belong to no side
        : this.pieces.drawn(cell, this.#kindMovedBy(move));
      if (target === this.aim) drawn.push(drawnAim(this.#center(cell), board));
      drawn.push(piece ?? drawnDot(this.#center(cell), board.cell));
    }
    this.ghost.replaceChildren(...drawn);
  }

  #kindMovedBy({ cells }) {
    const { cells: kinds, player } = this.position;
    return cells.length > 1
      ? kinds[cells[0]]
      : (player * this.description.pieces.length) / 2;
  }

  #label(target) {
    const { columns, rows, width, height } = this.description;
    const { cells: kinds, winningCells } = this.position;
    if (!this.isByColumn) {
      const [row, column] = [Math.floor(target / width), target % width];
      const wins = winningCells.includes(target) ? ", wins" : "";
      return `${columns[column]}${rows[row]}: ${this.#pieceName(kinds[target])}${wins}`;
    }
    const stack = [];
    for (let row = height - 1; row >= 0; row--) {
      const kind = kinds[row * width + target];
      if (kind >= 0) stack.push(this.#pieceName(kind));
    }
    const pile = stack.length ? `${stack.join(", ")} from below` : "empty";
    return `Column ${columns[target]}: ${pile}`;
  }

  #pieceName(kind) {
    return kind < 0 ? "empty" : singular(this.description.pieces[kind]);
  }
}

/** The pieces of a position and the marks of its cells, drawn from its cells. */
class Pieces {
  #drawn = new Map(); // kind and element of each piece, by cell

  /**
   * @param {import("./engine.js").Description} description
   * @param {(cell: number) => number[]} centerOf returns the place of a cell
   */
  constructor(description, centerOf) {
    this.board = description.board;
    this.falls = description.targets === "columns";
    this.centerOf = centerOf;
    this.pieces = svg("g", {});
    this.marks = svg("g", {});
  }

  /**
   * Shows a position; new pieces move into their cells.
   * @param {import("./engine.js").Position} position
   */
  show({ cells, last, marked, winningCells, picture }) {
    if (picture) {
      this.pieces.replaceChildren(this.#wholePicture(picture));
      return;
    }
    for (const [cell, { kind, element }] of this.#drawn) {
      if (cells[cell] === kind) continue;
      element.remove();
      this.#drawn.delete(cell);
    }
    cells.forEach((kind, cell) => {
      if (kind < 0) return;
      if (!this.#drawn.has(cell)) {
        const element = this.drawn(cell, kind);
        this.#animate(element, cell, last?.cells);
        this.pieces.append(element);
        this.#drawn.set(cell, { kind, element });
      }
      const loses = winningCells.length > 0 && !winningCells.includes(cell);
      this.#drawn.get(cell).element.classList.toggle("loses", loses);
    });
    const all = new Set([...marked, ...winningCells]);
    this.marks.replaceChildren(
      ...[...all].map((cell) => {
        const state = winningCells.includes(cell) ? "wins" : "last";
        return this.#placed(cell, this.board.mark, state);
      }),
    );
  }

  /** Removes all pieces: their cells have moved. */
  clear() {
    this.#drawn.clear();
    this.pieces.replaceChildren();
  }

  /** Returns a piece in a cell; null if another library draws the pieces. */
  drawn(cell, kind) {
    const text = this.board.pieces[kind];
    if (!text) return null;
    const element = this.#placed(cell, text, "piece");
    element.dataset.kind = kind;
    return element;
  }

  #placed(cell, text, className) {
    const transform = `translate(${this.centerOf(cell)})`;
    return svg("g", { transform, class: className }, svg("g", {}, ...svgNodes(text)));
  }

  /** Sets the motion of a new piece: it falls, comes from the move's start, or grows. */
  #animate({ classList, firstChild: { style } }, cell, path = []) {
    const [x, y] = this.centerOf(cell);
    const isMoved = path.length > 1 && path.at(-1) === cell;
    classList.add(isMoved ? "slides" : this.falls ? "falls" : "appears");
    const [fromX, fromY] = isMoved ? this.centerOf(path[0]) : [x, 0];
    style.setProperty("--offset", `${fromX - x}px ${fromY - y}px`);
    style.setProperty("--time", `${150 + 0.6 * Math.abs(fromY - y)}ms`);
  }

  #wholePicture(text) {
    const picture = parsedSvg(text);
    const { left, top, width, height } = this.board;
    for (const [name, value] of Object.entries({ x: left, y: top, width, height }))
      picture.setAttribute(name, value);
    return picture;
  }
}

/** Input of moves by clicking one cell, or the start and the end of a move. */
class Pointing {
  /**
   * @param {Move[]} moves legal moves
   * @param {(cell: number) => number} targetOf returns the clickable target of a cell
   */
  constructor(moves, targetOf) {
    this.placed = moves
      .filter(({ cells }) => cells.length > 0)
      .map((move) => ({ move, targets: move.cells.map(targetOf) }));
  }

  /** @returns {Move[]} the moves of a single target */
  at(target) {
    return this.#moves(({ targets }) => targets.length === 1 && targets[0] === target);
  }

  /** @returns {Move[]} the moves from one target to another */
  between(from, to) {
    return this.#moves(({ targets }) => targets[0] === from && targets[1] === to);
  }

  /** @returns {number[]} the ends of the moves from a target */
  ends(from) {
    const ends = this.placed
      .filter(({ targets }) => targets.length > 1 && targets[0] === from)
      .map(({ targets }) => targets[1]);
    return [...new Set(ends)];
  }

  /** @returns {number[]} the first targets of all moves */
  get starts() {
    return [...new Set(this.placed.map(({ targets }) => targets[0]))];
  }

  /** @returns {number[]} the cells of the moves with a single target */
  get singles() {
    const single = this.placed.filter(({ targets }) => targets.length === 1);
    return single.map(({ move }) => move.cells[0]);
  }

  #moves(condition) {
    return this.placed.filter(condition).map(({ move }) => move);
  }
}

/** A choice between pieces, such as promotions, shown at the cell. */
class PieceChoice {
  #before = null; // the previously focused element

  /**
   * @param {(action: number) => void} onChoose
   * @param {() => void} onCancel
   */
  constructor(onChoose, onCancel) {
    this.onChoose = onChoose;
    this.element = tag("div", { className: "piece-choice", hidden: true });
    this.element.setAttribute("role", "group");
    this.element.setAttribute("aria-label", "Which piece?");
    this.element.onkeydown = (event) => {
      const steps = { ArrowLeft: -1, ArrowRight: 1 };
      if (event.key in steps) this.#moveFocus(steps[event.key]);
      if (event.key === "Escape") {
        this.#before.focus();
        onCancel();
      }
    };
  }

  /**
   * Shows the pieces in a row around the center of a cell, within the board.
   * @param {{action: number, name: string, piece: Node[]}[]} choices
   * @param {number[]} center
   * @param {{left: number, top: number, width: number, height: number, cell: number}} board
   */
  show(choices, [x, y], { left, top, width, height, cell }) {
    this.element.replaceChildren(
      ...choices.map(({ action, name, piece }) => {
        const viewBox = `${-cell / 2} ${-cell / 2} ${cell} ${cell}`;
        const drawn = svg("svg", { viewBox, "aria-hidden": "true" }, ...piece);
        const button = tag("button", { type: "button", title: name }, drawn);
        button.dataset.action = action;
        button.setAttribute("aria-label", name);
        button.onclick = () => this.onChoose(action);
        return button;
      }),
    );
    const [wide, high] = [CHOICE * cell * choices.length, CHOICE * cell];
    const within = (place, most) => Math.max(0, Math.min(place, most));
    const set = (name, share) =>
      this.element.style.setProperty(name, `${100 * share}%`);
    set("left", within(x - wide / 2 - left, width - wide) / width);
    set("top", within(y - high / 2 - top, height - high) / height);
    set("width", wide / width);
    set("height", high / height);
    this.#before = this.element.getRootNode().activeElement;
    this.element.hidden = false;
    this.element.firstChild.focus();
  }

  close() {
    this.element.hidden = true;
  }

  #moveFocus(step) {
    const buttons = [...this.element.children];
    const focused = buttons.findIndex((button) => button.matches(":focus"));
    buttons[(focused + step + buttons.length) % buttons.length].focus();
  }
}

/** Input of moves by text or by buttons. */
class MoveEntry {
  #moves = [];
  #buttons = document.createElement("div");
  #input = document.createElement("input");
  #problem = document.createElement("p");

  /**
   * @param {(action: number) => void} onChoose
   * @param {(text: string) => Promise<number>} parse returns the action of a text
   * @param {() => void} onCancel
   */
  constructor(onChoose, parse, onCancel) {
    this.onChoose = onChoose;
    this.parse = parse;
    this.element = document.createElement("form");
    this.element.className = "entry";
    this.#buttons.className = "buttons";
    this.#problem.setAttribute("role", "alert");
    this.#input.placeholder = "Type a move";
    this.#input.setAttribute("aria-label", "Type a move");
    this.#input.autocomplete = "off";
    this.#input.spellcheck = false;
    this.#input.oninput = () => this.#problem.replaceChildren();
    this.element.onsubmit = (event) => {
      event.preventDefault();
      this.#submit();
    };
    this.element.onkeydown = ({ key }) => {
      if (key === "Escape") onCancel();
    };
    this.element.append(this.#input, this.#buttons, this.#problem);
  }

  /**
   * Shows buttons for the moves without a cell.
   * @param {Move[]} moves
   * @param {boolean} mayChoose
   */
  show(moves, mayChoose) {
    this.#moves = mayChoose ? moves : [];
    this.#input.disabled = !mayChoose;
    const unplaced = moves.filter(({ cells }) => cells.length === 0);
    const shown = unplaced.length > MOST_BUTTONS ? [] : unplaced;
    this.#showButtons(shown, (text) => text[0].toUpperCase() + text.slice(1));
    this.#problem.replaceChildren();
  }

  /**
   * Shows buttons to choose one of several moves.
   * @param {Move[]} moves
   * @param {string} verb precedes each move
   */
  choose(moves, verb = "") {
    this.#showButtons(moves, (text) => `${verb} ${text}`.trim());
    for (const button of this.#buttons.children) button.classList.add("primary");
    this.#buttons.firstChild.focus();
  }

  /**
   * Shows the estimates on the buttons.
   * @param {{share: number, move: Move}[]} estimates
   */
  showShares(estimates) {
    for (const button of this.#buttons.children) {
      const known = estimates.find(({ move }) => move.text === button.dataset.move);
      button.dataset.share = known ? percent(known.share) : "";
    }
  }

  #showButtons(moves, title) {
    this.#buttons.replaceChildren(
      ...moves.map(({ action, text }) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = title(text);
        button.dataset.move = text;
        button.disabled = !this.#moves.length;
        button.onclick = () => this.onChoose(action);
        return button;
      }),
    );
  }

  async #submit() {
    const moves = this.#moves;
    const wanted = this.#input.value.trim();
    if (!wanted || !moves.length) return;
    try {
      const action = await this.parse(wanted);
      if (moves !== this.#moves) return; // the position has changed
      this.#input.value = "";
      this.onChoose(action);
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      if (moves === this.#moves) this.#problem.textContent = error.message;
    }
  }
}

/** Draws a ring around the piece in a cell. */
function drawnRing([cx, cy], cell) {
  return svg("circle", { cx, cy, r: 0.42 * cell, class: "ring" });
}

/** Draws a dot in an empty cell. */
function drawnDot([cx, cy], cell) {
  return svg("circle", { cx, cy, r: 0.13 * cell, class: "dot" });
}

/** Draws a cross through a cell over the whole board. */
function drawnAim([x, y], { left, top, width, height }) {
  return svg("path", { d: `M${left} ${y}h${width}M${x} ${top}v${height}`, class: "aim" });
}

/**
 * Draws an arrow for a move; its width shows the share of visits.
 * @param {number[]} from center of the start
 * @param {number[]} to center of the end
 * @param {Estimate} estimate
 * @param {number} cell size of a cell
 */
function drawnArrow([x, y], [toX, toY], { share }, cell) {
  const scale = cell / CELL;
  const length = Math.hypot(toX - x, toY - y) || 1;
  const [right, down] = [(toX - x) / length, (toY - y) / length];
  const width = scale * (4 + 12 * share);
  const head = scale * 12 + width;
  const [neckX, neckY] = [toX - head * right, toY - head * down];
  const [sideX, sideY] = [(head / 2) * down, (-head / 2) * right];
  const left = [neckX + sideX, neckY + sideY];
  const d = `M${toX} ${toY}L${left}L${neckX - sideX} ${neckY - sideY}z`;
  return svg(
    "g",
    { class: "arrow" },
    svg("path", { d: `M${x} ${y}L${neckX} ${neckY}`, "stroke-width": width }),
    svg("path", { d, class: "head" }),
  );
}

/** Draws the label of an arrow; see `drawnArrow`. */
function drawnArrowLabel([x, y], [toX, toY], { share, prior }, cell) {
  const place = [x + ARROW_LABEL * (toX - x), y + ARROW_LABEL * (toY - y)];
  const width = Math.max(4, 36 * prior);
  return svg(
    "g",
    { transform: `translate(${place}) scale(${cell / CELL})`, class: "estimate" },
    svg("circle", { r: 17, class: "share" }),
    svg("text", { y: 3 }, percent(share)),
    svg("rect", { x: -width / 2, y: 8, width, height: 4, rx: 2 }),
  );
}

/**
 * @param {{moves: Object[], visits: number}|null} decision as in `engine.js`
 * @returns {Estimate[]} of the moves to draw
 */
function estimates(decision) {
  if (!decision) return [];
  const total = Math.max(0, decision.visits - 1); // without the root's own evaluation
  return decision.moves
    .map(({ action, prior, visits }) => {
      return { action, prior, share: total ? visits / total : prior };
    })
    .filter(({ share, prior }) => share > SMALLEST_SHARE || prior > SMALLEST_SHARE);
}

/**
 * Draws an estimate at the center of a cell.
 * @param {number[]} center
 * @param {Estimate} estimate
 * @param {number} cell size of a cell
 */
function drawnEstimate([x, y], { share, prior }, cell = CELL) {
  const transform = `translate(${x} ${y}) scale(${cell / CELL})`;
  const drawn = svg("g", { transform, class: "estimate" });
  if (share > SMALLEST_SHARE) {
    drawn.append(
      svg("circle", { r: 13 + 12 * Math.sqrt(share), class: "share" }),
      svg("text", { y: 4 }, percent(share)),
    );
  }
  if (prior > SMALLEST_SHARE) {
    const width = Math.max(4, 36 * prior);
    drawn.append(svg("rect", { x: -width / 2, y: 13, width, height: 4, rx: 2 }));
  }
  return drawn;
}
