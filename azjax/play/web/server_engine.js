/** The engine on a server. */
import { MessageEngine } from "./engine.js";

const FIRST_DELAY = 500; // before the page reconnects (milliseconds)
const LONGEST_DELAY = 8000;

/**
 * Sends requests over a WebSocket. Each request contains all actions of the game, so the
 * server keeps no state: after a lost connection the page reconnects and sends the
 * unanswered requests again.
 */
export class ServerEngine extends MessageEngine {
  setsUp = true;
  #url;
  #game;
  #onConnection;
  #socket = null;
  #isReady = false; // whether this connection has started a game
  #params = null; // of the latest start request
  #delay = FIRST_DELAY;

  /**
   * @param {{socket: string, game: string}} config address of the socket and key of the game
   * @param {(error: Error) => void} onFailure called after a fatal error
   * @param {(problem: string) => void} onConnection receives the problem of the
   *     connection, "" when it is solved
   */
  constructor({ socket, game }, onFailure, onConnection) {
    super((message) => this.#post(message), onFailure);
    this.#url = new URL(socket, location.href);
    this.#url.protocol = this.#url.protocol.replace("http", "ws");
    this.#game = game;
    this.#onConnection = onConnection;
  }

  start(onLoading, player, onPreview, setup) {
    const before = this.#params;
    this.#params = { game: this.#game, player, setup };
    if (!this.#socket) {
      this.#connect();
      this.onStage("Connecting to the server");
    }
    onLoading(1);
    return this.ask("start", this.#params, onPreview).catch((error) => {
      this.#params = before;
      throw error;
    });
  }

  #post(message) {
    const isOpen = this.#socket.readyState === WebSocket.OPEN;
    if (isOpen && (this.#isReady || message.method === "start")) {
      this.#socket.send(JSON.stringify(message));
    }
  }

  #connect() {
    this.#isReady = false;
    this.#socket = new WebSocket(this.#url);
    this.#socket.onopen = () => this.#startAgain();
    this.#socket.onmessage = ({ data }) => this.#handle(JSON.parse(data));
    this.#socket.onclose = ({ reason }) => {
      this.#onConnection(
        `${reason || "The server does not answer"}. Trying again; the game is not lost.`,
      );
      setTimeout(() => this.#connect(), this.#delay);
      this.#delay = Math.min(2 * this.#delay, LONGEST_DELAY);
    };
  }

  /** Sends the pending start request, or else the latest one again. */
  #startAgain() {
    const start = this.open.find(({ method }) => method === "start");
    if (start) this.#post(start);
    else this.ask("start", this.#params).catch((error) => this.fail(error));
  }

  #handle(message) {
    const request = this.open.find(({ id }) => id === message.id);
    this.receive(message);
    if (request?.method !== "start" || message.kind !== "answer" || this.#isReady) return;
    this.#isReady = true;
    this.#delay = FIRST_DELAY;
    this.#onConnection("");
    for (const open of this.open) this.#post(open);
  }
}
