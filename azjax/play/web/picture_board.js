/** The board of any game: a picture of the position, with a button over each cell. */
import { drawnEstimate, estimates } from "./move_overlay.js";
import { MoveEntry } from "./move_entry.js";
import { drawnArrow, drawnArrowLabel, drawnDot, drawnRing } from "./picture_marks.js";
import { PieceChoice } from "./piece_choice.js";
import { Pointing } from "./pointing.js";
import { parsedSvg, svg } from "./svg.js";
import { singular } from "./text_output.js";

const MOST_ARROWS = 6;
const LARGEST = 2; // times the picture's own size
const SMALL = 34; // pixels; a finger may miss smaller cells
const LABEL = 15; // the size of labels in the picture
const SMALLEST_LABEL = 10; // pixels

/** The page talks to it as to `Board`. */
export class PictureBoard {
  /**
   * @param {HTMLElement} container
   * @param {import("./engine.js").Description} description
   * @param {(action: number) => void} onChoose
   * @param {(text: string) => Promise<number>} read returns the action that was typed
   */
  constructor(container, description, onChoose, read) {
    const { picture, targets, width, height } = description;
    this.container = container;
    this.description = description;
    this.onChoose = onChoose;
    this.isByColumn = targets === "columns";
    this.figures = description.figures.map(parsedSvg);
    this.mayChoose = false;
    this.isTurned = false; // seen from the side of player 1
    this.pointing = new Pointing([], (cell) => this.#targetOf(cell));
    this.from = null; // the target that was pointed at first
    this.aim = null; // the target that a finger touched, to be confirmed
    this.over = null; // the target that the pointer or the focus is on
    const viewBox = [picture.left, picture.top, picture.width, picture.height].join(" ");
    this.hints = svg("g", {});
    this.ghost = svg("g", { class: "ghost" });
    this.thought = svg("g", {});
    this.marks = svg(
      "svg",
      { viewBox, "aria-hidden": "true", class: "marks" },
      this.hints,
      this.ghost,
      this.thought,
    );
    this.buttons = this.#makeButtons(this.isByColumn ? width : height * width);
    const layer = document.createElement("div");
    layer.className = "targets placed";
    layer.append(...this.buttons);
    container.style.setProperty("--ratio", `${picture.width} / ${picture.height}`);
    container.style.setProperty("--widest", `${LARGEST * picture.width}px`);
    this.choice = new PieceChoice(
      (action) => this.#play(action),
      () => this.#begin(),
    );
    container.replaceChildren(
      svg("svg", { viewBox }),
      this.marks,
      layer,
      this.choice.element,
    );
    new ResizeObserver(() => this.#fitLabels()).observe(container);
    this.entry = new MoveEntry(
      (action) => this.#play(action),
      read,
      () => this.#begin(),
    );
    container.after(this.entry.element);
  }

  /**
   * Shows a position.
   * @param {import("./engine.js").Position} position
   * @param {boolean} mayChoose whether it is the visitor's turn
   * @param {number|null} you which player the visitor is, if any
   */
  show(position, mayChoose, you = null) {
    // What was pointed at first stays while only a thought came in between.
    if (position === this.position && mayChoose === this.mayChoose) return;
    if (position !== this.position) {
      const turned = you === 1 ? position.turnedPicture : null;
      this.#turn(turned !== null);
      this.container.firstChild.replaceWith(parsedSvg(turned ?? position.picture));
    }
    this.position = position;
    this.mayChoose = mayChoose;
    this.pointing = new Pointing(mayChoose ? position.moves : [], (cell) =>
      this.#targetOf(cell),
    );
    this.#begin();
  }

  /**
   * Draws what a player thought of the moves: in their cells, or as arrows.
   * @param {import("./engine.js").Thought|null} thought
   */
  showThought(thought) {
    const moves = new Map(this.position.moves.map((move) => [move.action, move]));
    const shown = estimates(thought)
      .map((estimate) => ({ ...estimate, move: moves.get(estimate.action) }))
      .filter(({ move }) => move)
      .sort((a, b) => b.share - a.share);
    const made = (number) => shown.filter(({ move }) => move.cells.length === number);
    const { cell } = this.description.picture;
    const arrows = made(2)
      .slice(0, MOST_ARROWS)
      .map((one) => [...one.move.cells.map(this.#centre), one, cell]);
    this.thought.replaceChildren(
      ...arrows.map((arrow) => drawnArrow(...arrow)),
      ...arrows.map((arrow) => drawnArrowLabel(...arrow)),
      ...made(1).map((one) => drawnEstimate(this.#centre(one.move.cells[0]), one, cell)),
    );
    this.entry.showShares(made(0));
  }

  #centre = (cell) => {
    const { centres } = this.description.picture;
    return centres[this.isTurned ? centres.length - 1 - cell : cell];
  };

  #targetOf(cell) {
    return this.isByColumn ? cell % this.description.width : cell;
  }

  #turn(isTurned) {
    if (isTurned === this.isTurned) return;
    this.isTurned = isTurned;
    this.buttons.forEach((button, target) => this.#place(button, target));
  }

  /** Keeps the names of rows and columns readable where the board is small. */
  #fitLabels() {
    const scale = this.container.clientWidth / this.description.picture.width;
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
      button.onkeydown = (event) => this.#walk(event, target);
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
    const { left, top, width, height, cell, centres } = this.description.picture;
    const [x, y] = this.#centre(target);
    const lowest = centres.at(-this.description.width); // of the first column
    const bottom = this.isByColumn ? lowest[1] : y;
    const set = (name, share) => style.setProperty(name, `${100 * share}%`);
    set("left", (x - cell / 2 - left) / width);
    set("top", (y - cell / 2 - top) / height);
    set("width", cell / width);
    set("height", (bottom - y + cell) / height);
    classList.toggle("round", centres[0][0] !== lowest[0]); // hexagons
  }

  /** Arrow keys go from button to button; Escape drops what was pointed at first. */
  #walk(event, target) {
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
    if (event.key === "Escape") this.#begin();
    if (!next) return;
    event.preventDefault();
    next.focus();
  }

  /** Waits for something to be pointed at. */
  #begin() {
    if (this.aim !== null) this.over = null;
    this.from = this.aim = null;
    this.choice.close();
    this.entry.offer(this.position.moves, this.mayChoose);
    this.#showHints();
    this.#preview(this.over);
  }

  #point(target, isTouched) {
    const moves = this.#movesAt(target);
    if (!moves.length) {
      const canBegin = this.from !== target && this.pointing.ends(target).length > 0;
      this.#begin();
      if (canBegin) this.from = target;
      this.#showHints();
    } else if (this.#makeDifferentPieces(moves)) {
      this.#chooseAmong(moves);
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

  #makeDifferentPieces(moves) {
    const kinds = new Set(moves.map(({ becomes }) => becomes));
    return moves.length > 1 && kinds.size === moves.length && !kinds.has(undefined);
  }

  /** Asks which piece is wanted. */
  #chooseAmong(moves) {
    const pieces = moves.map(({ action, becomes }) => ({
      action,
      name: this.#pieceName(becomes),
      figure: this.figures[becomes],
    }));
    const { picture } = this.description;
    this.choice.offer(pieces, this.#centre(moves[0].cells.at(-1)), picture);
  }

  /** Returns what pointing at a target would do now. */
  #movesAt(target) {
    const moves = this.from === null ? [] : this.pointing.between(this.from, target);
    return moves.length ? moves : this.pointing.at(target);
  }

  #isSmall() {
    const { cell, width } = this.description.picture;
    return (this.container.clientWidth * cell) / width < SMALL;
  }

  #play(action) {
    this.mayChoose = false;
    this.#begin();
    this.onChoose(action);
  }

  #showHints() {
    const { cell } = this.description.picture;
    const empty = this.position.cells.filter((kind) => kind < 0).length;
    const { singles } = this.pointing;
    const isTelling = !this.isByColumn && singles.length <= empty / 2;
    const ends = this.from === null ? [] : this.pointing.ends(this.from);
    const hinted = this.from !== null ? [this.from, ...ends] : isTelling ? singles : [];
    this.hints.replaceChildren(
      ...hinted.map((one) => {
        const draw = this.position.cells[one] < 0 ? drawnDot : drawnRing;
        return draw(this.#centre(one), cell);
      }),
    );
    const beginnings = new Set([...this.pointing.beginnings, ...ends]);
    this.buttons.forEach((button, target) => {
      button.setAttribute("aria-disabled", String(!beginnings.has(target)));
      button.setAttribute("aria-label", this.#label(target));
      if (target === this.from) button.setAttribute("aria-pressed", "true");
      else button.removeAttribute("aria-pressed");
    });
  }

  /** Shows faintly what pointing at a target would do. */
  #preview(target) {
    const [move] = target === null ? [] : this.#movesAt(target);
    const drawn = [];
    if (move) {
      const [x, y] = this.#centre(move.cells.at(-1));
      const figure = this.figures[this.#kindMovedBy(move)];
      const { cell, left, top, width, height } = this.description.picture;
      if (target === this.aim) {
        const d = `M${left} ${y}h${width}M${x} ${top}v${height}`;
        drawn.push(svg("path", { d, class: "aim" }));
      }
      const at = { transform: `translate(${x} ${y})` };
      drawn.push(
        figure
          ? svg("g", at, ...[...figure.childNodes].map((node) => node.cloneNode(true)))
          : drawnDot([x, y], cell),
      );
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
    const { cells: kinds } = this.position;
    if (!this.isByColumn) {
      const [row, column] = [Math.floor(target / width), target % width];
      return `${columns[column]}${rows[row]}: ${this.#pieceName(kinds[target])}`;
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
