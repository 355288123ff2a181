/** The board of an exported site: an SVG drawing, with a button over each target. */
import { drawnEstimate, estimates } from "./move_overlay.js";
import { svg } from "./svg.js";
import { singular } from "./text_output.js";

const CELL = 64;
const RADIUS = 26;

/** Drawings by style. The pieces of the two sides also differ in shape. */
const STYLES = {
  discs: {
    ground(height, width) {
      const holes = cells(height, width).map(({ x, y }) =>
        svg("circle", { cx: x, cy: y, r: RADIUS, fill: "black" }),
      );
      const size = { width: width * CELL, height: height * CELL };
      return {
        behind: [svg("rect", { ...size, rx: 14, class: "back" })],
        before: [
          svg(
            "mask",
            { id: "holes" },
            svg("rect", { ...size, fill: "white" }),
            ...holes,
          ),
          svg("rect", { ...size, rx: 14, class: "front", mask: "url(#holes)" }),
        ],
      };
    },
    pieces: [
      () => [
        circle(RADIUS + 1, "piece side-0"),
        svg("path", { d: "M-9 -9L9 9M9 -9L-9 9", class: "detail" }),
      ],
      () => [circle(RADIUS + 1, "piece side-1"), circle(14, "detail")],
    ],
    markRadius: 22,
    falls: true,
  },
  marks: {
    ground(height, width) {
      const [right, bottom] = [width * CELL, height * CELL];
      const lines = [];
      for (let x = CELL; x < right; x += CELL) lines.push(`M${x} 8V${bottom - 8}`);
      for (let y = CELL; y < bottom; y += CELL) lines.push(`M8 ${y}H${right - 8}`);
      return {
        behind: [svg("path", { d: lines.join(""), class: "grid" })],
        before: [],
      };
    },
    pieces: [
      () => [
        svg("path", { d: "M-16 -16L16 16M16 -16L-16 16", class: "stroke side-0" }),
      ],
      () => [circle(17, "stroke side-1")],
    ],
    markRadius: 28,
    falls: false,
  },
};

function circle(r, className) {
  return svg("circle", { r, class: className });
}

function cells(height, width) {
  return Array.from({ length: height * width }, (_, cell) => ({
    x: ((cell % width) + 0.5) * CELL,
    y: (Math.floor(cell / width) + 0.5) * CELL,
  }));
}

export class Board {
  /**
   * @param {HTMLElement} container
   * @param {import("./engine.js").Description} description
   * @param {(action: number) => void} onChoose
   */
  constructor(container, description, onChoose) {
    const { height, width, style, targets } = description;
    this.description = description;
    this.style = STYLES[style];
    this.centres = cells(height, width);
    this.onChoose = onChoose;
    const ground = this.style.ground(height, width);
    this.stones = svg("g", {});
    this.ghost = svg("g", { class: "ghost" });
    this.overlay = svg("g", {});
    this.pieces = new Map(); // by cell
    this.mayChoose = false;
    const picture = svg(
      "svg",
      { viewBox: `0 0 ${width * CELL} ${height * CELL}`, "aria-hidden": "true" },
      ...ground.behind,
      this.ghost,
      this.stones,
      ...ground.before,
      this.overlay,
    );
    this.buttons = this.#makeButtons(targets === "columns" ? width : height * width);
    const layer = document.createElement("div");
    layer.className = "targets";
    layer.style.gridTemplateColumns = `repeat(${width}, 1fr)`;
    layer.append(...this.buttons);
    container.style.setProperty("--ratio", `${width} / ${height}`);
    container.replaceChildren(picture, layer);
  }

  /**
   * Shows a position.
   * @param {import("./engine.js").Position} position
   * @param {boolean} mayChoose whether the user may move
   */
  show(position, mayChoose) {
    this.position = position;
    this.mayChoose = mayChoose;
    this.#showPieces();
    this.#labelButtons();
    this.#preview(null);
  }

  /**
   * Draws the estimates of a decision.
   * @param {import("./engine.js").Decision|null} decision
   */
  showDecision(decision) {
    this.overlay.replaceChildren(
      ...estimates(decision).flatMap((estimate) => {
        const move = this.position.moves.find(
          ({ action }) => action === estimate.action,
        );
        if (!move) return [];
        const { x, y } = this.centres[move.cells[0]];
        return [drawnEstimate([x, y], estimate)];
      }),
    );
  }

  #makeButtons(number) {
    return Array.from({ length: number }, (_, target) => {
      const button = document.createElement("button");
      button.type = "button";
      button.tabIndex = target === 0 ? 0 : -1;
      button.onclick = () => this.#choose(target);
      button.onkeydown = (event) => this.#moveFocus(event, target);
      button.onpointerenter = ({ pointerType }) => {
        if (pointerType === "mouse") this.#preview(target);
      };
      button.onpointerleave = () => this.#preview(null);
      button.onfocus = () => {
        this.#makeReachable(button);
        if (button.matches(":focus-visible")) this.#preview(target);
      };
      button.onblur = () => this.#preview(null);
      return button;
    });
  }

  #choose(target) {
    const move = this.mayChoose && this.#moveAt(target);
    if (move) this.onChoose(move.action);
  }

  /** Moves the focus by arrow keys. */
  #moveFocus(event, target) {
    const { width, targets } = this.description;
    const ways = { ArrowLeft: -1, ArrowRight: 1 };
    if (targets === "cells") Object.assign(ways, { ArrowUp: -width, ArrowDown: width });
    const next = this.buttons[target + ways[event.key]];
    if (!next) return;
    event.preventDefault();
    next.focus();
  }

  #makeReachable(button) {
    for (const other of this.buttons) other.tabIndex = other === button ? 0 : -1;
  }

  /** Returns the legal move of a button. */
  #moveAt(target) {
    const { width, targets } = this.description;
    const place = ([cell]) => (targets === "columns" ? cell % width : cell);
    return this.position.moves.find(({ cells }) => place(cells) === target);
  }

  #preview(target) {
    const move = target === null || !this.mayChoose ? null : this.#moveAt(target);
    this.ghost.replaceChildren(
      ...(move ? [this.#piece(move.cells[0], this.position.player)] : []),
    );
  }

  #showPieces() {
    const { cells: owners, last, winningCells } = this.position;
    for (const [cell, piece] of this.pieces) {
      if (owners[cell] !== piece.owner) {
        piece.element.remove();
        this.pieces.delete(cell);
      }
    }
    owners.forEach((owner, cell) => {
      if (owner < 0) return;
      if (!this.pieces.has(cell)) {
        const element = this.#piece(cell, owner);
        element.classList.add(this.style.falls ? "falls" : "appears");
        this.stones.append(element);
        this.pieces.set(cell, { owner, element });
      }
      const { classList } = this.pieces.get(cell).element;
      classList.toggle("last", last !== null && last.cells[0] === cell);
      classList.toggle("wins", winningCells.includes(cell));
      classList.toggle(
        "loses",
        winningCells.length > 0 && !winningCells.includes(cell),
      );
    });
  }

  #piece(cell, owner) {
    const { x, y } = this.centres[cell];
    const parts = this.style.pieces[owner]();
    const mark = circle(this.style.markRadius, "mark");
    const inner = svg(
      "g",
      {},
      ...(this.style.falls ? [...parts, mark] : [mark, ...parts]),
    );
    const piece = svg("g", { transform: `translate(${x} ${y})` }, inner);
    inner.style.setProperty("--height", `${-y - CELL}px`);
    inner.style.setProperty("--time", `${150 + 0.6 * y}ms`);
    return piece;
  }

  #labelButtons() {
    this.buttons.forEach((button, target) => {
      const isLegal = this.mayChoose && this.#moveAt(target) !== undefined;
      button.setAttribute("aria-disabled", String(!isLegal));
      button.setAttribute("aria-label", this.#label(target));
    });
  }

  #label(target) {
    const { height, width, sides, targets } = this.description;
    const { cells: owners } = this.position;
    if (targets === "cells") {
      const name = owners[target] < 0 ? "empty" : singular(sides[owners[target]]);
      const [row, column] = [Math.floor(target / width) + 1, (target % width) + 1];
      return `Row ${row}, column ${column}: ${name}`;
    }
    const stack = [];
    for (let row = height - 1; row >= 0; row--) {
      const owner = owners[row * width + target];
      if (owner >= 0) stack.push(singular(sides[owner]));
    }
    return `Column ${target + 1}: ${stack.length ? `${stack.join(", ")} from below` : "empty"}`;
  }
}
