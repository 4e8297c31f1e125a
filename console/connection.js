/** The label that shows the state of the connection. */
const TICK_MS = 250;

const WORDING = {
  READY: ['good', 'connected'],
  CONNECTED: ['busy', 'connecting …'],
  RECONNECTING: ['busy', 'connecting …'],
  SYNCING: ['busy', 'connecting …'],
  CLOSING: ['busy', 'server is closing …'],
  DISCONNECTED: ['busy', 'connection lost'],
};

export class ConnectionPill {
  #pill = document.getElementById('connection');
  #text = document.getElementById('connection-text');
  #retry = document.getElementById('connection-retry');
  #announcer = document.getElementById('announcer');
  #ticker;

  constructor(client) {
    this.#pill.hidden = false;
    this.#retry.onclick = () => client.connect();
    client.on('state', (change) => this.#show(change));
  }

  dispose() {
    clearInterval(this.#ticker);
    this.#pill.hidden = true;
  }

  #show({ state, delayMs, final }) {
    clearInterval(this.#ticker);
    this.#retry.hidden = state !== 'BACKOFF';
    if (state === 'BACKOFF') this.#countDown(Date.now() + delayMs);
    else if (final) this.#draw('bad', 'disconnected');
    else this.#draw(...WORDING[state]);
    // Screen readers announce important changes only, not every second of the countdown.
    if (state === 'READY') this.#announcer.textContent = 'Connected';
    if (state === 'BACKOFF') this.#announcer.textContent = 'Connection lost, reconnecting';
  }

  #countDown(dueMs) {
    const draw = () => {
      const seconds = Math.max(1, Math.ceil((dueMs - Date.now()) / 1000));
      this.#draw('busy', `reconnecting in ${seconds} s`);
    };
    draw();
    this.#ticker = setInterval(draw, TICK_MS);
  }

  #draw(tone, text) {
    this.#pill.dataset.tone = tone;
    this.#text.textContent = text;
  }
}
