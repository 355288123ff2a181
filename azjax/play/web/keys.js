/** Keys that mean something wherever no control with a use for them has the focus. */

const MOST_DIGITS = 9;
const NEEDS_ARROWS = "input:not([type=radio], [type=checkbox]), .piece-choice, #tree";
const WALKING = ["Tab", "ArrowUp", "ArrowDown"];

/**
 * Lets digits press the board's buttons, if they are few, and ← and → look through the
 * game. On the board arrows walk from button to button, for those who came there by keyboard.
 * @param {HTMLElement} container
 * @param {HTMLButtonElement[]} buttons the board's
 * @param {(steps: number) => void} onLook wants to see an earlier or a later position
 */
export function connectKeys(container, buttons, onLook) {
  let walks = true; // whether the visitor goes from control to control by keyboard
  container.addEventListener("pointerdown", () => (walks = false), { capture: true });
  const onKey = (event) => {
    const { key, target, ctrlKey, altKey, metaKey } = event;
    if (ctrlKey || altKey || metaKey) return;
    walks ||= WALKING.includes(key);
    const steps = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (steps && !target.closest(walks ? `${NEEDS_ARROWS}, #board` : NEEDS_ARROWS)) {
      event.preventDefault();
      event.stopPropagation();
      onLook(steps);
    }
    const isOnBoard = target === container || buttons.includes(target);
    const button = buttons[Number(key) - 1];
    if (!button || !isOnBoard || buttons.length > MOST_DIGITS) return;
    button.focus();
    button.click();
  };
  container.addEventListener("keydown", onKey, { capture: true });
}
