/** A choice between pieces, such as promotions, shown at the cell. */
import { tag } from "./html.js";
import { svg } from "./svg.js";

const SIZE = 1.25; // cells

export class PieceChoice {
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
    const [wide, high] = [SIZE * cell * choices.length, SIZE * cell];
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
