/** Keeps what a page shows up to date. */

/**
 * Asks again and again, while the page is seen by somebody.
 * @param {() => Promise<void>} refresh
 * @param {() => number} pause milliseconds until the next time
 * @param {(problem: string) => void} onProblem told what is wrong, and "" when it is
 *     right again
 */
export async function poll(refresh, pause, onProblem) {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, pause()));
    await seen();
    try {
      await refresh();
      onProblem("");
    } catch {
      onProblem("The server does not answer. Trying again.");
    }
  }
}

/** Waits until somebody sees the page. */
export async function seen() {
  while (document.hidden) {
    await new Promise((resolve) => {
      document.addEventListener("visibilitychange", resolve, { once: true });
    });
  }
}

/** Says how far a training run is. */
export function stateText({ state, share }) {
  const percentage = share === null ? "" : `${Math.floor(100 * share)}%`;
  if (state === "learning") return `learning now${percentage && `, ${percentage}`}`;
  if (state === "finished") return "finished";
  return `stopped${percentage && ` at ${percentage}`}`;
}
