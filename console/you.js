/** The user's own card: their presence, "Appear away", and "Leave". */
import { drawAvatar } from './wording.js';

export class You {
  #card = document.querySelector('.you');
  #status = document.getElementById('you-status');
  #away = document.getElementById('away');
  #client;
  #name;

  constructor({ client, name, onLeave }) {
    this.#client = client;
    this.#name = name;
    this.showName(name);
    document.getElementById('leave').onclick = onLeave;
    this.#away.onclick = () => this.#appearAway(this.#away.getAttribute('aria-pressed') !== 'true');
    this.#appearAway(false);
    client.on('presence', (presence) => presence.user_id === name && this.#draw());
    client.on('state', () => this.#draw());
    this.#draw();
  }

  /** `shown`: the name that the user has chosen, or the id. */
  showName(shown) {
    drawAvatar(document.getElementById('you-avatar'), this.#name, shown);
    document.getElementById('you-name').textContent = shown;
  }

  /** Sets the link to a second tab with another name that subscribes to this user. */
  offerSecondTab(otherName) {
    const address = new URL('/', location.href);
    address.searchParams.set('name', otherName);
    address.searchParams.set('watch', this.#name);
    document.getElementById('second-tab').href = address.href;
    document.getElementById('second-name').textContent = otherName;
  }

  #appearAway(away) {
    this.#away.setAttribute('aria-pressed', String(away));
    this.#client.setActive(away ? false : null);
  }

  #draw() {
    const connected = this.#client.state === 'READY';
    const presence = connected ? this.#client.presence(this.#name) : undefined;
    const status = presence?.status ?? 'unknown';
    this.#card.dataset.status = status;
    const inCall = presence?.in_call ? ', in a call' : '';
    this.#status.textContent = presence ? `you are ${status}${inCall}` : 'not connected';
  }
}
