/** The Socket.IO and the native example chat in a real browser, with each other. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, afterEach, test } from 'node:test';
import { launchBrowser } from '../support/browser.mjs';
import { openContext, waitForText } from '../support/page.mjs';
import { startServer } from '../support/server.mjs';
import { serveFiles } from '../support/static.mjs';

let server;
let files;
let browser;
let context;

before(async () => {
  server = await startServer({ args: ['--workers', '2'] });
  files = await serveFiles({
    '/examples/chat-socketio/node_modules/': '/tests/e2e/node_modules/',
  });
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await files?.stop();
  await server?.stop();
});
beforeEach(async () => {
  context = await openContext(browser);
});
afterEach(() => context.close());

async function open(kind, name, peer) {
  const tab = await context.newPage();
  const address = new URLSearchParams({ name, with: peer, server: server.url.slice(0, -1) });
  await tab.goto(`${files.url}examples/chat-${kind}/?${address}`);
  await waitForText(tab.locator('#state'), 'connected');
  return tab;
}

async function send(tab, text) {
  await tab.locator('#body').fill(text);
  await tab.getByRole('button', { name: 'Send' }).click();
}

const waitForMessage = (tab, text) => waitForText(tab.locator('#messages li').last(), text);

for (const [one, other] of [
  ['socketio', 'rollcall'],
  ['socketio', 'socketio'],
  ['rollcall', 'rollcall'],
])
  test(`the ${one} and the ${other} example chat with each other`, async () => {
    const [ann, bob] = [`ann-${one}`, `bob-${other}`];
    const near = await open(one, ann, bob);
    await waitForText(near.locator('#peer'), /is offline|is unknown/);
    const far = await open(other, bob, ann);
    await waitForText(near.locator('#peer'), `${bob} is online`);
    await waitForText(far.locator('#peer'), `${ann} is online`);
    await far.locator('#body').press('h');
    await waitForText(near.locator('#typing'), `${bob} is typing …`);
    await send(far, 'hello');
    await waitForMessage(near, `${bob} hello`);
    await waitForMessage(far, `${bob} hello`);
    await waitForText(near.locator('#typing'), '');
    await send(near, 'hello yourself');
    await waitForMessage(far, `${ann} hello yourself`);
    await far.close();
    await waitForText(near.locator('#peer'), `${bob} is offline`);
    const again = await open(other, bob, ann);
    await waitForMessage(again, `${ann} hello yourself`);
    assert.equal(await again.locator('#messages li').count(), 2);
    assert.deepEqual(context.pageErrors, []);
  });

for (const kind of ['socketio', 'rollcall'])
  test(`the ${kind} example shows that a message is refused`, async () => {
    const tab = await open(kind, `carl-${kind}`, `dora-${kind}`);
    await send(tab, 'x'.repeat(5000));
    await waitForText(tab.locator('#state'), /too large/);
    assert.equal(await tab.locator('#messages li').count(), 0);
    assert.deepEqual(context.pageErrors, []);
  });
