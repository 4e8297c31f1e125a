/**
 * Draws the user's attention to messages and calls: the title of the tab, a ring, notifications.
 *
 * The ring is on until the user turns it off. Notifications are off until the user turns them on
 * and the browser allows them; they are shown only while the page is hidden.
 */
import { Ringtone } from './ringtone.js';

const RING_KEY = 'rollcall.ring';
const NOTIFY_KEY = 'rollcall.notify';

const byId = (id) => document.getElementById(id);

export class Alerts {
  #nameOf;
  #onTitle;
  #onOpen;
  #ringtone = new Ringtone();
  #unread = 0;
  #call = null;
  #notification = null;

  /** `onTitle(note)` sets the tab's title; `onOpen(chat)`: the user clicked a notification. */
  constructor({ nameOf, onTitle, onOpen }) {
    this.#nameOf = nameOf;
    this.#onTitle = onTitle;
    this.#onOpen = onOpen;
    byId('alert-ring').checked = read(RING_KEY) !== 'off';
    byId('alert-ring').onchange = ({ target }) => {
      write(RING_KEY, target.checked ? 'on' : 'off');
      this.#ring();
    };
    byId('alert-notify').checked = mayNotify();
    byId('alert-notify').onchange = ({ target }) => this.#chooseNotify(target);
    byId('alert-hint').hidden = true;
  }

  showUnread(count) {
    this.#unread = count;
    this.#drawTitle();
  }

  showCall(call) {
    const rings = call?.state === 'incoming';
    if (rings && this.#call?.callId !== call.callId)
      this.#notify('call', `${this.#nameOf(call.peer)} is calling`, 'Click to answer.');
    if (!rings) this.#notification?.close();
    this.#call = rings ? { ...call } : null;
    this.#drawTitle();
    this.#ring();
  }

  /** Another user has written in this chat. */
  showMessage(chat, { sender_id: sender, body }) {
    const name = this.#nameOf(sender);
    const title = chat.isGroup ? `${name} in ${chat.title}` : name;
    this.#notify(chat.chatId, title, body, () => this.#onOpen(chat));
  }

  dispose() {
    this.showCall(null);
  }

  #drawTitle() {
    if (this.#call !== null) this.#onTitle(`${this.#nameOf(this.#call.peer)} is calling · `);
    else this.#onTitle(this.#unread > 0 ? `(${this.#unread}) ` : '');
  }

  #ring() {
    if (this.#call !== null && byId('alert-ring').checked) this.#ringtone.start();
    else this.#ringtone.stop();
  }

  #notify(tag, title, body, onClick = () => {}) {
    if (document.visibilityState === 'visible' || !mayNotify()) return;
    const notification = new Notification(title, { body, tag, icon: '/favicon.svg' });
    notification.onclick = () => {
      window.focus();
      notification.close();
      onClick();
    };
    if (tag === 'call') this.#notification = notification;
  }

  async #chooseNotify(box) {
    write(NOTIFY_KEY, box.checked ? 'on' : 'off');
    const refused = box.checked && (await askPermission()) !== 'granted';
    if (refused) box.checked = false;
    byId('alert-hint').hidden = !refused;
    byId('alert-hint').textContent = refused
      ? 'The browser does not allow it. Its settings for this page can change that.'
      : '';
  }
}

const mayNotify = () =>
  read(NOTIFY_KEY) === 'on' && globalThis.Notification?.permission === 'granted';

async function askPermission() {
  return globalThis.Notification?.requestPermission();
}

function read(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    /* Without storage the choice lasts until the page is closed. */
  }
}
