/** The list of messages: what stays in view, the line of each day, and the button for new messages. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useBrowsers } from '../support/browsers.mjs';
import { appears, button, disappears, friendRow, screenshot, waitForText } from '../support/page.mjs';

const SIZES = [
  { width: 320, height: 568 },
  { width: 375, height: 667 },
  { width: 768, height: 1024 },
  { width: 1280, height: 800 },
];

const browsers = useBrowsers({
  settings: { 'gateway.backpressure.inbound.rate_limit_burst': 100, 'call.reconnect_grace_seconds': 15 },
});
const { openFriends } = browsers;

const openChat = (tab, name) => friendRow(tab, name).locator('.opener').click();

async function write(tab, text) {
  await tab.getByLabel('Message', { exact: true }).fill(text);
  await tab.keyboard.press('Enter');
}

/** Fills the chat of both with more messages than a window shows. */
async function fill(writer, reader) {
  for (let number = 1; number <= 30; number += 1) await write(writer, `line ${number}`);
  await appears(reader.locator('.bubble', { hasText: /^line 30$/ }));
}

/** Waits until the newest message is inside the list's box. */
const waitForNewest = (tab) =>
  tab.waitForFunction(() => {
    const box = document.getElementById('messages').getBoundingClientRect();
    const last = document.querySelector('.message:last-child .bubble').getBoundingClientRect();
    return last.top >= box.top && last.bottom <= box.bottom + 1 && box.bottom <= innerHeight;
  });

test('the newest message stays in view when the call bar opens and when the window shrinks', async () => {
  const [alice, bob] = await openFriends('alice', 'bob');
  await Promise.all([openChat(alice, 'bob'), openChat(bob, 'alice')]);
  await fill(alice, bob);
  await bob.locator('#chat-call').click();
  await button(alice, 'Accept').click();
  await appears(bob.locator('#call[data-state=active]'));
  for (const size of SIZES) {
    await bob.setViewportSize(size);
    await waitForNewest(bob);
    // The keyboard of a phone takes half of the window.
    await bob.setViewportSize({ ...size, height: Math.floor(size.height / 2) });
    await waitForNewest(bob);
  }
  await bob.setViewportSize(SIZES[1]);
  await button(bob, 'Hang up').click();
  await disappears(bob.locator('#call'));
  await waitForNewest(bob);
  await write(alice, 'line 31');
  await appears(bob.locator('.bubble', { hasText: 'line 31' }));
  await waitForNewest(bob);
});

test('a user who has scrolled up keeps the place, and a button leads to the new messages', async () => {
  const [carol, dave] = await openFriends('carol', 'dave');
  await Promise.all([openChat(carol, 'dave'), openChat(dave, 'carol')]);
  await fill(carol, dave);
  const messages = dave.locator('#messages');
  await messages.evaluate((box) => box.scrollTo(0, 100));
  await disappears(dave.locator('#new-messages'));
  await write(carol, 'are you there?');
  await waitForText(dave.locator('#new-messages'), '1 new message');
  await write(carol, 'hello?');
  await waitForText(dave.locator('#new-messages'), '2 new messages');
  await screenshot(dave, 'new-messages');
  assert.equal(await messages.evaluate(({ scrollTop }) => scrollTop), 100);
  await waitForText(friendRow(dave, 'carol').locator('.unread'), '2 unread');
  assert.match(await dave.title(), /^\(2\) dave/);
  await button(dave, '2 new messages').click();
  await waitForNewest(dave);
  await disappears(dave.locator('#new-messages'));
  await disappears(friendRow(dave, 'carol').locator('.unread'));
  assert.match(await dave.title(), /^dave/);
});

/** Moves the messages of the history whose text names a day to that day. */
function moveMessages(context) {
  const daysAgo = { yesterday: 1, 'long ago': 800 };
  return context.route(/\/v1\/chats\/[^/]+\/messages/, async (route) => {
    const response = await route.fetch();
    const page = await response.json();
    for (const message of page.messages) {
      const days = daysAgo[message.body];
      if (days) message.sent_at = new Date(Date.now() - days * 86400000).toISOString();
    }
    await route.fulfill({ response, json: page });
  });
}

test('a line for each day stands between the messages', async () => {
  const [erin] = await openFriends('erin', 'frank');
  await openChat(erin, 'frank');
  for (const text of ['long ago', 'yesterday', 'now', 'and now']) {
    await write(erin, text);
    await waitForText(erin.locator('.message').last().locator('.message-note'), /sent|delivered/);
  }
  const frank = await browsers.open('frank', { prepare: moveMessages, more: '&chat=erin' });
  await appears(frank.locator('.bubble', { hasText: 'and now' }));
  const items = await frank.locator('#message-items > li').evaluateAll((all) =>
    all.map((item) => (item.className === 'day' ? item : item.querySelector('.bubble')).textContent),
  );
  assert.match(items[0], /^\w+day, .*\d{4}$/);
  assert.deepEqual(items.slice(1), ['long ago', 'Yesterday', 'yesterday', 'Today', 'now', 'and now']);
});
