/**
 * The page at many sizes, light and dark: nothing overflows, nothing is clipped, and axe finds no
 * violation on any screen.
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { violations } from '../support/accessibility.mjs';
import { useBrowsers } from '../support/browsers.mjs';
import { makeChat } from '../support/chats.mjs';
import { befriend } from '../support/contacts.mjs';
import { appears, button, clipped, friendRow, overflow, screenshot, waitForText } from '../support/page.mjs';
import { startServer } from '../support/server.mjs';

const SIZES = [
  { width: 320, height: 568 },
  { width: 375, height: 667 },
  { width: 768, height: 1024 },
  { width: 1280, height: 800 },
  { width: 1920, height: 1080 },
];

/** A phone held sideways. */
const LOW = { width: 640, height: 400 };

const browsers = useBrowsers();
const { open } = browsers;

/** Checks the screen as it is at all sizes; `name` is that of its screenshots. */
async function check(tab, name) {
  for (const size of SIZES) {
    await tab.setViewportSize(size);
    assert.equal(await overflow(tab), 0, `${name} overflows at ${size.width} px`);
  }
  for (const colorScheme of ['light', 'dark']) {
    await tab.emulateMedia({ colorScheme });
    for (const size of [SIZES[1], SIZES[3]]) {
      await tab.setViewportSize(size);
      assert.deepEqual(await violations(tab), [], `${name}, ${colorScheme}, ${size.width} px`);
    }
  }
  await tab.emulateMedia({ colorScheme: 'light' });
  await screenshot(tab, name);
}

const checkNotClipped = async (tab, screen) => {
  await tab.setViewportSize(LOW);
  assert.deepEqual(await clipped(tab, screen), [], `${screen} at 640×400`);
};

test('the first screen says what Rollcall is, and its documents exist', async () => {
  const alice = await open('alice');
  await button(alice, 'Leave').click();
  await appears(alice.getByText('Rollcall is a server for presence, chats and calls.'));
  const links = await alice.locator('a[href^="/"]:visible').evaluateAll((all) => all.map(({ href }) => href));
  assert.ok(links.length > 5, `documents: ${links}`);
  for (const link of links) assert.equal((await fetch(link)).status, 200, link);
  await check(alice, 'join');
});

test('without --dev the page says that the server runs, without an error', async () => {
  const { publicKey } = generateKeyPairSync('ed25519');
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-page-'));
  const keys = join(directory, 'keys.pem');
  await writeFile(keys, publicKey.export({ type: 'spki', format: 'pem' }));
  const server = await startServer({ dev: false, args: ['--jwt-keys', keys] });
  try {
    const tab = await browsers.openTab(server.url);
    await appears(tab.getByText('This server runs.'));
    await appears(tab.getByText('rollcall serve --dev'));
    const links = await tab.locator('a').evaluateAll((all) => all.map(({ href }) => href));
    for (const link of links) assert.equal((await fetch(link)).status, 200, link);
    await check(tab, 'server');
  } finally {
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  }
});

test('lists, chats, groups and dialogs fit every width and have no violation', async () => {
  const long = 'a-name-as-long-as-they-may-become';
  for (const other of ['bob', 'مريم', long]) await befriend(browsers.server, 'carol', other);
  await makeChat(browsers.server, 'team', 'carol', 'bob', long);
  const [carol, bob] = await Promise.all([open('carol', { more: '&watch=dave' }), open('bob')]);
  await bob.getByLabel('Add someone by name').fill('erin');
  await carol.locator('#settings summary').click();
  await check(carol, 'list');

  await carol.locator('#groups .opener').click();
  await bob.locator('#groups .opener').click();
  for (const text of ['https://example.org/?q=rollcall', `w${'o'.repeat(200)}w`, 'مرحبا']) {
    await bob.getByLabel('Message', { exact: true }).fill(text);
    await bob.keyboard.press('Enter');
    await appears(carol.locator('.bubble', { hasText: text }));
  }
  await check(carol, 'group');
  await checkNotClipped(carol, '#chat');
  await button(carol, 'Members').click();
  await check(carol, 'members');
  await checkNotClipped(carol, '#members-dialog');
  await carol.keyboard.press('Escape');
  await button(carol, 'Close the chat').click();
  await button(carol, 'New group').click();
  await check(carol, 'new-group');
  await checkNotClipped(carol, '#group-dialog');
  await carol.keyboard.press('Escape');
  await button(carol, 'More about bob').click();
  await check(carol, 'menu');
  await carol.getByRole('menuitem', { name: 'Block' }).click();
  await check(carol, 'confirm');
  await button(carol, 'Block').click();
  await appears(carol.locator('#toast'));
  await check(carol, 'blocked');
});

test('a call fits every width, has no violation, and clips nothing', async () => {
  await befriend(browsers.server, 'frank', 'grace');
  const [frank, grace] = await Promise.all([open('frank'), open('grace')]);
  await friendRow(grace, 'frank').locator('.opener').click();
  await friendRow(frank, 'grace').getByRole('button', { name: 'Call grace' }).click();
  await waitForText(grace.locator('#call-text'), 'is calling you');
  await check(grace, 'incoming');
  for (const size of SIZES) {
    await grace.setViewportSize(size);
    const [decline, accept] = await Promise.all(
      ['Decline', 'Accept'].map((name) => button(grace, name).boundingBox()),
    );
    assert.equal(decline.y, accept.y, `Decline is beside Accept at ${size.width} px`);
  }
  await checkNotClipped(grace, '#call');
  await button(grace, 'Accept').click();
  await appears(grace.locator('#call[data-state=active][data-media=connected]'));
  await check(grace, 'call');
  await checkNotClipped(grace, '#call');
  await checkNotClipped(grace, '#chat');
});
