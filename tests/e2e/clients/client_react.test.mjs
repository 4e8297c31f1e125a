/** The React hooks of the packed client: real React in strict mode, in Chromium, against the real server. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { WebSocket } from 'ws';
import { Rollcall } from '../../../clients/js/rollcall.js';
import { launchBrowser } from '../support/browser.mjs';
import { serveBundle } from '../support/client_bundle.mjs';
import { befriend } from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';

const LIVE_MS = 30000;

const SCRIPT = `
  import { StrictMode, useState, startTransition } from 'react';
  import { createRoot } from 'react-dom/client';
  import { devToken, Rollcall } from 'rollcall';
  import { RollcallProvider, useCall, useChat, useConnection, useFriends, usePresence, useTyping } from 'rollcall/react';

  const query = new URLSearchParams(location.search);
  const [url, user, peer, chatId] = ['server', 'user', 'peer', 'chat'].map((name) => query.get(name));
  const client = new Rollcall({ url, getToken: () => devToken(user, { url }) });
  window.client = client;

  function Connection() {
    return useConnection();
  }

  function Status({ id }) {
    return <span className="status">{usePresence(id)?.status ?? 'loading'}</span>;
  }

  function Friends() {
    const { friends, isLoaded } = useFriends();
    return <ul id="friends" data-loaded={isLoaded}>{friends.map((one) => <li key={one.user_id}>{one.user_id} {one.status}</li>)}</ul>;
  }

  function Chat({ name }) {
    const { messages, isLoaded, hasEarlier, fetchEarlier, send, error, reads, markRead } = useChat(chatId);
    const { users, setTyping } = useTyping(chatId);
    window[name] = { send, fetchEarlier, setTyping, markRead };
    return (
      <section id={name} data-loaded={isLoaded} data-error={error?.code} data-earlier={hasEarlier}>
        <ol>{messages.map(({ key, body, state }) => <li key={key} data-state={state}>{body}</li>)}</ol>
        <p className="typing">{users.join()}</p>
        <p className="reads">{JSON.stringify(reads)}</p>
      </section>
    );
  }

  function Call() {
    const { call, accept, hangUp, place } = useCall();
    window.call = { accept, hangUp, place };
    return <p id="call">{call === null ? 'none' : call.state + ' ' + call.peer + ' ' + call.media}</p>;
  }

  function App() {
    const [shown, setShown] = useState({});
    window.show = (changes) => setShown((before) => ({ ...before, ...changes }));
    window.showLater = (changes) => startTransition(() => window.show(changes));
    return (
      <RollcallProvider client={client}>
        <p id="connection"><Connection /></p>
        {shown.status && <><Status id={peer} /><Status id={peer} /><Status id="somebody" /></>}
        {shown.friends && <Friends />}
        {shown.chat && <><Chat name="one" /><Chat name="two" /></>}
        {shown.call && <Call />}
      </RollcallProvider>
    );
  }

  createRoot(document.getElementById('root')).render(<StrictMode><App /></StrictMode>);
  await client.connect();
`;

let server;
let site;
let browser;
let contexts = [];
let problems = [];
const clients = [];

before(async () => {
  [server, site, browser] = await Promise.all([
    startServer(),
    serveBundle(SCRIPT, {
      packages: ['react', 'react-dom', 'scheduler'],
      define: { 'process.env.NODE_ENV': '"development"' },
    }),
    launchBrowser(),
  ]);
});
after(async () => {
  await browser?.close();
  await site?.close();
  await server?.stop();
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await Promise.all(contexts.map((context) => context.close()));
  contexts = [];
  const found = problems;
  problems = [];
  assert.deepEqual(found, [], 'React and the page report no problem');
});

/** Two contacts with a direct chat: `page` shows it to the first, `other` is a client of the second. */
async function openPair(user, peer, { messages = 0 } = {}) {
  await befriend(server, user, peer);
  const other = new Rollcall({ url: server.url, getToken: () => server.token(peer), WebSocket });
  clients.push(other);
  await other.connect();
  const { chat_id: chat } = await other.api.directChat(user);
  for (let n = 1; n <= messages; n += 1) await other.api.sendMessage(chat, `#${n}`);
  const context = await browser.newContext();
  contexts.push(context);
  const page = await context.newPage();
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && problems.push(message.text()));
  page.on('pageerror', (error) => problems.push(String(error)));
  const sent = [];
  page.on('websocket', (socket) =>
    socket.on('framesent', ({ payload }) => sent.push(JSON.parse(payload))),
  );
  const query = new URLSearchParams({ server: server.url, user, peer, chat });
  await page.goto(`${site.url}?${query}`);
  await textIs(page, '#connection', 'READY');
  await page.evaluate(() => window.show({ status: true, friends: true, chat: true, call: true }));
  return { page, other, chat, sent: (type) => sent.filter((frame) => frame.type === type) };
}

async function until(read, isRight) {
  const endMs = Date.now() + LIVE_MS;
  let value;
  while (Date.now() < endMs) {
    value = await read();
    if (isRight(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return assert.fail(`still ${JSON.stringify(value)}`);
}

const textsOf = (page, selector) => page.locator(selector).allTextContents();
const textIs = (page, selector, text) =>
  until(() => textsOf(page, selector), (texts) => texts.length > 0 && texts.every((one) => one === text));
const textsAre = (page, selector, wanted) =>
  until(() => textsOf(page, selector), (texts) => JSON.stringify(texts) === JSON.stringify(wanted));
const counted = (read, count) => until(() => read().length, (length) => length === count);

test('usePresence() follows a user, with one request for all components', async () => {
  const { page, other, sent } = await openPair('ann', 'ben');
  await textsAre(page, '.status', ['online', 'online', 'unknown']);
  other.setActive(false);
  await textsAre(page, '.status', ['away', 'away', 'unknown']);
  const requests = sent('subscribe_presence');
  assert.deepEqual(requests.map((frame) => frame.user_ids), [['ben', 'somebody']], 'strict mode mounts twice');
  await page.evaluate(() => window.show({ status: false }));
  await counted(() => sent('unsubscribe_presence'), 1);
  assert.deepEqual(sent('unsubscribe_presence')[0].user_ids.sort(), ['ben', 'somebody']);
  await page.evaluate(() => window.show({ status: true }));
  await textsAre(page, '.status', ['away', 'away', 'unknown']);
  await counted(() => sent('subscribe_presence'), 2);
});

test('a component that is shown again at once does not subscribe again', async () => {
  const { page, sent } = await openPair('cat', 'dan');
  await textsAre(page, '.status', ['online', 'online', 'unknown']);
  await page.evaluate(async () => {
    window.show({ status: false, chat: false });
    await new Promise((resolve) => setTimeout(resolve, 50));
    window.show({ status: true, chat: true });
    await new Promise((resolve) => setTimeout(resolve, 600));
  });
  for (const type of ['unsubscribe_presence', 'close_chat']) assert.equal(sent(type).length, 0, type);
});

test('useFriends() shows contacts, their presence, and who comes and goes', async () => {
  const { page, other } = await openPair('eva', 'fay');
  await textsAre(page, '#friends li', ['fay online']);
  await befriend(server, 'eva', 'gus');
  await textsAre(page, '#friends li', ['fay online', 'gus offline']);
  other.close();
  await until(() => textsOf(page, '#friends li'), ([fay]) => fay === 'fay offline');
  await page.evaluate(() => window.client.api.removeContact('gus'));
  await textsAre(page, '#friends li', ['fay offline']);
});

test('useChat() shows the same messages everywhere: history, pushes, own and earlier ones', async () => {
  const { page, other, chat, sent } = await openPair('hal', 'ida', { messages: 55 });
  const bodies = (first, last) => Array.from({ length: last - first + 1 }, (item, n) => `#${first + n}`);
  await textsAre(page, '#one li', bodies(6, 55));
  await other.sendMessage(chat, '#56');
  await page.evaluate(() => window.one.send('#57'));
  await textsAre(page, '#one li', bodies(6, 57));
  await page.evaluate(() => window.two.fetchEarlier());
  for (const name of ['one', 'two']) await textsAre(page, `#${name} li`, bodies(1, 57));
  assert.equal(await page.locator('#one').getAttribute('data-earlier'), 'false');
  assert.equal(sent('open_chat').length, 1);
  await page.evaluate(() => window.showLater({ chat: false }));
  await counted(() => sent('close_chat'), 1);
  await other.sendMessage(chat, '#58');
  await page.evaluate(() => window.showLater({ chat: true }));
  await textsAre(page, '#two li', bodies(9, 58));
});

test('useChat() catches up after the connection was lost', async () => {
  const { page, other, chat } = await openPair('jon', 'kim', { messages: 1 });
  await textsAre(page, '#one li', ['#1']);
  await page.evaluate(() => window.client.close());
  await textIs(page, '#connection', 'DISCONNECTED');
  await other.sendMessage(chat, 'missed');
  await page.evaluate(() => window.client.connect());
  await textsAre(page, '#one li', ['#1', 'missed']);
});

test('useTyping() shows who types, and tells others', async () => {
  const { page, other, chat, sent } = await openPair('lea', 'max');
  await until(() => page.locator('#one').getAttribute('data-loaded'), (loaded) => loaded === 'true');
  await other.openChat(chat);
  const typed = new Promise((resolve) => other.on('typing', resolve));
  other.typing(chat, true);
  await textIs(page, '.typing', 'max');
  other.typing(chat, false);
  await textIs(page, '.typing', '');
  await page.evaluate(() => {
    for (let input = 0; input < 10; input += 1) window.one.setTyping(true);
  });
  assert.deepEqual((await typed).user_id, 'lea');
  assert.equal(sent('typing_start').length, 1, 'not one for every input');
});

test('receipts of others are shown, and markRead() makes one', async () => {
  const { page, other, chat } = await openPair('ned', 'ola', { messages: 2 });
  await textsAre(page, '#one li', ['#1', '#2']);
  await other.openChat(chat);
  const receipt = new Promise((resolve) => other.on('receipt', resolve));
  assert.equal(await page.evaluate(() => window.one.markRead()), true);
  assert.deepEqual([(await receipt).user_id, (await receipt).sequence], ['ned', 2]);
  await page.evaluate(() => window.one.send('three'));
  await other.api.markRead(chat, 3);
  await textIs(page, '.reads', '{"ola":3}');
});

test('useCall() shows a call that rings, and declines it', async () => {
  const { page, other } = await openPair('pia', 'rob');
  await textIs(page, '#call', 'none');
  const rejected = new Promise((resolve) => other.on('call_rejected', resolve));
  await other.requestCall('pia');
  await textIs(page, '#call', 'incoming rob new');
  await page.evaluate(() => window.call.hangUp());
  await rejected;
  await until(() => textsOf(page, '#call'), ([text]) => text.startsWith('ended rob'));
  await textIs(page, '#call', 'none');
});

test('what is no longer shown leaves no listener behind', async () => {
  const { page } = await openPair('sue', 'tom', { messages: 1 });
  await textsAre(page, '#one li', ['#1']);
  const counts = await page.evaluate(async () => {
    const pause = () => new Promise((resolve) => setTimeout(resolve, 500));
    let live = 0;
    const original = window.client.on.bind(window.client);
    window.client.on = (type, listener) => {
      live += 1;
      const stop = original(type, listener);
      return () => {
        live -= 1;
        stop();
      };
    };
    const all = { status: true, friends: true, chat: true };
    const none = { status: false, friends: false, chat: false };
    window.show(none);
    await pause();
    const seen = [];
    for (let round = 0; round < 3; round += 1) {
      live = 0;
      window.show(all);
      await pause();
      const shown = live;
      window.show(none);
      await pause();
      seen.push([shown > 0, live]);
    }
    return seen;
  });
  assert.deepEqual(counts, Array(3).fill([true, 0]));
});
