/** Regular updates of a page. */

/**
 * Refreshes repeatedly while the page is visible.
 * @param {() => Promise<void>} refresh
 * @param {() => number} pause milliseconds before the next refresh
 * @param {(problem: string) => void} onProblem receives the problem, "" when it is solved
 */
export async function poll(refresh, pause, onProblem) {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, pause()));
    await visible();
    try {
      await refresh();
      onProblem("");
    } catch {
      onProblem("The server does not answer. Trying again.");
    }
  }
}

/** Resolves when the page is visible. */
export async function visible() {
  while (document.hidden) {
    await new Promise((resolve) => {
      document.addEventListener("visibilitychange", resolve, { once: true });
    });
  }
}

/** Returns the state of a training run as text. */
export function stateText({ state, share }) {
  const percentage = share === null ? "" : `${Math.floor(100 * share)}%`;
  if (state === "learning") return `training${percentage && `, ${percentage}`}`;
  if (state === "finished") return "finished";
  return `stopped${percentage && ` at ${percentage}`}`;
}
