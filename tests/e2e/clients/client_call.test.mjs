/** The call helper of the packed client: two pages in Chromium with fake media, against the real server. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { launchBrowser } from '../support/browser.mjs';
import { serveBundle } from '../support/client_bundle.mjs';
import { befriend } from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';

const LIVE_MS = 45000;

const SCRIPT = `
  import { devToken, Rollcall } from 'rollcall';
  import { Calls, TabMemory } from 'rollcall/call';

  window.connections = [];
  window.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(configuration) {
      super(configuration);
      connections.push(this);
      this.iceServersGiven = configuration.iceServers;
      this.restarts = 0;
    }
    restartIce() {
      this.restarts += 1;
      super.restartIce();
    }
  };

  const query = new URLSearchParams(location.search);
  const [url, user] = [query.get('server'), query.get('user')];
  const memory = new TabMemory();
  const client = new Rollcall({ url, getToken: () => devToken(user, { url }), deviceId: memory.deviceId });
  window.client = client;
  window.calls = new Calls(client, { memory, endedShownMs: 60000 });
  window.history_ = [];
  calls.subscribe(() => {
    const { current } = calls;
    if (current && history_.at(-1) !== current.state) history_.push(current.state);
    const video = document.getElementById('remote');
    if (video.srcObject !== (current?.remoteStream ?? null)) video.srcObject = current?.remoteStream ?? null;
  });
  const video = document.createElement('video');
  video.id = 'remote';
  video.muted = true;
  video.autoplay = true;
  document.body.append(video);
  await client.connect();
  window.isReady = true;
`;

const TURN = { 'turn.urls': 'turn:127.0.0.1:9?transport=udp', 'turn.secret': 'north' };

/** A loaded machine may need some seconds for a reload. */
const PATIENT = { 'call.reconnect_grace_seconds': 30 };

let server;
let site;
let browser;
let contexts = [];

before(async () => {
  [server, site, browser] = await Promise.all([
    startServer({ settings: { ...TURN, ...PATIENT } }),
    serveBundle(SCRIPT),
    launchBrowser(),
  ]);
});
after(async () => {
  await browser?.close();
  await site?.close();
  await server?.stop();
});
afterEach(async () => {
  await Promise.all(contexts.map((context) => context.close()));
  contexts = [];
});

async function open(user, where = browser) {
  const context = await where.newContext();
  contexts.push(context);
  const page = await context.newPage();
  await page.goto(`${site.url}?user=${user}&server=${encodeURIComponent(server.url)}`);
  await until(page, () => window.isReady);
  return page;
}

async function openFriends(...users) {
  await befriend(server, ...users);
  return Promise.all(users.map((user) => open(user)));
}

const until = (page, condition, argument) =>
  page.waitForFunction(condition, argument, { timeout: LIVE_MS, polling: 100 });

const hasState = (page, state) => until(page, (wanted) => window.calls.current?.state === wanted, state);

const isConnected = (page) => until(page, () => window.calls.current?.media === 'connected');

async function connect(caller, callee, peer, options) {
  await caller.evaluate(([user, wanted]) => window.calls.place(user, wanted), [peer, options]);
  await hasState(callee, 'incoming');
  await callee.evaluate((wanted) => window.calls.accept(wanted), options);
  await Promise.all([isConnected(caller), isConnected(callee)]);
}

/** Waits until more packets of a kind have arrived than before. */
async function receivesMore(page, kind) {
  const received = () =>
    page.evaluate(async (wanted) => {
      const stats = [...(await window.connections.at(-1).getStats()).values()];
      const inbound = stats.filter((one) => one.type === 'inbound-rtp' && one.kind === wanted);
      return inbound.reduce((sum, { packetsReceived }) => sum + packetsReceived, 0);
    }, kind);
  const before = await received();
  const endMs = Date.now() + LIVE_MS;
  while (Date.now() < endMs) {
    if ((await received()) > before + 5) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  assert.fail(`no ${kind} arrives`);
}

const hearsMore = (page) => receivesMore(page, 'audio');

/** Waits until the other side's video is shown and moves on. */
async function showsVideo(page) {
  await until(page, () => document.getElementById('remote').videoWidth > 0);
  await receivesMore(page, 'video');
}

test('a call rings, is accepted, carries audio and video both ways, and ends for both', async () => {
  const [ann, ben] = await openFriends('ann', 'ben');
  await connect(ann, ben, 'ben', { video: true });
  await Promise.all([showsVideo(ann), showsVideo(ben), hearsMore(ann), hearsMore(ben)]);
  await ben.evaluate(() => window.calls.hangUp());
  await hasState(ann, 'ended');
  assert.equal(await ann.evaluate(() => window.calls.current.reason), 'hangup');
  assert.deepEqual(await ann.evaluate(() => window.history_), ['calling', 'active', 'ended']);
  assert.deepEqual(await ben.evaluate(() => window.history_), ['incoming', 'active', 'ended']);
  assert.equal(await ann.evaluate(() => window.connections.at(-1).connectionState), 'closed');
  await ann.evaluate(() => window.calls.dismiss());
  assert.equal(await ann.evaluate(() => window.calls.current), null);
});

test('the servers come from /v1/ice, with credentials', async () => {
  const [cat, dan] = await openFriends('cat', 'dan');
  await connect(cat, dan, 'dan');
  const [{ urls, username, credential }] = await cat.evaluate(() => window.connections[0].iceServersGiven);
  assert.deepEqual(urls, [TURN['turn.urls']]);
  assert.match(username, /^\d+:cat$/);
  assert.match(credential, /^[\w+/]{27}=$/);
});

test('decline, cancel, busy and unavailable are told apart', async () => {
  const [eve, fay] = await openFriends('eve', 'fay');
  const reasonOf = async (page) => {
    await hasState(page, 'ended');
    return page.evaluate(() => window.calls.current.reason);
  };
  await eve.evaluate(() => window.calls.place('fay'));
  await hasState(fay, 'incoming');
  await fay.evaluate(() => window.calls.decline());
  assert.equal(await reasonOf(eve), 'rejected');
  await eve.evaluate(() => window.calls.place('fay'));
  await hasState(fay, 'incoming');
  await eve.evaluate(() => window.calls.hangUp());
  assert.equal(await reasonOf(fay), 'cancelled');
  assert.equal(await fay.evaluate(() => window.calls.current.missed), true);
  const code = await eve.evaluate(() => window.calls.place('nobody').catch((error) => error.code));
  assert.equal(code, 'CALL_UNAVAILABLE');
  assert.equal(await reasonOf(eve), 'unavailable');
});

test('both sides turn their cameras on and off at the same time', async () => {
  const [gus, hal] = await openFriends('gus', 'hal');
  await connect(gus, hal, 'hal');
  const setCameras = (on) =>
    Promise.all([gus, hal].map((page) => page.evaluate((wanted) => window.calls.setCamera(wanted), on)));
  for (let round = 0; round < 3; round += 1) {
    await setCameras(true);
    await Promise.all([showsVideo(gus), showsVideo(hal)]);
    await setCameras(false);
    for (const page of [gus, hal])
      await until(page, () => document.getElementById('remote').srcObject.getVideoTracks().length === 0);
  }
  const media = await gus.evaluate(() => window.connections[0].getTransceivers().length);
  assert.equal(media, 2, 'one for audio, one for video, however often the camera is turned on');
  await Promise.all([hearsMore(gus), hearsMore(hal)]);
  assert.equal(await gus.evaluate(() => window.connections.length), 1, 'the connection is the same');
});

test('a reload of either side, and of both, keeps the call', async () => {
  const [ida, jon] = await openFriends('ida', 'jon');
  await connect(ida, jon, 'jon');
  const { callId } = await ida.evaluate(() => ({ callId: window.calls.current.callId }));
  for (const reloaded of [[ida], [jon], [ida, jon]]) {
    await Promise.all(reloaded.map((page) => page.reload()));
    await Promise.all([isConnected(ida), isConnected(jon)]);
    await Promise.all([hearsMore(ida), hearsMore(jon)]);
  }
  assert.equal(await jon.evaluate(() => window.calls.current.callId), callId);
  await ida.evaluate(() => window.calls.hangUp());
  await hasState(jon, 'ended');
});

/** Stops the processes of a browser's pages, as a sleeping laptop does; returns a function that wakes them. */
async function freezePages(frozen) {
  const session = await frozen.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  const ids = processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => id);
  for (const id of ids) process.kill(id, 'SIGSTOP');
  return () => ids.forEach((id) => process.kill(id, 'SIGCONT'));
}

test('a connection whose other side falls silent looks for a new path, and finds it', async () => {
  const other = await launchBrowser();
  try {
    await befriend(server, 'kim', 'lou');
    const [kim, lou] = await Promise.all([open('kim'), open('lou', other)]);
    await connect(kim, lou, 'lou');
    const wake = await freezePages(other);
    try {
      await until(kim, () => window.calls.current.media === 'disconnected');
      await until(kim, () => window.connections[0].restarts > 0);
    } finally {
      wake();
    }
    await Promise.all([isConnected(kim), isConnected(lou)]);
    await Promise.all([hearsMore(kim), hearsMore(lou)]);
    assert.equal(await kim.evaluate(() => window.connections.length), 1, 'the connection is the same');
  } finally {
    await other.close();
  }
});
