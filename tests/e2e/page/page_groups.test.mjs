/** Groups on the page: created here or by others, members, leaving. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useBrowsers } from '../support/browsers.mjs';
import { makeChat, postMessage } from '../support/chats.mjs';
import { befriend } from '../support/contacts.mjs';
import { appears, button, disappears, waitForText } from '../support/page.mjs';

const browsers = useBrowsers();
const { open } = browsers;

const groupRow = (tab, name) => tab.locator(`#groups [data-user="${name}"]`);

async function write(tab, text) {
  await tab.getByLabel('Message', { exact: true }).fill(text);
  await tab.keyboard.press('Enter');
}

test('a group is created from contacts and names, and its members write to each other', async () => {
  await befriend(browsers.server, 'alice', 'bob');
  const [alice, bob, carol] = await Promise.all(['alice', 'bob', 'carol'].map((name) => open(name)));
  await button(alice, 'New group').click();
  await alice.getByLabel('Name of the group').fill('lunch');
  await alice.getByLabel('bob', { exact: true }).check();
  await alice.getByLabel('Others, with commas between').fill('carol, ');
  await button(alice, 'Create').click();
  await waitForText(alice.locator('#chat-status'), '3 members · 3 here');
  await write(alice, 'who is hungry?');
  for (const tab of [bob, carol]) {
    await waitForText(groupRow(tab, 'lunch').locator('.unread'), '1 unread');
    await groupRow(tab, 'lunch').locator('.opener').click();
    await appears(tab.locator('.bubble', { hasText: 'who is hungry?' }));
    await waitForText(tab.locator('.author'), 'alice');
  }
  await waitForText(alice.locator('.message-note'), /read by 2$/);
  await carol.getByLabel('Message', { exact: true }).pressSequentially('m');
  await waitForText(alice.locator('#typing'), 'carol is typing');
  await bob.reload();
  await waitForText(bob.locator('#chat-name'), 'lunch');
});

test('a group that another program makes shows up by itself', async () => {
  const dave = await open('dave');
  await appears(dave.locator('#groups-empty'));
  await makeChat(browsers.server, 'team', 'erin', 'dave');
  await postMessage(browsers.server, 'erin', 'team', { client_message_id: 'm1', body: 'welcome' });
  await waitForText(groupRow(dave, 'team').locator('.person-status'), 'you and erin');
  await waitForText(groupRow(dave, 'team').locator('.unread'), '1 unread');
  await makeChat(browsers.server, 'silent', 'erin', 'dave');
  await appears(groupRow(dave, 'silent'));
});

test('members are added and removed, and who leaves no longer sees the group', async () => {
  await makeChat(browsers.server, 'club', 'frank', 'grace');
  const [frank, grace, heidi] = await Promise.all(['frank', 'grace', 'heidi'].map((name) => open(name)));
  await groupRow(frank, 'club').locator('.opener').click();
  await button(frank, 'Members').click();
  await frank.getByLabel('Add a member').fill('heidi');
  await button(frank, 'Add').click();
  await appears(button(frank, 'Remove heidi'));
  await groupRow(grace, 'club').locator('.opener').click();
  await write(grace, 'hello');
  await appears(frank.locator('.bubble', { hasText: 'hello' }));
  await button(frank, 'Remove grace').click();
  await disappears(button(frank, 'Remove grace'));
  await disappears(groupRow(grace, 'club'));
  await disappears(grace.locator('#chat'));
  await frank.keyboard.press('Escape');
  await appears(frank.locator('#chat'));
  await groupRow(heidi, 'club').locator('.opener').click();
  await waitForText(heidi.locator('#chat-status'), '2 members · 2 here');
  await button(heidi, 'Members').click();
  await button(heidi, 'Leave the group').click();
  await button(heidi, 'Leave').last().click();
  await disappears(groupRow(heidi, 'club'));
  await heidi.reload();
  await waitForText(heidi.locator('#connection-text'), 'connected');
  assert.equal(await groupRow(heidi, 'club').count(), 0);
});

test('admins appoint others and decide who may add; members see only what they may do', async () => {
  await makeChat(browsers.server, 'board', 'ivan', 'judy');
  const [ivan, judy] = await Promise.all(['ivan', 'judy'].map((name) => open(name)));
  for (const tab of [ivan, judy]) {
    await groupRow(tab, 'board').locator('.opener').click();
    await button(tab, 'Members').click();
  }
  const row = (tab, name) => tab.locator(`#members [data-user=${name}]`);
  await waitForText(row(judy, 'ivan').locator('.person-status'), 'admin · online');
  assert.ok(await row(judy, 'ivan').locator('[data-action=remove]').isHidden());
  await ivan.getByLabel('Every member may add others').uncheck();
  await disappears(judy.getByLabel('Add a member'));
  await row(ivan, 'judy').locator('[data-action=appoint]').click();
  await waitForText(row(judy, 'judy').locator('.person-status'), 'admin · you');
  await appears(judy.getByLabel('Add a member'));
  await appears(row(judy, 'ivan').locator('[data-action=remove]'));
});

test('a name that is taken or not allowed is explained in the dialog', async () => {
  browsers.allowPageErrors(); // the browser reports refused requests
  await makeChat(browsers.server, 'taken', 'kim', 'liam');
  const mia = await open('mia');
  await button(mia, 'New group').click();
  for (const [name, problem] of [['taken', /in use/], ['direct-line', /direct/], ['a:b', /colon/]]) {
    await mia.getByLabel('Name of the group').fill(name);
    await button(mia, 'Create').click();
    await waitForText(mia.locator('#group-problem'), problem);
  }
  await mia.keyboard.press('Escape');
  await disappears(mia.locator('#group-dialog'));
});
