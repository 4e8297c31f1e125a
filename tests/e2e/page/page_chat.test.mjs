/** Chats on the page: typing, messages, unread counts, reloads and reconnects. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { useBrowsers } from '../support/browsers.mjs';
import { directChat, postMessage } from '../support/chats.mjs';
import {
  PHONE,
  appears,
  button,
  disappears,
  friendRow,
  overflow,
  screenshot,
  waitForStatus,
  waitForText,
} from '../support/page.mjs';
import { befriend } from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';

/** The burst is large enough to fill a history at once. */
const browsers = useBrowsers({ settings: { 'gateway.backpressure.inbound.rate_limit_burst': 100 } });
const { openFriends } = browsers;

const openChat = (tab, name) => friendRow(tab, name).locator('.opener').click();

const unread = (tab, name) => friendRow(tab, name).locator('.unread');

async function write(tab, text) {
  await tab.getByLabel('Message', { exact: true }).fill(text);
  await tab.keyboard.press('Enter');
}

/** The note of a message that the server has stored. */
const STORED = /^\d\d:\d\d · (sent|delivered|read)$/;

const message = (tab, text) => tab.locator('.message', { hasText: text });

const bodies = (tab) => tab.locator('.bubble').allTextContents();

test('two users exchange messages and see each other typing', async () => {
  const [alice, bob] = await openFriends('alice', 'bob');
  await openChat(alice, 'bob');
  await write(alice, 'good morning');
  await waitForText(message(alice, 'good morning').locator('.message-note'), STORED);
  await waitForText(unread(bob, 'alice'), '1 unread');

  await openChat(bob, 'alice');
  await appears(message(bob, 'good morning'));
  await disappears(unread(bob, 'alice'));
  await bob.getByLabel('Message', { exact: true }).pressSequentially('hel');
  await waitForText(alice.locator('#typing'), 'bob is typing');
  await screenshot(alice, 'typing');
  await write(bob, 'hello alice, how are you on this fine day?');
  await waitForText(alice.locator('#typing'), '');
  await appears(message(alice, 'hello alice'));
  await write(alice, 'very well');
  await appears(message(bob, 'very well'));
  assert.deepEqual(await bodies(bob), await bodies(alice));
  await screenshot(bob, 'chat');

  await bob.getByLabel('Message', { exact: true }).pressSequentially('never sent');
  await waitForText(alice.locator('#typing'), 'bob is typing');
  await bob.getByLabel('Message', { exact: true }).fill('');
  await waitForText(alice.locator('#typing'), '');
});

test('a message written before the chat is created is sent afterwards', async () => {
  const [kim] = await openFriends('kim', 'liam');
  await kim.route('**/v1/chats', async (route) => {
    if (route.request().method() === 'POST')
      await new Promise((resolve) => setTimeout(resolve, 500));
    await route.continue();
  });
  await openChat(kim, 'liam');
  await write(kim, 'at once');
  await waitForText(message(kim, 'at once').locator('.message-note'), 'sending …');
  await waitForText(message(kim, 'at once').locator('.message-note'), STORED);
});

test('a reload keeps the chat open and complete, and read messages stay read', async () => {
  const [carol, dave] = await openFriends('carol', 'dave');
  await openChat(carol, 'dave');
  for (const text of ['one', 'two', 'three']) await write(carol, text);
  await openChat(dave, 'carol');
  await appears(message(dave, 'three'));
  await write(dave, 'four');
  await appears(message(carol, 'four'));
  await Promise.all([carol.reload(), dave.reload()]);
  for (const tab of [carol, dave]) {
    await appears(message(tab, 'four'));
    assert.deepEqual(await bodies(tab), ['one', 'two', 'three', 'four']);
  }
  await button(dave, 'Close the chat').click();
  await waitForStatus(friendRow(dave, 'carol'), 'online');
  assert.ok(await unread(dave, 'carol').isHidden());
  await write(carol, 'five');
  await write(carol, 'six');
  await waitForText(unread(dave, 'carol'), '2 unread');
  await dave.reload();
  await waitForText(unread(dave, 'carol'), '2 unread');
  await openChat(dave, 'carol');
  await disappears(unread(dave, 'carol'));
  await dave.reload();
  await appears(message(dave, 'six'));
  assert.ok(await unread(dave, 'carol').isHidden());
  await button(carol, 'Close the chat').click();
  await carol.reload();
  await waitForStatus(friendRow(carol, 'dave'), 'online');
  assert.ok(await unread(carol, 'dave').isHidden(), 'one’s own messages are not unread');
  assert.match(await carol.title(), /^carol/);
});

test('earlier messages are fetched on demand', async () => {
  const [erin, frank] = await openFriends('erin', 'frank');
  await openChat(erin, 'frank');
  await write(erin, 'number 1');
  await waitForText(message(erin, 'number 1').locator('.message-note'), STORED);
  const chatId = await directChat(browsers.server, 'erin', 'frank');
  for (let number = 2; number <= 52; number += 1) {
    const body = { client_message_id: `m${number}`, body: `number ${number}` };
    const sent = await postMessage(browsers.server, 'erin', chatId, body);
    assert.equal(sent.status, 201);
  }
  await openChat(frank, 'erin');
  await appears(message(frank, 'number 52').last());
  const before = await bodies(frank);
  assert.equal(before.length, 50);
  await button(frank, 'Earlier messages').click();
  await disappears(button(frank, 'Earlier messages'));
  assert.deepEqual(
    await bodies(frank),
    Array.from({ length: 52 }, (_, index) => `number ${index + 1}`),
  );
});

/** Replaces the first acknowledgement by an error, although the server has stored the message. */
function refuseFirstMessage(context) {
  let refused = false;
  return context.routeWebSocket(/\/v1\/ws/, (page) => {
    const server = page.connectToServer();
    page.onMessage((text) => server.send(text));
    server.onMessage((text) => {
      const { type, id } = JSON.parse(text);
      const refuses = type === 'message_ack' && !refused;
      refused ||= refuses;
      const refusal = { type: 'error', id, code: 'INVALID_MESSAGE', message: 'no' };
      page.send(refuses ? JSON.stringify(refusal) : text);
    });
  });
}

test('a retried message is stored once', async () => {
  await befriend(browsers.server, 'quinn', 'rosa');
  const quinn = await browsers.open('quinn', { prepare: refuseFirstMessage });
  const rosa = await browsers.open('rosa');
  await openChat(quinn, 'rosa');
  await openChat(rosa, 'quinn');
  await write(quinn, 'once');
  await waitForText(message(quinn, 'once').locator('.message-note'), /^not sent/);
  await button(quinn, 'Try again').click();
  await waitForText(message(quinn, 'once').locator('.message-note'), STORED);
  await write(quinn, 'and for all');
  await appears(message(rosa, 'and for all'));
  assert.deepEqual(await bodies(rosa), ['once', 'and for all']);
});

test('a message written while disconnected is sent after the reconnect', async () => {
  browsers.allowPageErrors(); // the server is stopped meanwhile
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-page-'));
  let second = await startServer({ dataDir });
  try {
    const [grace, heidi] = await openFriends('grace', 'heidi', { at: second });
    await openChat(grace, 'heidi');
    await openChat(heidi, 'grace');
    await write(grace, 'before');
    await appears(message(heidi, 'before'));
    await second.stop('SIGKILL');
    await waitForText(grace.locator('#connection-text'), /^reconnecting/);
    await write(grace, 'meanwhile');
    await waitForText(message(grace, 'meanwhile').locator('.message-note'), 'sending …');
    await screenshot(grace, 'sending');
    second = await startServer({ dataDir, port: second.port });
    await Promise.all([grace, heidi].map((tab) => button(tab, 'now').click().catch(() => {})));
    await appears(message(heidi, 'meanwhile'));
    await waitForText(message(grace, 'meanwhile').locator('.message-note'), STORED);
    assert.deepEqual(await bodies(heidi), ['before', 'meanwhile']);
  } finally {
    await second.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
});

test('a message is sent, delivered and read, as far as the reader shows it', async () => {
  const [mara, nils] = await openFriends('mara', 'nils');
  await openChat(mara, 'nils');
  const note = (text) => message(mara, text).locator('.message-note');
  await write(mara, 'one');
  await waitForText(note('one'), /delivered$/);
  await openChat(nils, 'mara');
  await waitForText(note('one'), /read$/);
  await mara.reload();
  await waitForText(note('one'), /read$/);

  await nils.locator('#settings summary').click();
  await nils.getByLabel('Others see what I have read').uncheck();
  await write(mara, 'two');
  await appears(message(nils, 'two'));
  await nils.reload();
  assert.equal(await nils.getByLabel('Others see what I have read').isChecked(), false);
  await waitForText(note('two'), /delivered$/);
  await button(nils, 'Leave').click();
  await waitForStatus(friendRow(mara, 'nils'), /^offline/);
  await write(mara, 'three');
  await waitForText(note('three'), /sent$/);
  await waitForText(note('two'), /delivered$/);
});

test('somebody who is not a contact can write, and the answer goes back', async () => {
  const pablo = await browsers.open('pablo');
  const chatId = await directChat(browsers.server, 'quentin', 'pablo');
  await postMessage(browsers.server, 'quentin', chatId, { client_message_id: 'm1', body: 'hi' });
  const row = pablo.locator('#other-chats [data-user=quentin]');
  await waitForText(row.locator('.unread'), '1 unread');
  await row.locator('.opener').click();
  await appears(message(pablo, 'hi'));
  assert.ok(await pablo.locator('#chat-call').isHidden(), 'only contacts can be called');
  await write(pablo, 'who are you?');
  await waitForText(message(pablo, 'who are you?').locator('.message-note'), /sent$/);
});

test('web addresses in a message are links, and other text stays text', async () => {
  const [mia, noah] = await openFriends('mia', 'noah');
  await openChat(mia, 'noah');
  await openChat(noah, 'mia');
  const text = 'see (https://example.org/a_(b)?c=1), http://example.net. Not javascript:alert(1), <b>not</b> bold';
  await write(mia, text);
  await appears(message(noah, 'see'));
  assert.deepEqual(await bodies(noah), [text]);
  const links = await noah
    .locator('.bubble a')
    .evaluateAll((all) => all.map(({ href, rel, target }) => ({ href, rel, target })));
  const safely = { rel: 'noopener noreferrer', target: '_blank' };
  assert.deepEqual(links, [
    { href: 'https://example.org/a_(b)?c=1', ...safely },
    { href: 'http://example.net/', ...safely },
  ]);
  assert.equal(await noah.locator('.bubble b').count(), 0);
});

test('text and names choose their own direction', async () => {
  const [omar, pia] = await openFriends('عمر', 'pia');
  await openChat(omar, 'pia');
  await openChat(pia, 'عمر');
  await write(omar, 'صباح الخير');
  await appears(message(pia, 'صباح'));
  const directions = (selector) =>
    pia.locator(selector).evaluateAll((all) => all.map((element) => getComputedStyle(element).direction));
  for (const selector of ['.bubble', '#chat-name', '#friends .person-name'])
    assert.deepEqual(await directions(selector), ['rtl'], selector);
});

test('Escape closes the chat, the focus returns to its row, and the draft is kept', async () => {
  const [sam, tia] = await openFriends('sam', 'tia');
  await openChat(sam, 'tia');
  await sam.getByLabel('Message', { exact: true }).fill('half a sen');
  await sam.keyboard.press('Escape');
  await disappears(sam.locator('#chat'));
  await waitForText(sam.locator(':focus .person-name'), 'tia');
  await sam.keyboard.press('Enter');
  assert.equal(await sam.getByLabel('Message', { exact: true }).inputValue(), 'half a sen');
  await openChat(tia, 'sam');
});

test('on a phone the chat fills the page, and closing it shows the list', async () => {
  const [ivan] = await openFriends('ivan', 'judy');
  await ivan.setViewportSize(PHONE);
  await openChat(ivan, 'judy');
  await write(ivan, `a-word-that-is-far-too-long-to-fit-${'o'.repeat(120)}`);
  await appears(ivan.locator('.message'));
  assert.equal(await overflow(ivan), 0);
  assert.ok(await ivan.locator('#friends').isHidden());
  const send = await button(ivan, 'Send').boundingBox();
  assert.ok(send.y + send.height <= PHONE.height, 'the send button is in view');
  await button(ivan, 'Close the chat').click();
  await appears(friendRow(ivan, 'judy'));
});
