/** The score of all games against one player, kept in this browser if it allows that. */

const NAMES = ["you", "draws", "computer"];

export class Score {
  /**
   * @param {string} key tells one player from another
   * @param {HTMLElement} container holds an element `score-NAME` for each number
   */
  constructor(key, container) {
    this.key = `azjax score: ${key}`;
    this.container = container;
    this.numbers = this.#stored() ?? { you: 0, draws: 0, computer: 0 };
    this.#show();
  }

  /**
   * Adds a game, or with -1 takes it out again.
   * @param {number} reward the visitor's
   * @param {1|-1} times
   */
  count(reward, times) {
    const name = NAMES[1 - reward];
    this.numbers[name] = Math.max(0, this.numbers[name] + times);
    this.#store();
    this.#show();
  }

  reset() {
    for (const name of NAMES) this.numbers[name] = 0;
    this.#store();
    this.#show();
  }

  #stored() {
    try {
      const numbers = JSON.parse(localStorage.getItem(this.key));
      return NAMES.every((name) => Number.isInteger(numbers[name])) ? numbers : null;
    } catch {
      return null; // nothing was kept, or nothing may be
    }
  }

  #store() {
    try {
      localStorage.setItem(this.key, JSON.stringify(this.numbers));
    } catch {
      // Not allowed: the score lasts as long as the page.
    }
  }

  #show() {
    for (const name of NAMES) {
      this.container.querySelector(`#score-${name}`).textContent = this.numbers[name];
    }
  }
}
