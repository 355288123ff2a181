/** Input of moves by text or by buttons. */
import { RefusedError } from "./engine.js";
import { percent } from "./move_overlay.js";

/** @typedef {import("./engine.js").Move} Move */

const MOST_BUTTONS = 12; // if there are more moves without a cell, they must be typed

export class MoveEntry {
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
