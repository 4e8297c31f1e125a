/** Contacts on the page: contact requests, privacy, removal and blocks, with a browser context for each user. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useBrowsers } from '../support/browsers.mjs';
import {
  appears,
  button,
  disappears,
  friendRow,
  personRow,
  screenshot,
  waitForStatus,
  waitForText,
} from '../support/page.mjs';

const browsers = useBrowsers();
const { open, openFriends } = browsers;

async function choose(tab, id, value) {
  const saved = tab.waitForResponse((response) => response.request().method() === 'PATCH');
  await tab.locator(id).selectOption(value);
  await saved;
}

test('a contact request is accepted, and both users see each other’s presence', async () => {
  const [alice, bob] = await Promise.all([open('alice'), open('bob')]);
  await alice.getByLabel('Add someone by name').fill('bob');
  await button(alice, 'Ask').click();
  await appears(button(alice, 'Withdraw the request to bob'));
  await appears(button(bob, 'Decline alice'));
  await screenshot(bob, 'request');
  await button(bob, 'Accept alice').click();
  await waitForStatus(friendRow(alice, 'bob'), 'online');
  await waitForStatus(friendRow(bob, 'alice'), 'online');
  await waitForText(alice.locator('#friends-count'), '1 of 1 here');
  assert.ok(await alice.locator('#others').isHidden(), 'a contact is not suggested');

  await button(bob, 'Appear away').click();
  await waitForStatus(friendRow(alice, 'bob'), 'away');
  await button(bob, 'Leave').click();
  await waitForStatus(friendRow(alice, 'bob'), /^offline · last seen/);
  await alice.reload();
  await waitForStatus(friendRow(alice, 'bob'), /^offline · last seen/);
});

test('a contact request can be withdrawn or declined', async () => {
  const [carol, dave] = await Promise.all([open('carol', { more: '&watch=dave' }), open('dave')]);
  await button(carol, 'Add dave').click();
  await appears(button(dave, 'Accept carol'));
  await button(carol, 'Withdraw the request to dave').click();
  await disappears(personRow(carol, 'dave'));
  await dave.reload();
  await waitForText(dave.locator('#connection-text'), 'connected');
  await disappears(button(dave, 'Accept carol'));

  await carol.getByLabel('Add someone by name').fill('dave');
  await button(carol, 'Ask').click();
  await button(dave, 'Decline carol').click();
  await disappears(dave.locator('#requests-section'));
  await appears(dave.locator('#friends-empty'));
});

test('a user who hides is hidden at once, also after a reload, until the setting changes back', async () => {
  const [grace, heidi] = await openFriends('grace', 'heidi');
  await grace.locator('#settings summary').click();
  await choose(grace, '#see-presence', 'nobody');
  await waitForStatus(friendRow(heidi, 'grace'), /hidden/);
  await grace.reload();
  await waitForStatus(friendRow(grace, 'heidi'), 'online');
  assert.equal(await grace.locator('#see-presence').inputValue(), 'nobody');
  await waitForStatus(friendRow(heidi, 'grace'), /hidden/);
  await grace.locator('#settings summary').click();
  await choose(grace, '#see-presence', 'contacts_only');
  await choose(grace, '#see-last-seen', 'contacts_only');
  await waitForStatus(friendRow(heidi, 'grace'), 'online');
  await grace.reload();
  await waitForStatus(friendRow(grace, 'heidi'), 'online');
  assert.equal(await grace.locator('#see-presence').inputValue(), 'contacts_only');
  await screenshot(grace, 'privacy');
});

test('the name that a user chooses is shown to contacts instead of the id', async () => {
  const [olga, pete] = await openFriends('olga', 'pete');
  await olga.locator('#settings summary').click();
  const saved = olga.waitForResponse((response) => response.request().method() === 'PATCH');
  await olga.getByLabel('My name').fill('Olga Ω');
  await olga.keyboard.press('Tab');
  await saved;
  await waitForText(olga.locator('#you-name'), 'Olga Ω');
  await pete.reload();
  await waitForText(friendRow(pete, 'olga').locator('.person-name'), 'Olga Ω');
  await friendRow(pete, 'olga').locator('.opener').click();
  await waitForText(pete.locator('#chat-name'), 'Olga Ω');
});

test('a contact cannot be added again, and is removed for both users by the menu', async () => {
  const [ivan, judy] = await openFriends('ivan', 'judy');
  for (const [name, answer] of [
    ['ivan', 'That is you.'],
    ['judy', 'judy is a contact already.'],
  ]) {
    await ivan.getByLabel('Add someone by name').fill(name);
    await button(ivan, 'Ask').click();
    await waitForText(ivan.locator('#people-problem'), answer);
  }
  await button(ivan, 'More about judy').click();
  await ivan.keyboard.press('ArrowDown');
  await ivan.keyboard.press('Escape');
  await disappears(ivan.getByRole('menu'));
  await button(ivan, 'More about judy').click();
  await screenshot(ivan, 'menu');
  await ivan.getByRole('menuitem', { name: 'Remove' }).click();
  await button(ivan, 'Cancel').click();
  await appears(friendRow(ivan, 'judy'));
  await button(ivan, 'More about judy').click();
  await ivan.getByRole('menuitem', { name: 'Remove' }).click();
  await button(ivan, 'Remove').click();
  await disappears(friendRow(ivan, 'judy'));
  await disappears(friendRow(judy, 'ivan'));
});

async function block(tab, name) {
  await button(tab, `More about ${name}`).click();
  await tab.getByRole('menuitem', { name: 'Block' }).click();
}

test('a block asks first, hides both users, and can be undone', async () => {
  const [kim, liam] = await openFriends('kim', 'liam');
  await friendRow(liam, 'kim').locator('.opener').click();
  await block(kim, 'liam');
  await kim.keyboard.press('Escape');
  await disappears(kim.locator('#confirm'));
  await appears(friendRow(kim, 'liam'));
  await block(kim, 'liam');
  await button(kim, 'Block').click();
  await disappears(friendRow(kim, 'liam'));
  await disappears(friendRow(liam, 'kim'));
  await disappears(liam.locator('#chat'));
  await button(kim, 'Undo').click();
  await disappears(kim.locator('#toast'));
  await button(kim, 'Add liam').click();
  await button(liam, 'Accept kim').click();
  await waitForStatus(friendRow(kim, 'liam'), 'online');
});

test('a blocked user is hidden, and can be unblocked in the settings', async () => {
  const [mia, noah] = await openFriends('mia', 'noah');
  await block(mia, 'noah');
  await button(mia, 'Block').click();
  await disappears(friendRow(noah, 'mia'));
  await noah.getByLabel('Add someone by name').fill('mia');
  await button(noah, 'Ask').click();
  await appears(button(noah, 'Withdraw the request to mia'));
  await waitForStatus(personRow(noah, 'mia'), /hidden/);
  await mia.reload();
  await waitForText(mia.locator('#connection-text'), 'connected');
  assert.ok(await mia.locator('#requests-section').isHidden());
  await mia.locator('#settings summary').click();
  await button(mia, 'Unblock noah').click();
  await disappears(mia.locator('#blocked-section'));
});
