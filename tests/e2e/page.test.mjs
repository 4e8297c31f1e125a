/**
 * The page at `/`, in a real browser against the real server: two tabs of one browser that know
 * nothing of each other but what the page tells them.
 */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { launchBrowser } from './support/browser.mjs';
import { startServer } from './support/server.mjs';

const LIVE_MS = 5000;
const PHONE = { width: 360, height: 740 };
const DESK = { width: 1100, height: 800 };

/** Set SCREENSHOTS to a directory to see what the tests see. */
const SCREENSHOTS = process.env.SCREENSHOTS;

let server;
let browser;
let context;
let complaints;

before(async () => {
  server = await startServer();
  browser = await launchBrowser();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

beforeEach(async () => {
  complaints = [];
  context = await browser.newContext({ viewport: DESK });
  context.on('weberror', (error) => complaints.push(String(error.error())));
  context.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
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
  await tab.getByRole('button', { name: 'Join' }).click();
  await sees(tab.locator('#connection-text'), 'connected');
}

const row = (tab, name) => tab.locator(`#people [data-user="${name}"]`);

/** Waits until an element reads as expected, and says what it read if it never does. */
async function sees(locator, expected) {
  const pattern = expected instanceof RegExp ? expected : new RegExp(`^${expected}$`);
  const deadlineMs = Date.now() + LIVE_MS;
  let text = '';
  while (Date.now() < deadlineMs) {
    text = (await locator.textContent({ timeout: LIVE_MS })).trim();
    if (pattern.test(text)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.match(text, pattern);
}

const seesStatus = (tab, name, expected) =>
  sees(row(tab, name).locator('.person-status'), expected);

async function screenshot(tab, name) {
  if (SCREENSHOTS === undefined) return;
  await mkdir(SCREENSHOTS, { recursive: true });
  for (const [scheme, viewport, label] of [
    ['light', PHONE, 'phone'],
    ['dark', PHONE, 'phone-dark'],
    ['light', DESK, 'desk'],
    ['dark', DESK, 'desk-dark'],
  ]) {
    await tab.emulateMedia({ colorScheme: scheme });
    await tab.setViewportSize(viewport);
    await tab.screenshot({ path: join(SCREENSHOTS, `${name}-${label}.png`), fullPage: true });
  }
}

test('two tabs watch each other come online, go away, come back, leave and return', async () => {
  const alice = await openTab();
  await screenshot(alice, 'join');
  await joinByClick(alice, 'alice');
  await screenshot(alice, 'alone');
  await sees(alice.locator('#second-name'), 'bob');

  const opened = context.waitForEvent('page');
  await alice.getByRole('link', { name: 'Open a second tab as bob' }).click();
  const bob = await opened;
  await seesStatus(bob, 'alice', 'online');
  await seesStatus(alice, 'bob', 'online');
  await sees(alice.locator('#people-count'), '1 of 1 here');

  await bob.getByRole('button', { name: 'Appear away' }).click();
  await seesStatus(alice, 'bob', 'away');
  await sees(bob.locator('#you-status'), 'others see you away');
  await screenshot(alice, 'away');
  await bob.getByRole('button', { name: 'Appear away' }).click();
  await seesStatus(alice, 'bob', 'online');

  await bob.getByRole('button', { name: 'Leave' }).click();
  await seesStatus(alice, 'bob', /^offline · last seen (just now|\d+ sec\. ago)$/);
  await screenshot(alice, 'left');

  await joinByClick(bob, 'bob');
  await seesStatus(alice, 'bob', 'online');
  await seesStatus(bob, 'alice', 'online');

  await alice.close();
  await seesStatus(bob, 'alice', /^offline/);
  const told = await bob.locator('#journal li span').allTextContents();
  assert.deepEqual(told, ['alice left', 'alice is here']);
  assert.deepEqual(complaints, []);
});

test('tabs that were opened by hand find each other without anybody typing a name', async () => {
  const carol = await openTab();
  await joinByClick(carol, 'carol');
  const dave = await openTab();
  await dave.locator('#suggestions').getByRole('button', { name: 'dave' }).click();
  await seesStatus(dave, 'carol', 'online');
  await seesStatus(carol, 'dave', 'online');
  assert.deepEqual(complaints, []);
});

test('someone in another browser is watched by name, and can be forgotten', async () => {
  const erin = await openTab('?name=erin');
  await sees(erin.locator('#connection-text'), 'connected');
  const elsewhere = await browser.newContext();
  try {
    await erin.getByLabel('Watch someone').fill('frank');
    await erin.getByRole('button', { name: 'Watch', exact: true }).click();
    await seesStatus(erin, 'frank', /hidden|offline/);
    const frank = await elsewhere.newPage();
    await frank.goto(`${server.url}?name=frank&watch=erin`);
    await seesStatus(frank, 'erin', 'online');
    await seesStatus(erin, 'frank', 'online');
    await erin.getByRole('button', { name: 'Stop watching frank' }).click();
    await row(erin, 'frank').waitFor({ state: 'detached' });
    assert.ok(await erin.locator('#people-empty').isVisible());
  } finally {
    await elsewhere.close();
  }
  assert.deepEqual(complaints, []);
});

test('a reload joins again under the same name', async () => {
  const tab = await openTab();
  await joinByClick(tab, 'grace');
  await tab.reload();
  await sees(tab.locator('#connection-text'), 'connected');
  await sees(tab.locator('#you-name'), 'grace');
  assert.deepEqual(complaints, []);
});

test('when the server goes the page says when it tries again, and is back when the server is', async () => {
  let second = await startServer();
  const { port } = second;
  try {
    const tab = await context.newPage();
    await tab.goto(`${second.url}?name=heidi`);
    await sees(tab.locator('#connection-text'), 'connected');
    await second.stop('SIGKILL');
    await sees(tab.locator('#connection-text'), /^reconnecting in \d+ s$/);
    await screenshot(tab, 'reconnecting');
    await tab.setViewportSize(PHONE);
    for (const part of ['.brand', '#connection'])
      assert.ok((await tab.locator(part).boundingBox()).height < 40, `${part} breaks`);
    second = await startServer({ port });
    await tab.getByRole('button', { name: 'now' }).click({ timeout: LIVE_MS });
    await sees(tab.locator('#connection-text'), 'connected');
  } finally {
    await second.stop();
  }
});

test('nothing is cut off at the width of a phone, and everything is reached by keyboard', async () => {
  const tab = await openTab(
    '?name=a-name-as-long-as-they-may-become&watch=ivan,another-name-as-long-as-can-be',
  );
  await tab.setViewportSize(PHONE);
  await sees(tab.locator('#connection-text'), 'connected');
  await screenshot(tab, 'long');
  await tab.setViewportSize(PHONE);
  const overflow = await tab.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  assert.equal(overflow, 0);
  const reached = [];
  for (let step = 0; step < 8; step += 1) {
    await tab.keyboard.press('Tab');
    reached.push(
      await tab.evaluate(
        () => document.activeElement.getAttribute('aria-label') ?? document.activeElement.id,
      ),
    );
  }
  for (const control of ['away', 'leave', 'second-tab', 'Stop watching ivan', 'watch-name'])
    assert.ok(reached.includes(control), control);
  assert.deepEqual(complaints, []);
});
