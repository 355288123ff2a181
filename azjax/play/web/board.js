/** The board of any game: a drawing, with a button over each cell or column. */
import { drawnAim, drawnArrow, drawnArrowLabel, drawnDot, drawnRing } from "./board_marks.js";
import { drawnEstimate, estimates } from "./move_overlay.js";
import { MoveEntry } from "./move_entry.js";
import { PieceChoice } from "./piece_choice.js";
import { Pieces } from "./pieces.js";
import { Pointing } from "./pointing.js";
import { svg, svgNodes } from "./svg.js";
import { singular } from "./text_output.js";

const MOST_ARROWS = 6;
const LARGEST = 2; // width relative to the board's own
const SMALL = 34; // touch on smaller cells needs a confirmation (pixels)
const LABEL = 15; // font size on the board
const SMALLEST_LABEL = 10; // least font size on the screen (pixels)

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
