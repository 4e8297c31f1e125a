/**
 * The page of both examples: presence, messages, typing. Its only network use is HTTP, to get
 * tokens and to open the chat.
 */
document.body.innerHTML = `
  <header>
    <h1>${document.title}</h1>
    <span id="state">connecting</span>
  </header>
  <p id="peer"></p>
  <ul id="messages"></ul>
  <p id="typing"></p>
  <form id="form">
    <input id="body" autocomplete="off" aria-label="Message" />
    <button>Send</button>
  </form>`;

const query = new URLSearchParams(location.search);
const element = (id) => document.getElementById(id);

/** Typing ends this long after the last key. */
const TYPING_END_MS = 3000;

export const me = query.get('name') ?? 'ann';
export const peer = query.get('with') ?? 'bob';
export const server = query.get('server') ?? 'http://127.0.0.1:8080';

/** A token of the server's --dev mode; an app gets one from its own login. */
export async function getToken() {
  const body = JSON.stringify({ user: me });
  const response = await fetch(`${server}/dev/token`, { method: 'POST', body });
  return (await response.json()).token;
}

async function rest(method, path, body) {
  const headers = { Authorization: `Bearer ${await getToken()}` };
  return fetch(server + path, { method, headers, body: JSON.stringify(body) });
}

/**
 * Opens the direct chat of the two users and returns its id. Shows the user's presence to everyone, because the two are
 * not contacts.
 */
export async function openChat() {
  await rest('PATCH', '/v1/me', { presence_visibility: 'everyone' });
  const response = await rest('POST', '/v1/chats', { direct_with: peer });
  if (response.ok) return (await response.json()).chat_id;
  showState(`cannot open the chat: ${response.status}`);
  throw new Error(`cannot open the chat: ${response.status}`);
}

export function showState(text) {
  element('state').textContent = text;
}

export function showPeer(status) {
  element('peer').textContent = `${peer} is ${status}`;
}

export function showTyping(typing) {
  element('typing').textContent = typing ? `${peer} is typing …` : '';
}

const shown = new Set();

/** Shows a message once, even if it arrives twice. */
export function showMessage({ sequence, sender_id: sender, body }) {
  if (shown.has(sequence)) return;
  shown.add(sequence);
  const name = document.createElement('span');
  name.className = 'sender';
  name.textContent = sender;
  const line = document.createElement('li');
  line.append(name, ` ${body}`);
  element('messages').append(line);
}

/** Calls `send(body)` for every message, and `typing(true | false)` while the user types. */
export function onInput({ send, typing }) {
  const input = element('body');
  let rest;
  const stop = () => {
    clearTimeout(rest);
    rest = undefined;
    typing(false);
  };
  input.addEventListener('input', () => {
    if (rest === undefined) typing(true);
    clearTimeout(rest);
    rest = setTimeout(stop, TYPING_END_MS);
  });
  element('form').addEventListener('submit', (event) => {
    event.preventDefault();
    if (input.value === '') return;
    send(input.value);
    input.value = '';
    stop();
  });
}
