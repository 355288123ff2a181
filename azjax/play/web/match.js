/** The games between the user and the computer, one at a time. */
import { CHANCE } from "./engine.js";

const SAMPLED_MOVES = 6; // first moves that are sampled when the computer plays itself
const PAUSE = 350; // least time between two moves (milliseconds)
const WATCH_PAUSE = 900;

/**
 * @typedef {Object} Settings
 * @property {import("./settings_panel.js").Level} level of the computer
 * @property {boolean} analyzes whether to search the user's positions too
 *
 * @typedef {Object} Step the game after some moves
 * @property {import("./engine.js").Move|null} move the previous move
 * @property {number} player to move, or `CHANCE`
 * @property {import("./engine.js").Position|null} position null until it is requested
 * @property {import("./engine.js").Decision|null} decision the latest
 * @property {import("./engine.js").Branch[]|null} tree the latest
 */

export class Match {
  /** @type {Step[]} the first position, then one for each move; the last has a position */
  steps = [];
  /** Index of the shown step, by default the last. */
  ply = 0;
  /** The user's player; null if the computer plays both sides. */
  you = 0;
  isPaused = false;
  isThinking = false;
  /** Whether the computer failed to move. */
  isStuck = false;

  #ahead = null; // see `ahead`; with the step before it
  #numLooks = 0; // counts the changes of the shown position
  #hasMoves = false; // whether a move was made since the game was loaded
  #turn = 0; // changes when running requests are cancelled
  #moving = null; // the turn in which the user makes a move

  /**
   * @param {import("./engine.js").Engine} engine
   * @param {Settings} settings may change
   * @param {{onChange: () => void, onDecision: () => void, onEnd: (reward: number) => void,
   *     onTakenBack: (reward: number) => void}} page rewards are the user's
   */
  constructor(engine, settings, page) {
    this.engine = engine;
    this.settings = settings;
    this.page = page;
  }

  /** The latest position of the game, which may not be shown. */
  get position() {
    return this.steps.at(-1).position;
  }

  get shown() {
    return this.steps[this.ply];
  }

  /**
   * A possible continuation that is shown instead of the shown step, null if there is
   * none.
   * @returns {{moves: {action: number, text: string}[],
   *     position: import("./engine.js").Position}|null}
   */
  get ahead() {
    return this.#ahead?.step === this.shown ? this.#ahead : null;
  }

  /** 0 if the user moves first, 1 if second, null if the computer plays both sides. */
  get order() {
    return this.you === null ? null : this.you ^ this.#first;
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

  /** Whether the computer is to move, or an outcome of chance is drawn next. */
  get isComputersTurn() {
    return !this.position.isOver && !this.isYourTurn && !this.isPaused;
  }

  /** Whether a move of the user can be taken back, or any move when watching. */
  get canUndo() {
    return this.#undone >= 0;
  }

  /** Whether the user is playing a game that is not over. */
  get isUnderWay() {
    return this.you !== null && this.canUndo && !this.position.isOver;
  }

  /** Starts a game; `order` is 0 if the user moves first, 1 if second, null if never. */
  async start(order) {
    await this.load(null, []);
    if (order !== null) this.you = order ^ this.#first;
    await this.resume();
  }

  /** Loads a game of the user's player, 0, 1 or null; call `resume` to continue it. */
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
      decision: null,
      tree: null,
    }));
    this.steps.at(-1).position = position;
    this.ply = actions.length;
  }

  /** Loads a game to look through; nobody moves. */
  async open(actions) {
    await this.load(null, actions);
    this.isPaused = true;
    await this.resume();
  }

  /** Continues the game, also after an interruption. */
  async resume() {
    if (!this.#isMoving) await this.#continue(this.#interrupt());
  }

  /** Continues the game against another computer player. */
  async changePlayer() {
    this.engine.forget();
    this.#clearAhead();
    Object.assign(this.steps.at(-1), { decision: null, tree: null });
    await this.resume();
  }

  /** Plays the user's move. */
  async play(action) {
    if (!this.isYourTurn || this.isLookingBack || this.ahead || this.#isMoving) return;
    const turn = this.#interrupt();
    this.#moving = turn;
    try {
      if (!(await this.#play(action, turn))) return;
    } finally {
      if (this.#isMoving) this.#moving = null;
    }
    await this.#continue(turn);
  }

  /** Takes back the user's resignation, or else their last move and the answer to it. */
  async undo() {
    if (!this.canUndo) return;
    const turn = this.#interrupt();
    const ply = this.#undone;
    await this.#request(ply);
    if (turn !== this.#turn) return;
    this.#clearAhead();
    if (this.position.isOver && this.you !== null) {
      this.page.onTakenBack(this.position.rewards[this.you]);
    }
    this.steps.length = ply + 1;
    const step = this.steps[ply];
    step.position = step.position.unresigned ?? step.position;
    this.ply = ply;
    this.isPaused = this.you === null;
    await this.#continue(turn);
  }

  /** Resigns for the user. */
  async resign() {
    if (!this.isUnderWay) return;
    const turn = this.#interrupt();
    this.#resign(this.you);
    await this.#continue(turn);
  }

  /** Pauses or continues when the computer plays itself. */
  async pause(isPaused) {
    this.isPaused = isPaused;
    this.#clearAhead();
    if (!isPaused) this.ply = this.steps.length - 1;
    await this.resume();
  }

  /** Shows the position after `ply` moves. */
  async look(ply) {
    if (!this.steps.length) return;
    this.#clearAhead();
    this.ply = Math.min(Math.max(ply, 0), this.steps.length - 1);
    if (this.isLookingBack && this.you === null) this.isPaused = true;
    const { shown } = this;
    await this.#request(this.ply);
    if (shown !== this.shown) return; // another one was requested
    if (this.isComputersTurn || this.#isMoving) this.page.onChange();
    else await this.resume();
  }

  /** Shows the position after some moves from the shown step. */
  async lookAhead(step, moves) {
    const { ply } = this;
    if (step !== this.shown) return;
    const mine = ++this.#numLooks;
    const isWatching = this.you === null && !this.isPaused;
    if (isWatching) {
      this.isPaused = true;
      this.#interrupt();
    }
    const actions = [...this.actions.slice(0, ply), ...moves.map(({ action }) => action)];
    const position = await this.engine.position(actions);
    if (mine !== this.#numLooks || step !== this.shown) return; // another was requested
    this.#ahead = moves.length ? { step, moves, position } : null;
    if (isWatching) await this.resume();
    else this.page.onChange();
  }

  /** Shows the game instead of a possible continuation. */
  #clearAhead() {
    this.#ahead = null;
    this.#numLooks++;
  }

  /** Applies changed settings. */
  async refresh() {
    if (this.steps.length && !this.isComputersTurn) await this.resume();
  }

  /** The player who moves first; 0 where chance decides. */
  get #first() {
    return Math.max(0, this.steps[0].player);
  }

  /** Whether the user's move is waiting for the engine. */
  get #isMoving() {
    return this.#moving === this.#turn;
  }

  /** The ply to go back to; -1 if there is none. The user's resignation is undone alone. */
  get #undone() {
    const { isResigned, player } = this.position;
    const before = isResigned && player === this.you ? this.steps : this.steps.slice(0, -1);
    return before.findLastIndex(
      ({ player }) => player !== CHANCE && (this.you ?? player) === player,
    );
  }

  /** Requests the position of a step unless it is known. */
  async #request(ply) {
    const step = this.steps[ply];
    step.position ??= await this.engine.position(this.actions.slice(0, ply));
  }

  #interrupt() {
    if (this.isThinking) this.engine.stop();
    this.isThinking = this.isStuck = false;
    return ++this.#turn;
  }

  /** Plays the computer's moves, and lets the engine draw the outcomes of chance, until
   *  the user is to move or the game is over. */
  async #continue(turn) {
    this.page.onChange();
    while (turn === this.#turn && this.isComputersTurn) {
      if (this.position.player === CHANCE) {
        if (!(await this.#add(this.engine.roll(this.actions), turn))) return;
        this.page.onChange();
        continue;
      }
      const shown = new Promise((resolve) => {
        setTimeout(resolve, this.you === null ? WATCH_PAUSE : PAUSE);
      });
      const decision = await this.#decide("play", this.steps.length - 1, turn);
      await shown;
      if (!decision) return;
      if (decision.resigns) this.#resign(this.position.player);
      else if (!(await this.#play(this.#choose(decision), turn))) return;
      this.page.onChange();
    }
    if (turn !== this.#turn || !this.settings.analyzes) return;
    const { position } = this.shown; // null until it is answered
    const isUnknown = !position || position.isOver || position.player === CHANCE;
    if (!isUnknown) await this.#decide("hint", this.ply, turn);
  }

  async #decide(purpose, ply, turn) {
    const step = this.steps[ply];
    const previous = step.decision;
    const { level } = this.settings;
    const simulations = purpose === "hint" ? level.hints : level.simulations;
    const isSufficient = previous?.simulations >= simulations && previous.tree;
    if (purpose === "hint" && isSufficient) return previous;
    const keep = (decision) => {
      if (turn !== this.#turn) return;
      step.decision = decision;
      step.tree = decision?.tree ?? step.tree;
      this.page.onDecision();
    };
    this.isThinking = true;
    this.page.onChange();
    const actions = this.actions.slice(0, ply);
    const request = { actions, simulations, purpose, tree: this.settings.analyzes };
    const decision = await this.engine.decide(request, keep).catch((error) => {
      if (turn === this.#turn) {
        this.isThinking = false;
        this.isStuck = purpose === "play";
      }
      throw error;
    });
    if (turn !== this.#turn) return null;
    this.isThinking = false;
    if (!decision?.resigns) keep(decision);
    this.page.onChange();
    return decision;
  }

  /**
   * Returns the best move, or samples: at weak levels, and the first moves when the computer
   * plays itself.
   */
  #choose({ action, moves }) {
    const isVaried = this.you === null && this.steps.length <= SAMPLED_MOVES;
    const temperature = this.settings.level.temperature || Number(isVaried);
    if (!temperature) return action;
    // One visit says less than the priors.
    const isSearched = moves.some(({ visits }) => visits > 1);
    const weights = moves.map(
      ({ weight, visits, prior }) =>
        (weight ?? (isSearched ? visits : prior)) ** (1 / temperature),
    );
    let rest = Math.random() * weights.reduce((sum, weight) => sum + weight, 0);
    const sampled = moves.find((_, index) => (rest -= weights[index]) < 0);
    return sampled ? sampled.action : action;
  }

  /** Plays a move; returns false if it was cancelled. */
  #play(action, turn) {
    return this.#add(this.engine.position([...this.actions, action]), turn);
  }

  /** Adds the requested next position; returns false if it was cancelled. */
  async #add(request, turn) {
    const position = await request;
    if (turn !== this.#turn) return false;
    const { last: move, player } = position;
    this.steps.push({ move, player, position, decision: null, tree: null });
    this.ply = this.steps.length - 1;
    this.#hasMoves = true;
    this.#reportEnd();
    return true;
  }

  /** Ends the game by the resignation of a player. */
  #resign(resigning) {
    const step = this.steps.at(-1);
    const rewards = [0, 1].map((player) => (player === resigning ? -1 : 1));
    const end = { isOver: true, isResigned: true, rewards, resultText: "resignation" };
    step.position = { ...step.position, ...end, moves: [], unresigned: step.position };
    this.ply = this.steps.length - 1;
    if (this.#hasMoves) this.#reportEnd(); // a loaded game was reported when it was played
  }

  #reportEnd() {
    const { isOver, rewards } = this.position;
    if (isOver && this.you !== null) this.page.onEnd(rewards[this.you]);
  }
}
