/** The score against one player, kept in the browser's storage if allowed. */

const NAMES = ["you", "draws", "computer"];

export class Score {
  /**
   * @param {string} key identifies the player
   * @param {HTMLElement} container has an element `score-NAME` for each number
   */
  constructor(key, container) {
    this.key = `azjax score: ${key}`;
    this.container = container;
    this.kept = this.#stored() ?? { you: 0, draws: 0, computer: 0, game: null };
    this.#show();
  }

  /**
   * Adds a game.
   * @param {number} reward of the user
   * @param {string} game identifies the game
   */
  count(reward, game) {
    this.#add(reward, 1, game);
  }

  /** Removes a game if it was the last one added. */
  takeBack(reward, game) {
    const { kept } = this;
    if ((this.#stored() ?? kept).game === game) this.#add(reward, -1, null);
  }

  reset() {
    this.#keep({ you: 0, draws: 0, computer: 0, game: null });
  }

  #add(reward, times, game) {
    const kept = this.#stored() ?? this.kept; // another page may have changed it
    const name = NAMES[1 - reward];
    this.#keep({ ...kept, [name]: Math.max(0, kept[name] + times), game });
  }

  #stored() {
    try {
      const kept = JSON.parse(localStorage.getItem(this.key));
      return NAMES.every((name) => Number.isInteger(kept[name])) ? kept : null;
    } catch {
      return null; // nothing stored, or no access
    }
  }

  #keep(kept) {
    this.kept = kept;
    try {
      localStorage.setItem(this.key, JSON.stringify(kept));
    } catch {
      // No access: the score is lost with the page.
    }
    this.#show();
  }

  #show() {
    for (const name of NAMES) {
      this.container.querySelector(`#score-${name}`).textContent = this.kept[name];
    }
  }
}
