/** The list of moves, with buttons to step through them. */
import { tag } from "./elements.js";
import { CHANCE } from "./engine.js";
import { markText } from "./review.js";
import { outcomeText } from "./texts.js";

const MOST_AHEAD = 4; // shown moves of a continuation, the last ones

export class MoveList {
  #moves = []; // listed
  #buttons = []; // one for each listed move
  #ply = 0;

  /**
   * @param {(id: string) => HTMLElement} find finds elements of index.html by id
   * @param {(ply: number) => void} onLook called to show the position after `ply` moves
   * @param {(steps: number) => void} onStep called to show the next or previous position
   */
  constructor(find, onLook, onStep) {
    this.list = find("played");
    this.onLook = onLook;
    this.back = [find("first"), find("previous")];
    this.forth = [find("next"), find("last")];
    find("first").onclick = () => onLook(0);
    find("previous").onclick = () => onStep(-1);
    find("next").onclick = () => onStep(1);
    find("last").onclick = () => onLook(this.#moves.length);
  }

  /**
   * Shows the moves; keeps the buttons of listed moves.
   * @param {import("./match.js").Step[]} steps
   * @param {number} ply index of the shown position
   * @param {boolean} isAhead whether a possible continuation is shown
   */
  show(steps, ply, isAhead) {
    const moves = steps.slice(1).map(({ move }) => move);
    const isFirst = ply === 0 && !isAhead;
    const isLast = ply === moves.length && !isAhead;
    for (const one of this.back) one.setAttribute("aria-disabled", String(isFirst));
    for (const one of this.forth) one.setAttribute("aria-disabled", String(isLast));
    const isSame = ply === this.#ply && moves.length === this.#moves.length;
    const changed = this.#moves.findIndex((move, index) => move !== moves[index]);
    if (isSame && changed < 0) return;
    const isFocused = this.list.matches(":focus-within");
    this.#truncate(changed < 0 ? this.#moves.length : changed);
    while (this.#buttons.length < moves.length) this.#append(steps);
    this.#moves = moves;
    this.#mark(ply);
    if (isFocused) this.#buttons[Math.max(0, ply - 1)]?.focus({ preventScroll: true });
  }

  /**
   * Marks the mistakes of a review.
   * @param {import("./review.js").ReviewedMove[]} moves in order
   */
  showMarks(moves) {
    this.#buttons.forEach((button, index) => {
      const { text } = this.#moves[index];
      button.dataset.mark = moves[index]?.mark ?? "";
      const mark = moves[index] ? markText(moves[index]) : "";
      button.setAttribute("aria-label", `Move ${index + 1}: ${text}${mark}`);
    });
  }

  #truncate(length) {
    for (const button of this.#buttons.splice(length)) {
      const item = button.parentElement;
      button.remove();
      if (!item.children.length) item.remove();
    }
  }

  /** Appends the next move; each turn of player 0 begins a line, with its roll. */
  #append(steps) {
    const ply = this.#buttons.length + 1;
    const { text } = steps[ply].move;
    const begins = moverOf(steps, ply) === 0 && moverOf(steps, ply - 1) !== 0;
    if (ply === 1 || begins) this.list.append(tag("li", {}));
    const button = tag("button", { type: "button", tabIndex: -1 }, text);
    button.classList.toggle("outcome", steps[ply - 1].player === CHANCE);
    button.onclick = () => this.onLook(ply);
    this.list.lastElementChild.append(button);
    this.#buttons.push(button);
  }

  #mark(ply) {
    const before = this.#buttons[Math.max(0, this.#ply - 1)];
    before?.removeAttribute("aria-current");
    if (before) before.tabIndex = -1;
    this.#ply = ply;
    const button = this.#buttons[ply - 1];
    button?.setAttribute("aria-current", "true");
    const focusable = this.#buttons[Math.max(0, ply - 1)];
    if (focusable) focusable.tabIndex = 0;
    this.#reveal(button);
  }

  /** Scrolls only the list to a move. */
  #reveal(button) {
    const { clientWidth, clientHeight } = this.list;
    if (!button) this.list.scrollTo(0, 0);
    else {
      this.list.scrollTo(
        button.offsetLeft - (clientWidth - button.offsetWidth) / 2,
        button.offsetTop - (clientHeight - button.offsetHeight) / 2,
      );
    }
  }
}

/** Returns the player of a move; of an outcome of chance, who is to move after it. */
function moverOf(steps, ply) {
  const mover = steps[ply - 1]?.player;
  return mover === CHANCE ? steps[ply].player : mover;
}

/**
 * Describes the shown position if it is not the latest, and how to continue.
 * @param {import("./match.js").Match} match
 * @param {string[]} sides names of the players' pieces
 * @returns {string}
 */
export function lookingText(match, sides) {
  const { steps, ply, position, you, isPaused, isComputersTurn, ahead } = match;
  const what = ply ? steps[ply].move.text : "the beginning";
  const text = ahead ? whatIf(ahead) : `Move ${ply} of ${steps.length - 1}: ${what}.`;
  if (ahead?.position.isOver) return `${text} ${outcomeText(ahead.position, you, sides)}`;
  if (position.isOver || isComputersTurn) return text;
  return isPaused ? `${text} Paused.` : `${text} » to continue.`;
}

function whatIf({ moves }) {
  const texts = moves.slice(-MOST_AHEAD).map(({ text }) => text);
  return `What if ${moves.length > MOST_AHEAD ? "… " : ""}${texts.join(" ")}?`;
}
