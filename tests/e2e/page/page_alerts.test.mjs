/** How the page draws attention: the title, the ring, notifications. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useBrowsers } from '../support/browsers.mjs';
import { LIVE_MS, appears, button, disappears, friendRow, waitForText } from '../support/page.mjs';
import { befriend } from '../support/contacts.mjs';

const browsers = useBrowsers();

/** Records the notifications and tones of a page; `hidden` makes the page believe that it is hidden. */
function record(context) {
  return context.addInitScript(() => {
    globalThis.recorded = { notifications: [], tones: 0, hidden: false };
    globalThis.Notification = class {
      static permission = 'granted';
      static requestPermission = async () => 'granted';
      constructor(title, { body }) {
        this.title = title;
        recorded.notifications.push({ title, body, shown: this });
      }
      close() {}
    };
    const start = OscillatorNode.prototype.start;
    OscillatorNode.prototype.start = function count(...when) {
      recorded.tones += 1;
      return start.apply(this, when);
    };
    Object.defineProperty(Document.prototype, 'visibilityState', {
      get: () => (recorded.hidden ? 'hidden' : 'visible'),
    });
  });
}

const hide = (tab, hidden) =>
  tab.evaluate((value) => {
    recorded.hidden = value;
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);

const notifications = (tab) =>
  tab.evaluate(() => recorded.notifications.map(({ title, body }) => `${title}: ${body}`));

const tones = (tab) => tab.evaluate(() => recorded.tones);

async function openPair(one, other) {
  await befriend(browsers.server, one, other);
  return Promise.all([browsers.open(one), browsers.open(other, { prepare: record })]);
}

async function write(tab, text) {
  await tab.getByLabel('Message', { exact: true }).fill(text);
  await tab.keyboard.press('Enter');
}

test('unread messages are counted in the title, and notified where the user allows it', async () => {
  const [alice, bob] = await openPair('alice', 'bob');
  await friendRow(alice, 'bob').locator('.opener').click();
  await hide(bob, true);
  await write(alice, 'one');
  await bob.waitForFunction(() => document.title.startsWith('(1) bob'), null, { timeout: LIVE_MS });
  assert.deepEqual(await notifications(bob), []);

  await bob.locator('#settings summary').click();
  await bob.getByLabel('Notify me while I look elsewhere').check();
  await write(alice, 'two');
  await bob.waitForFunction(() => recorded.notifications.length === 1, null, { timeout: LIVE_MS });
  assert.deepEqual(await notifications(bob), ['alice: two']);
  await hide(bob, false);
  await write(alice, 'three');
  await bob.waitForFunction(() => document.title.startsWith('(3) bob'), null, { timeout: LIVE_MS });
  assert.equal((await notifications(bob)).length, 1, 'a visible page does not notify');

  await bob.evaluate(() => recorded.notifications[0].shown.onclick());
  await appears(bob.locator('.bubble', { hasText: 'three' }));
  await bob.waitForFunction(() => document.title.startsWith('bob'), null, { timeout: LIVE_MS });
});

test('a call rings until it is answered, unless the user has turned the ring off', async () => {
  const [carol, dave] = await openPair('carol', 'dave');
  const call = () => friendRow(carol, 'dave').locator('[data-action=call]').click();
  await call();
  await appears(button(dave, 'Accept'));
  assert.match(await dave.title(), /^carol is calling · dave/);
  await dave.waitForFunction(() => recorded.tones >= 4, null, { timeout: LIVE_MS });
  await button(dave, 'Decline').click();
  const rung = await tones(dave);
  await disappears(carol.locator('#call'));
  assert.equal(await tones(dave), rung, 'the ring has stopped');

  await dave.locator('#settings summary').click();
  await dave.getByLabel('Ring when somebody calls').uncheck();
  await call();
  await appears(button(dave, 'Accept'));
  await dave.reload();
  await appears(button(dave, 'Accept'));
  await waitForText(dave.locator('#call-text'), 'is calling you');
  assert.equal(await tones(dave), 0, 'the choice outlives a reload');
});
