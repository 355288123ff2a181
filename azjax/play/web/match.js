/** One game after the other between the visitor and the computer. */

const VARIED_MOVES = 6; // at the beginning of a game that is only watched
const PAUSE = 350; // milliseconds a move is looked at, at least
const WATCH_PAUSE = 900;

/**
 * @typedef {Object} Settings
 * @property {number|null} simulations of the computer's search, null if it has none
 * @property {boolean} analyses whether to think about the visitor's positions too
 */

export class Match {
  /** The positions of the game, the first one included, and what was thought of each. */
  positions = [];
  thoughts = [];
  /** Which player the visitor is; null if the computer plays both. */
  you = 0;
  isPaused = false;
  isThinking = false;
  /** Whether the computer was to move and could not. */
  isStuck = false;

  #turn = 0; // changes when what is under way is no longer wanted

  /**
   * @param {import("./engine.js").Engine} engine
   * @param {Settings} settings read whenever they are needed
   * @param {{onChange: () => void, onThought: () => void, onEnd: (reward: number) => void,
   *     onTakenBack: (reward: number) => void}} page rewards are the visitor's
   */
  constructor(engine, settings, page) {
    this.engine = engine;
    this.settings = settings;
    this.page = page;
  }

  get position() {
    return this.positions.at(-1);
  }

  get actions() {
    return this.positions.slice(1).map(({ last }) => last.action);
  }

  get isYourTurn() {
    return !this.position.isOver && this.position.player === this.you;
  }

  /** Whether there is a move of the visitor's to take back, or any when watching. */
  get canUndo() {
    const before = this.positions.slice(0, -1);
    return before.some(({ player }) => this.you === null || player === this.you);
  }

  /** Begins a game; `you` is 0, 1 or null, as above. */
  async begin(you) {
    const turn = this.#interrupt();
    this.engine.forget();
    const first = await this.engine.position([]);
    if (turn !== this.#turn) return;
    this.you = you;
    this.isPaused = false;
    this.positions = [first];
    this.thoughts = [];
    await this.#goOn(turn);
  }

  /** Makes the visitor's move. */
  async choose(action) {
    if (!this.isYourTurn) return;
    const turn = this.#interrupt();
    if (await this.#play(action, turn)) await this.#goOn(turn);
  }

  /** Takes back the visitor's last move, with what the computer answered. */
  async undo() {
    if (!this.canUndo) return;
    const turn = this.#interrupt();
    if (this.position.isOver && this.you !== null) {
      this.page.onTakenBack(this.position.rewards[this.you]);
    }
    do {
      this.positions.pop();
    } while (this.you !== null && !this.isYourTurn);
    this.thoughts.length = Math.min(this.thoughts.length, this.positions.length);
    this.isPaused = this.you === null;
    await this.#goOn(turn);
  }

  /** Stops or goes on when the computer plays against itself. */
  async pause(isPaused) {
    this.isPaused = isPaused;
    await this.#goOn(this.#interrupt());
  }

  /** Takes changed settings into account. */
  async refresh() {
    if (!this.positions.length) return;
    if (this.isYourTurn || this.isPaused) await this.#goOn(this.#interrupt());
  }

  #interrupt() {
    if (this.isThinking) this.engine.stop();
    this.isThinking = this.isStuck = false;
    return ++this.#turn;
  }

  /** Lets the computer play until the visitor is to move or the game is over. */
  async #goOn(turn) {
    this.page.onChange();
    while (turn === this.#turn && !this.position.isOver) {
      if (this.isYourTurn || this.isPaused) {
        if (this.settings.analyses) await this.#think("hint", turn);
        return;
      }
      const shown = new Promise((resolve) => {
        setTimeout(resolve, this.you === null ? WATCH_PAUSE : PAUSE);
      });
      const thought = await this.#think("play", turn);
      await shown;
      if (!thought || !(await this.#play(this.#choice(thought), turn))) return;
      this.page.onChange();
    }
  }

  async #think(purpose, turn) {
    const ply = this.positions.length - 1;
    const known = this.thoughts[ply];
    const { simulations } = this.settings;
    if (purpose === "hint" && known && known.simulations >= simulations) return known;
    const keep = (thought) => {
      if (turn !== this.#turn) return;
      this.thoughts[ply] = thought;
      this.page.onThought();
    };
    this.isThinking = true;
    this.page.onChange();
    const request = { actions: this.actions, simulations, purpose };
    const thought = await this.engine.think(request, keep).catch((error) => {
      if (turn === this.#turn) {
        this.isThinking = false;
        this.isStuck = purpose === "play";
      }
      throw error;
    });
    if (turn !== this.#turn) return null;
    this.isThinking = false;
    keep(thought);
    this.page.onChange();
    return thought;
  }

  /** Returns the best move, or to vary games that are only watched, one tried often. */
  #choice({ action, moves }) {
    if (this.you !== null || this.positions.length > VARIED_MOVES) return action;
    const isSearched = moves.some(({ visits }) => visits > 0);
    const weight = ({ visits, prior }) => (isSearched ? visits : prior);
    let rest = Math.random() * moves.reduce((sum, move) => sum + weight(move), 0);
    const drawn = moves.find((move) => (rest -= weight(move)) < 0);
    return drawn ? drawn.action : action;
  }

  /** Returns whether the move was made, and not overtaken by something else. */
  async #play(action, turn) {
    const position = await this.engine.position([...this.actions, action]);
    if (turn !== this.#turn) return false;
    this.positions.push(position);
    if (position.isOver && this.you !== null)
      this.page.onEnd(position.rewards[this.you]);
    return true;
  }
}
