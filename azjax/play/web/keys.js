/** Keyboard shortcuts. */

const MOST_DIGITS = 9;
const NEEDS_ARROWS = "input:not([type=radio], [type=checkbox]), textarea, .piece-choice, #tree";
const NAVIGATION = ["Tab", "ArrowUp", "ArrowDown"];

/**
 * Digits press the board's buttons if there are at most nine; ← and → step through the
 * game. For users who navigate by keyboard, arrows on the board move the focus instead.
 * @param {HTMLElement} container
 * @param {HTMLButtonElement[]} buttons of the board
 * @param {(steps: number) => void} onLook called to show an earlier or later position
 */
export function connectKeys(container, buttons, onLook) {
  let navigates = true; // whether the user moves the focus by keyboard
  container.addEventListener("pointerdown", () => (navigates = false), { capture: true });
  const onKey = (event) => {
    const { key, target, ctrlKey, altKey, metaKey } = event;
    if (ctrlKey || altKey || metaKey) return;
    navigates ||= NAVIGATION.includes(key);
    const steps = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (steps && !target.closest(navigates ? `${NEEDS_ARROWS}, #board` : NEEDS_ARROWS)) {
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
