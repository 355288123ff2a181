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
    this.kept = this.#stored() ?? { you: 0, draws: 0, computer: 0, game: null };
    this.#show();
  }

  /**
   * Adds a game.
   * @param {number} reward the visitor's
   * @param {string} game tells it from others
   */
  count(reward, game) {
    this.#add(reward, 1, game);
  }

  /** Takes a game out again, if it is the one that was added last. */
  takeBack(reward, game) {
    const { kept } = this;
    if ((this.#stored() ?? kept).game === game) this.#add(reward, -1, null);
  }

  reset() {
    this.#keep({ you: 0, draws: 0, computer: 0, game: null });
  }

  #add(reward, times, game) {
    const kept = this.#stored() ?? this.kept; // another page may have counted
    const name = NAMES[1 - reward];
    this.#keep({ ...kept, [name]: Math.max(0, kept[name] + times), game });
  }

  #stored() {
    try {
      const kept = JSON.parse(localStorage.getItem(this.key));
      return NAMES.every((name) => Number.isInteger(kept[name])) ? kept : null;
    } catch {
      return null; // nothing was kept, or nothing may be
    }
  }

  #keep(kept) {
    this.kept = kept;
    try {
      localStorage.setItem(this.key, JSON.stringify(kept));
    } catch {
      // Not allowed: the score lasts as long as the page.
    }
    this.#show();
  }

  #show() {
    for (const name of NAMES) {
      this.container.querySelector(`#score-${name}`).textContent = this.kept[name];
    }
  }
}
