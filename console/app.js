/**
 * The page at `/`: pick a name, find people, write to them, call them.
 *
 * It has two screens: joining, and the main screen (main_screen.js).
 *
 * URL: `?name=bob` joins at once, `&watch=alice,carol` also subscribes to their presence, and
 * `&chat=alice` opens the chat with a contact, `&group=team` that of a group.
 */
import { TabMemory } from '/client/call.js';
import { Names } from './names.js';
import { MainScreen } from './main_screen.js';
import { followWindowHeight } from './window_height.js';

const SUGGESTIONS = 4;

const byId = (id) => document.getElementById(id);

class Page {
  #screen = null;
  #name = null;
  #names = new Names((name) => this.#screen?.watch(name));
  #memory = new TabMemory();

  constructor() {
    byId('join-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#join(byId('join-name').value.trim());
    });
    this.#showJoin();
    const address = new URLSearchParams(location.search);
    const name = address.get('name')?.trim();
    const watch = (address.get('watch') ?? '').split(',').filter(Boolean);
    const [chat, group] = [address.get('chat'), address.get('group')];
    if (name) this.#join(name, { watch, chat, group });
    else byId('join-name').focus({ preventScroll: true });
  }

  async #join(name, arrival = {}) {
    if (name === '' || this.#screen !== null) return;
    byId('join-problem').hidden = true;
    this.#name = name;
    this.#screen = new MainScreen({
      name,
      names: this.#names,
      memory: this.#memory,
      onLeave: () => this.#leave(),
      onEnded: (error) => this.#onEnded(error),
      onTitle: (note) => this.#setTitle(note),
      onChat: (chat) => setAddress({ name, ...addressOf(chat) }),
    });
    const { chat, group } = arrival;
    setAddress({ name, ...(chat && { chat }), ...(group && { group }) });
    byId('join').hidden = true;
    byId('main-screen').hidden = false;
    this.#setTitle('');
    await this.#screen.enter(arrival);
  }

  #leave() {
    const screen = this.#screen;
    this.#screen = null;
    screen?.leave();
    setAddress({});
    this.#showJoin();
    byId('join-name').focus();
  }

  /** The server refused the client, or does not allow reconnecting. */
  #onEnded(error) {
    if (this.#screen === null) return;
    this.#leave();
    byId('join-problem').hidden = false;
    byId('join-problem').textContent = error.message;
  }

  #setTitle(note) {
    document.title = `${note}${this.#name} · Rollcall`;
  }

  #showJoin() {
    byId('join').hidden = false;
    byId('main-screen').hidden = true;
    document.title = 'Rollcall';
    const chips = this.#names.suggest(SUGGESTIONS).map((name) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.dir = 'auto';
      button.textContent = name;
      button.addEventListener('click', () => this.#join(name));
      const item = document.createElement('li');
      item.append(button);
      return item;
    });
    byId('suggestions').replaceChildren(...chips);
  }
}

/** Stores name and chat in the URL, so that a reload joins again; leaving clears them. */
function setAddress(parameters) {
  const query = new URLSearchParams(parameters).toString();
  history.replaceState(null, '', query === '' ? '/' : `/?${query}`);
}

function addressOf(chat) {
  if (chat === null) return {};
  return chat.isGroup ? { group: chat.chatId } : { chat: chat.peer };
}

followWindowHeight();
new Page();
