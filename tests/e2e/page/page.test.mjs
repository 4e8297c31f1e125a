/**
 * The page at `/`, in a real browser against the real server: tabs of one browser see each other's
 * presence.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { launchBrowser } from '../support/browser.mjs';
import {
  LIVE_MS,
  PHONE,
  button,
  openAs,
  openContext,
  overflow,
  personRow,
  screenshot,
  waitForStatus,
  waitForText,
} from '../support/page.mjs';
import { befriend } from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';

let server;
let browser;
let context;

before(async () => {
  server = await startServer();
  browser = await launchBrowser();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

beforeEach(async () => {
  context = await openContext(browser);
});

afterEach(async () => {
  await context.close();
});

async function openTab(address = '') {
  const tab = await context.newPage();
  await tab.goto(server.url + address);
  return tab;
}

async function joinByClick(tab, name) {
  await tab.getByLabel('Your name').fill(name);
  await button(tab, 'Join').click();
  await waitForText(tab.locator('#connection-text'), 'connected');
}

/** Waits until the element with this id, or a control of this user, has the focus. */
const waitForFocus = (tab, expected) =>
  tab.waitForFunction(
    (name) => {
      const { activeElement } = document;
      return [activeElement.id, activeElement.closest('[data-user]')?.dataset.user].includes(name);
    },
    expected,
    { timeout: LIVE_MS },
  );

test('two tabs show each other online, away, offline and online again', async () => {
  const alice = await openTab();
  await screenshot(alice, 'join');
  await joinByClick(alice, 'alice');
  await screenshot(alice, 'alone');
  await waitForText(alice.locator('#second-name'), 'bob');

  const opened = context.waitForEvent('page');
  await alice.getByRole('link', { name: 'Open a second tab as bob' }).click();
  const bob = await opened;
  await waitForStatus(personRow(bob, 'alice'), 'online');
  await waitForStatus(personRow(alice, 'bob'), 'online');

  await button(bob, 'Appear away').click();
  await waitForStatus(personRow(alice, 'bob'), 'away');
  await waitForText(bob.locator('#you-status'), 'you are away');
  await screenshot(alice, 'away');
  await button(bob, 'Appear away').click();
  await waitForStatus(personRow(alice, 'bob'), 'online');

  await button(bob, 'Leave').click();
  await waitForStatus(personRow(alice, 'bob'), /^offline · last seen (just now|\d+ sec\. ago)$/);

  await joinByClick(bob, 'bob');
  await waitForStatus(personRow(alice, 'bob'), 'online');
  await waitForStatus(personRow(bob, 'alice'), 'online');

  await alice.close();
  await waitForStatus(personRow(bob, 'alice'), /^offline/);
  const journal = await bob.locator('#journal li span').allTextContents();
  assert.deepEqual(journal, ['alice left', 'alice is here']);
  assert.deepEqual(context.pageErrors, []);
});

test('tabs opened by hand find each other without a typed name', async () => {
  const carol = await openTab();
  await joinByClick(carol, 'carol');
  const dave = await openTab();
  await dave.locator('#suggestions').getByRole('button', { name: 'dave' }).click();
  await waitForStatus(personRow(dave, 'carol'), 'online');
  await waitForStatus(personRow(carol, 'dave'), 'online');
  assert.deepEqual(context.pageErrors, []);
});

test('after joining the focus is on what comes next', async () => {
  const tab = await openTab();
  await waitForFocus(tab, 'join-name');
  await joinByClick(tab, 'kim');
  await waitForFocus(tab, 'second-tab');
  await befriend(server, 'kim', 'liam');
  await tab.reload();
  await waitForFocus(tab, 'liam');
  await button(tab, 'Leave').click();
  await waitForFocus(tab, 'join-name');
});

test('a reload joins again under the same name', async () => {
  const tab = await openTab();
  await joinByClick(tab, 'grace');
  await tab.reload();
  await waitForText(tab.locator('#connection-text'), 'connected');
  await waitForText(tab.locator('#you-name'), 'grace');
  assert.deepEqual(context.pageErrors, []);
});

test('without the server the page shows when it reconnects, and reconnects to a restarted server', async () => {
  let second = await startServer();
  const { port } = second;
  try {
    const tab = await openAs(context, second, 'heidi');
    await second.stop('SIGKILL');
    await waitForText(tab.locator('#connection-text'), /^reconnecting in \d+ s$/);
    await screenshot(tab, 'reconnecting');
    await tab.setViewportSize(PHONE);
    for (const part of ['.brand', '#connection'])
      assert.ok((await tab.locator(part).boundingBox()).height < 40, `${part} fits on one line`);
    second = await startServer({ port });
    const clicked = button(tab, 'now').click({ timeout: LIVE_MS });
    clicked.catch(() => {}); // the page may have reconnected by itself first, and then there is no button
    await waitForText(tab.locator('#connection-text'), 'connected');
  } finally {
    await second.stop();
  }
});

test('nothing overflows at the width of a phone, and every control is reached by keyboard', async () => {
  const tab = await openAs(
    context,
    server,
    'a-name-as-long-as-they-may-become',
    '&watch=ivan,another-name-as-long-as-can-be',
  );
  await tab.setViewportSize(PHONE);
  await screenshot(tab, 'long');
  assert.equal(await overflow(tab), 0);
  const reached = [];
  for (let step = 0; step < 24; step += 1) {
    await tab.keyboard.press('Tab');
    reached.push(
      await tab.evaluate(
        () => document.activeElement.getAttribute('aria-label') ?? document.activeElement.id,
      ),
    );
  }
  for (const control of ['away', 'leave', 'second-tab', 'Add ivan', 'Forget ivan', 'ask-name'])
    assert.ok(reached.includes(control), `${control} is not among ${reached}`);
  assert.deepEqual(context.pageErrors, []);
});
