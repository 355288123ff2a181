/** The player that thinks on a server. */
import { MessageEngine } from "./engine.js";

const FIRST_DELAY = 500; // milliseconds until the page connects again
const LONGEST_DELAY = 8000;

/**
 * Asks over a WebSocket. Every question carries the whole game, so the server needs no
 * memory of a visitor: when the connection breaks, another is made, and what was open is
 * asked again.
 */
export class ServerEngine extends MessageEngine {
  #url;
  #game;
  #onConnection;
  #socket = null;
  #isReady = false; // whether this connection was told what is played
  #params = null; // of the newest start
  #delay = FIRST_DELAY;

  /**
   * @param {{socket: string, game: string}} config where to connect, and what is played
   * @param {(error: Error) => void} onFailure called when nothing more can be done
   * @param {(problem: string) => void} onConnection told what is wrong with the
   *     connection, and "" when it is right again
   */
  constructor({ socket, game }, onFailure, onConnection) {
    super((message) => this.#post(message), onFailure);
    this.#url = new URL(socket, location.href);
    this.#url.protocol = this.#url.protocol.replace("http", "ws");
    this.#game = game;
    this.#onConnection = onConnection;
  }

  start(onLoading, player, onPreview) {
    const before = this.#params;
    this.#params = { game: this.#game, player };
    if (!this.#socket) this.#connect();
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
    this.#socket.onopen = () => this.#greet();
    this.#socket.onmessage = ({ data }) => this.#take(JSON.parse(data));
    this.#socket.onclose = ({ reason }) => {
      this.#onConnection(
        `${reason || "The server does not answer"}. Trying again; the game is not lost.`,
      );
      setTimeout(() => this.#connect(), this.#delay);
      this.#delay = Math.min(2 * this.#delay, LONGEST_DELAY);
    };
  }

  /** Says first of all what is played, if that is not asked for already. */
  #greet() {
    const start = this.open.find(({ method }) => method === "start");
    if (start) this.#post(start);
    else this.ask("start", this.#params).catch((error) => this.fail(error));
  }

  #take(message) {
    const asked = this.open.find(({ id }) => id === message.id);
    this.receive(message);
    if (asked?.method !== "start" || message.kind !== "answer" || this.#isReady) return;
    this.#isReady = true;
    this.#delay = FIRST_DELAY;
    this.#onConnection("");
    for (const open of this.open) this.#post(open);
  }
}
