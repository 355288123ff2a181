/** Keys that mean something wherever no control with a use for them has the focus. */

const MOST_DIGITS = 9;

/**
 * Lets digits press the board's buttons, if they are few, and arrows look through the game.
 * @param {HTMLElement} container
 * @param {HTMLButtonElement[]} buttons the board's
 * @param {(steps: number) => void} onLook wants to see an earlier or a later position
 */
export function connectKeys(container, buttons, onLook) {
  container.addEventListener("keydown", (event) => {
    const { key, target, ctrlKey, altKey, metaKey } = event;
    if (ctrlKey || altKey || metaKey) return;
    const steps = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (steps && !target.closest("input, select, #board")) {
      event.preventDefault();
      onLook(steps);
    }
    const isOnBoard = target === container || buttons.includes(target);
    const button = buttons[Number(key) - 1];
    if (!button || !isOnBoard || buttons.length > MOST_DIGITS) return;
    button.focus();
    button.click();
  });
}
