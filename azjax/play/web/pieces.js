/** The pieces of a position and the marks of its cells, drawn from its cells. */
import { parsedSvg, svg, svgNodes } from "./svg.js";

export class Pieces {
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
