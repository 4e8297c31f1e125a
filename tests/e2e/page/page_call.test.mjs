/**
 * Calls on the page, with a real WebRTC connection between two browser contexts and the browser's fake
 * microphone.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useBrowsers } from '../support/browsers.mjs';
import {
  PHONE,
  appears,
  button,
  disappears,
  friendRow,
  overflow,
  screenshot,
  waitForText,
} from '../support/page.mjs';
import { befriend } from '../support/contacts.mjs';
import { startProxy } from '../support/proxy.mjs';

/** Time limit, on a busy machine, until WebRTC has connected. */
const MEDIA_MS = 30000;

/** After this time the page ends a call that the server has not confirmed. */
const CONFIRM_WAIT_MS = 3000;

/** A reload of the page takes long on a busy machine; the default is 2 s. */
const browsers = useBrowsers({ settings: { 'call.reconnect_grace_seconds': 8 } });
const { open } = browsers;

const callButton = (tab, name) => friendRow(tab, name).getByRole('button', { name: `Call ${name}` });

const waitForMedia = (tab) =>
  tab
    .locator('#call[data-state=active][data-media=connected]')
    .waitFor({ state: 'visible', timeout: MEDIA_MS });

const badge = (tab, name) => friendRow(tab, name).locator('.call-badge');

test('a call rings, is accepted, connects and ends, and a third user sees it', async () => {
  await befriend(browsers.server, 'alice', 'bob');
  await befriend(browsers.server, 'alice', 'carol');
  const [alice, bob, carol] = await Promise.all(['alice', 'bob', 'carol'].map((name) => open(name)));
  await callButton(alice, 'bob').click();
  await waitForText(alice.locator('#call-text'), 'ringing …');
  await waitForText(bob.locator('#call-text'), 'is calling you');
  assert.match(await bob.title(), /^alice is calling/);
  await screenshot(bob, 'incoming');
  await bob.setViewportSize(PHONE);
  assert.equal(await overflow(bob), 0);

  await button(bob, 'Accept').click();
  await Promise.all([waitForMedia(alice), waitForMedia(bob)]);
  await waitForText(alice.locator('#call-text'), /^0:0[1-9]$/);
  const hasSound = () => {
    const sound = document.getElementById('call-sound').srcObject;
    return sound?.getAudioTracks().some(({ readyState }) => readyState === 'live') === true;
  };
  assert.ok(await alice.evaluate(hasSound), 'alice has live sound');
  assert.ok(await bob.evaluate(hasSound), 'bob has live sound');
  await appears(badge(carol, 'alice'));
  await friendRow(alice, 'bob').locator('.opener').click();
  await screenshot(alice, 'call');
  await screenshot(carol, 'in-call');
  await button(bob, 'Mute').click();
  assert.equal(await button(bob, 'Mute').getAttribute('aria-pressed'), 'true');

  await callButton(carol, 'alice').click();
  await waitForText(carol.locator('#call-text'), 'In another call');

  await button(alice, 'Hang up').click();
  await waitForText(bob.locator('#call-text'), /^Call ended · \d:\d\d$/);
  await disappears(badge(carol, 'alice'));
  await disappears(carol.locator('#call'));
});

test('a call can be declined or cancelled, and a missed call is noted', async () => {
  await befriend(browsers.server, 'dave', 'erin');
  const [dave, erin] = await Promise.all([open('dave'), open('erin')]);
  await callButton(dave, 'erin').click();
  await button(erin, 'Decline').click();
  await waitForText(dave.locator('#call-text'), 'Declined');
  await callButton(dave, 'erin').click();
  await appears(button(erin, 'Decline'));
  await button(dave, 'Cancel').click();
  await waitForText(erin.locator('#call-text'), 'Call cancelled');
  await waitForText(erin.locator('#journal li span').first(), 'dave called you, unanswered');
  await button(erin, 'Leave').click();
  await waitForText(friendRow(dave, 'erin').locator('.person-status'), /^offline/);
  await callButton(dave, 'erin').click();
  await waitForText(dave.locator('#call-text'), 'Cannot be reached now');
});

test('a call works without a microphone', async () => {
  const refuseMicrophone = (context) =>
    context.addInitScript(() => {
      if (navigator.mediaDevices === undefined) return; // a blank page has no mediaDevices
      navigator.mediaDevices.getUserMedia = () => Promise.reject(new Error('not allowed'));
    });
  await befriend(browsers.server, 'frank', 'grace');
  const [frank, grace] = await Promise.all([open('frank', { prepare: refuseMicrophone }), open('grace')]);
  await callButton(frank, 'grace').click();
  await button(grace, 'Accept').click();
  await Promise.all([waitForMedia(frank), waitForMedia(grace)]);
  await waitForText(frank.locator('#call-text'), /no microphone/);
  await grace.close();
  await waitForText(frank.locator('#call-text'), /^Connection lost/);
});

async function reloadDuringCall(tab, other) {
  const sounds = (page) => page.locator('#call-sound').evaluate(({ srcObject }) => srcObject?.id);
  const before = await sounds(other);
  await tab.reload();
  await Promise.all([waitForMedia(tab), waitForMedia(other)]);
  await other.waitForFunction(
    (id) => document.getElementById('call-sound').srcObject?.id !== id,
    before,
    { timeout: MEDIA_MS },
  );
  assert.equal(await tab.locator('#call-sound').evaluate(({ srcObject }) => srcObject.active), true);
}

test('a reload keeps the call, for the caller and for the callee', async () => {
  await befriend(browsers.server, 'kim', 'liam');
  const [kim, liam] = await Promise.all([open('kim'), open('liam')]);
  await callButton(kim, 'liam').click();
  await waitForText(kim.locator('#call-text'), 'ringing …');
  await kim.reload();
  await waitForText(kim.locator('#call-text'), 'ringing …');
  await liam.reload();
  await button(liam, 'Accept').click();
  await Promise.all([waitForMedia(kim), waitForMedia(liam)]);
  await button(kim, 'Mute').click();

  await reloadDuringCall(kim, liam);
  assert.equal(await button(kim, 'Mute').getAttribute('aria-pressed'), 'true', 'kim is still muted');
  await reloadDuringCall(liam, kim);
  await Promise.all([kim.reload(), liam.reload()]);
  await Promise.all([waitForMedia(kim), waitForMedia(liam)]);
  await button(liam, 'Hang up').click();
  await waitForText(kim.locator('#call-text'), /^Call ended/);
});

test('all call buttons agree about whether a call is possible', async () => {
  await befriend(browsers.server, 'mia', 'noah');
  await befriend(browsers.server, 'mia', 'olga');
  const [mia, noah] = await Promise.all([open('mia'), open('noah')]);
  await friendRow(mia, 'noah').locator('.opener').click();
  const inHead = mia.locator('#chat-call');
  const states = async () => {
    const rows = ['noah', 'olga'].map((name) => friendRow(mia, name).locator('[data-action=call]'));
    return Promise.all(
      [...rows, inHead].map(async (one) => [await one.getAttribute('aria-label'), await one.isEnabled()]),
    );
  };
  const [idle, busy] = [
    [['Call noah', true], ['Call olga', true], ['Call noah', true]],
    [['In a call with noah', false], ['Call olga', false], ['In a call with noah', false]],
  ];
  assert.deepEqual(await states(), idle);
  await inHead.click();
  await appears(button(noah, 'Decline'));
  assert.deepEqual(await states(), busy);
  await button(noah, 'Accept').click();
  await waitForMedia(mia);
  assert.deepEqual(await states(), busy);
  await button(noah, 'Hang up').click();
  await waitForText(mia.locator('#call-text'), /^Call ended/);
  assert.deepEqual(await states(), idle);
});

test('a call survives a short loss of the connection, and can still be ended', async () => {
  const proxy = await startProxy(browsers.server.port);
  try {
    await befriend(browsers.server, 'heidi', 'ivan');
    const [heidi, ivan] = await Promise.all([open('heidi', { at: proxy }), open('ivan')]);
    await callButton(heidi, 'ivan').click();
    await button(ivan, 'Accept').click();
    await Promise.all([waitForMedia(heidi), waitForMedia(ivan)]);
    proxy.cut();
    await waitForText(heidi.locator('#connection-text'), /reconnecting|lost/);
    await waitForText(heidi.locator('#connection-text'), 'connected');
    await heidi.waitForTimeout(CONFIRM_WAIT_MS + 500);
    await Promise.all([waitForMedia(heidi), waitForMedia(ivan)]);
    await button(heidi, 'Hang up').click();
    await waitForText(ivan.locator('#call-text'), /^Call ended/);
  } finally {
    proxy.close();
  }
});
