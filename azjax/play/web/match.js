/** One game after the other between the visitor and the computer. */

const VARIED_MOVES = 6; // at the beginning of a game that is only watched
const PAUSE = 350; // milliseconds a move is looked at, at least
const WATCH_PAUSE = 900;

/**
 * @typedef {Object} Settings
 * @property {number|null} simulations of the computer's search, null if it has none
 * @property {boolean} analyses whether to think about the visitor's positions too
 *
 * @typedef {Object} Step what is known after so many moves
 * @property {import("./engine.js").Move|null} move that led here
 * @property {number} player who is to move
 * @property {import("./engine.js").Position|null} position null if nobody asked for it yet
 * @property {import("./engine.js").Thought|null} thought
 * @property {import("./engine.js").Branch[]|null} tree the newest that was told
 */

export class Match {
  /** @type {Step[]} the first position, then one for each move; the last is known */
  steps = [];
  /** After how many moves the position is shown: mostly all. */
  ply = 0;
  /** Which player the visitor is; null if the computer plays both. */
  you = 0;
  isPaused = false;
  isThinking = false;
  /** Whether the computer was to move and could not. */
  isStuck = false;

  #ahead = null; // as below, with the step that it follows
  #looks = 0; // changes when another position is to be looked at
  #hasMoves = false; // whether any was made since the game was taken up
  #turn = 0; // changes when what is under way is no longer wanted
  #moving = null; // the turn in which the visitor made a move

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

  /** The position of the game, whichever is shown. */
  get position() {
    return this.steps.at(-1).position;
  }

  get shown() {
    return this.steps[this.ply];
  }

  /**
   * What is looked at instead of the shown position: one that may follow it.
   * @returns {{moves: {action: number, text: string}[],
   *     position: import("./engine.js").Position}|null}
   */
  get ahead() {
    return this.#ahead?.step === this.shown ? this.#ahead : null;
  }

  get actions() {
    return this.steps.slice(1).map(({ move }) => move.action);
  }

  get isLookingBack() {
    return this.ply < this.steps.length - 1;
  }

  get isYourTurn() {
    return !this.position.isOver && this.position.player === this.you;
  }

  get isComputersTurn() {
    return !this.position.isOver && !this.isYourTurn && !this.isPaused;
  }

  /** Whether there is a move of the visitor's to take back, or any when watching. */
  get canUndo() {
    return this.#undone >= 0;
  }

  /** Whether a game that the visitor plays would be lost if another began. */
  get isUnderWay() {
    return this.you !== null && this.canUndo && !this.position.isOver;
  }

  /** Begins a game; `you` is 0, 1 or null, as above. */
  async begin(you) {
    await this.load(you, []);
    await this.resume();
  }

  /** Takes up a game after some actions, without going on with it yet. */
  async load(you, actions) {
    const [moves, position] = await Promise.all([
      this.engine.replay(actions),
      this.engine.position(actions),
    ]);
    this.#interrupt();
    this.engine.forget();
    this.you = you;
    this.isPaused = this.#hasMoves = false;
    this.steps = [...moves, { player: position.player }].map(({ player }, ply) => ({
      move: moves[ply - 1] ?? null,
      player,
      position: null,
      thought: null,
      tree: null,
    }));
    this.steps.at(-1).position = position;
    this.ply = actions.length;
  }

  /** Goes on with the game, also where the computer stopped thinking. */
  async resume() {
    if (!this.#isMoving) await this.#goOn(this.#interrupt());
  }

  /** Goes on with the game against another player, who has not thought yet. */
  async meet() {
    this.engine.forget();
    this.#lookAtGame();
    Object.assign(this.steps.at(-1), { thought: null, tree: null });
    await this.resume();
  }

  /** Makes the visitor's move. */
  async choose(action) {
    if (!this.isYourTurn || this.isLookingBack || this.ahead || this.#isMoving) return;
    const turn = this.#interrupt();
    this.#moving = turn;
    try {
      if (!(await this.#play(action, turn))) return;
    } finally {
      if (this.#isMoving) this.#moving = null;
    }
    await this.#goOn(turn);
  }

  /** Takes back the visitor's last move, with what the computer answered. */
  async undo() {
    if (!this.canUndo) return;
    const turn = this.#interrupt();
    const ply = this.#undone;
    await this.#know(ply);
    if (turn !== this.#turn) return;
    this.#lookAtGame();
    if (this.position.isOver && this.you !== null) {
      this.page.onTakenBack(this.position.rewards[this.you]);
    }
    this.steps.length = ply + 1;
    this.ply = ply;
    this.isPaused = this.you === null;
    await this.#goOn(turn);
  }

  /** Stops or goes on when the computer plays against itself. */
  async pause(isPaused) {
    this.isPaused = isPaused;
    this.#lookAtGame();
    if (!isPaused) this.ply = this.steps.length - 1;
    await this.resume();
  }

  /** Shows the position after so many moves, until the game goes on. */
  async look(ply) {
    if (!this.steps.length) return;
    this.#lookAtGame();
    this.ply = Math.min(Math.max(ply, 0), this.steps.length - 1);
    if (this.isLookingBack && this.you === null) this.isPaused = true;
    const { shown } = this;
    await this.#know(this.ply);
    if (shown !== this.shown) return; // another one is wanted by now
    if (this.isComputersTurn || this.#isMoving) this.page.onChange();
    else await this.resume();
  }

  /** Shows what these moves would lead to from a step, if that is the one shown. */
  async lookAhead(step, moves) {
    const { ply } = this;
    if (step !== this.shown) return;
    const mine = ++this.#looks;
    const isWatching = this.you === null && !this.isPaused;
    if (isWatching) {
      this.isPaused = true;
      this.#interrupt();
    }
    const actions = [...this.actions.slice(0, ply), ...moves.map(({ action }) => action)];
    const position = await this.engine.position(actions);
    if (mine !== this.#looks || step !== this.shown) return; // another one is wanted
    this.#ahead = moves.length ? { step, moves, position } : null;
    if (isWatching) await this.resume();
    else this.page.onChange();
  }

  /** Shows no position any more that only may follow. */
  #lookAtGame() {
    this.#ahead = null;
    this.#looks++;
  }

  /** Takes changed settings into account. */
  async refresh() {
    if (this.steps.length && !this.isComputersTurn) await this.resume();
  }

  /** Whether a move of the visitor's is on its way. */
  get #isMoving() {
    return this.#moving === this.#turn;
  }

  /** After how many moves the visitor can play otherwise; -1 if there is nothing to undo. */
  get #undone() {
    const before = this.steps.slice(0, -1);
    return before.findLastIndex(
      ({ player }) => this.you === null || this.you === player,
    );
  }

  async #know(ply) {
    const step = this.steps[ply];
    step.position ??= await this.engine.position(this.actions.slice(0, ply));
  }

  #interrupt() {
    if (this.isThinking) this.engine.stop();
    this.isThinking = this.isStuck = false;
    return ++this.#turn;
  }

  /** Lets the computer play until the visitor is to move or the game is over. */
  async #goOn(turn) {
    this.page.onChange();
    while (turn === this.#turn && this.isComputersTurn) {
      const shown = new Promise((resolve) => {
        setTimeout(resolve, this.you === null ? WATCH_PAUSE : PAUSE);
      });
      const thought = await this.#think("play", this.steps.length - 1, turn);
      await shown;
      if (!thought) return;
      if (thought.resigns) this.#resign();
      else if (!(await this.#play(this.#choice(thought), turn))) return;
      this.page.onChange();
    }
    if (turn !== this.#turn || !this.settings.analyses) return;
    const { position } = this.shown; // null as long as it is only asked for
    if (position && !position.isOver) await this.#think("hint", this.ply, turn);
  }

  async #think(purpose, ply, turn) {
    const step = this.steps[ply];
    const known = step.thought;
    const { simulations } = this.settings;
    const isKnown = known?.simulations >= simulations && known.tree;
    if (purpose === "hint" && isKnown) return known;
    const keep = (thought) => {
      if (turn !== this.#turn) return;
      step.thought = thought;
      step.tree = thought?.tree ?? step.tree;
      this.page.onThought();
    };
    this.isThinking = true;
    this.page.onChange();
    const actions = this.actions.slice(0, ply);
    const request = { actions, simulations, purpose, tree: this.settings.analyses };
    const thought = await this.engine.think(request, keep).catch((error) => {
      if (turn === this.#turn) {
        this.isThinking = false;
        this.isStuck = purpose === "play";
      }
      throw error;
    });
    if (turn !== this.#turn) return null;
    this.isThinking = false;
    if (!thought?.resigns) keep(thought);
    this.page.onChange();
    return thought;
  }

  /** Returns the best move, or to vary games that are only watched, one tried often. */
  #choice({ action, moves }) {
    if (this.you !== null || this.steps.length > VARIED_MOVES) return action;
    const isSearched = moves.some(({ visits }) => visits > 0);
    const weight = (move) => move.weight ?? (isSearched ? move.visits : move.prior);
    let rest = Math.random() * moves.reduce((sum, move) => sum + weight(move), 0);
    const drawn = moves.find((move) => (rest -= weight(move)) < 0);
    return drawn ? drawn.action : action;
  }

  /** Returns whether the move was made, and not overtaken by something else. */
  async #play(action, turn) {
    const position = await this.engine.position([...this.actions, action]);
    if (turn !== this.#turn) return false;
    const { last: move, player } = position;
    this.steps.push({ move, player, position, thought: null, tree: null });
    this.ply = this.steps.length - 1;
    this.#hasMoves = true;
    this.#noteEnd();
    return true;
  }

  /** Ends the game by resignation of the computer, which is to move. */
  #resign() {
    const step = this.steps.at(-1);
    const rewards = [0, 1].map((player) => (player === step.player ? -1 : 1));
    const end = { isOver: true, isResigned: true, rewards, resultText: "resignation" };
    step.position = { ...step.position, ...end, moves: [] };
    this.ply = this.steps.length - 1;
    if (this.#hasMoves) this.#noteEnd(); // else it was noted when it was played
  }

  #noteEnd() {
    const { isOver, rewards } = this.position;
    if (isOver && this.you !== null) this.page.onEnd(rewards[this.you]);
  }
}
