import assert from 'node:assert/strict';
import test from 'node:test';
import { world } from './support.mjs';

/** The part of a Document that activity.js uses. */
class FakePage {
  visibilityState = 'visible';
  #listeners = new Map();

  addEventListener(type, listener) {
    this.#listeners.set(type, listener);
  }

  removeEventListener(type) {
    this.#listeners.delete(type);
  }

  get listening() {
    return this.#listeners.size;
  }

  dispatch(type) {
    this.#listeners.get(type)?.();
  }

  show(visible) {
    this.visibilityState = visible ? 'visible' : 'hidden';
    this.dispatch('visibilitychange');
  }
}

/** Advances time with a server that answers every heartbeat. */
async function alive(w, ms, stepMs = 1000) {
  for (let passed = 0; passed < ms; passed += stepMs) {
    await w.time.advance(Math.min(stepMs, ms - passed));
    w.socket.serverSends({ type: 'heartbeat_ack' });
  }
}

const beats = (w) => w.socket.ofType('heartbeat').map(({ active }) => active);

test('heartbeats are sent at once and then at the interval of the server', async () => {
  const w = world();
  await w.ready();
  assert.equal(beats(w).length, 1);
  await alive(w, 4999);
  assert.equal(beats(w).length, 1);
  await alive(w, 1);
  assert.equal(beats(w).length, 2);
  await alive(w, 50000);
  assert.equal(beats(w).length, 12);
});

test('without a page heartbeats carry no activity until setActive()', async () => {
  const w = world();
  await w.ready();
  assert.ok(!('active' in w.socket.ofType('heartbeat')[0]));
  w.client.setActive(false);
  assert.deepEqual(beats(w), [undefined, false]);
  w.client.setActive(false);
  assert.equal(beats(w).length, 2, 'nothing changed: no extra heartbeat');
  w.client.setActive(true);
  assert.deepEqual(beats(w), [undefined, false, true]);
  w.client.setActive(null);
  assert.deepEqual(beats(w), [undefined, false, true, undefined]);
});

test('a connection that is silent for the expiry window is dropped', async () => {
  const w = world();
  await w.ready();
  await w.time.advance(14999);
  assert.equal(w.client.state, 'READY');
  await w.time.advance(1);
  assert.equal(w.client.state, 'BACKOFF');
  assert.equal(w.changes.at(-2).reason, 'heartbeat_timeout');
  assert.equal(w.socket.closedWith, 1000);
  await w.reconnect();
  assert.equal(w.client.state, 'READY');
});

test('any message from the server keeps the connection', async () => {
  const w = world();
  await w.ready();
  for (let round = 0; round < 10; round += 1) {
    await w.time.advance(6000);
    w.socket.serverSends({ type: 'delivery', data: {} });
  }
  assert.equal(w.client.state, 'READY');
});

test('a page whose timers slept for a minute sends a heartbeat before it drops the connection', async () => {
  const w = world();
  await w.ready();
  w.socket.serverSends({ type: 'heartbeat_ack' });
  w.time.throttleMs = 60000;
  await w.time.advance(5000);
  w.socket.serverSends({ type: 'heartbeat_ack' });
  for (let minute = 0; minute < 3; minute += 1) {
    await w.time.advance(60000);
    assert.equal(w.client.state, 'READY');
    w.socket.serverSends({ type: 'heartbeat_ack' });
  }
});

test('a hidden page, whose chained timers are slowed down, keeps the interval', async () => {
  const w = world();
  await w.ready();
  w.socket.serverSends({ type: 'heartbeat_ack' });
  w.time.chainedThrottleMs = 60000;
  const before = beats(w).length;
  await alive(w, 120000);
  assert.equal(beats(w).length, before + 24);
});

test('setting the clock neither stops heartbeats nor sends them in a burst', async () => {
  const w = world();
  await w.ready();
  for (const byMs of [-3600000, 3600000]) {
    w.time.setClock(byMs);
    const before = beats(w).length;
    await alive(w, 50000);
    const more = beats(w).length - before;
    assert.ok(more >= 9 && more <= 11, `${more} heartbeats`);
  }
});

test('setting the clock back does not keep an idle page active', async () => {
  const page = new FakePage();
  const w = world({ activity: { page } });
  await w.ready();
  await alive(w, 10000);
  w.time.setClock(-3600000);
  await alive(w, 600000);
  assert.equal(beats(w).at(-1), false);
});

test('no heartbeat is sent on a lost connection', async () => {
  const w = world();
  await w.ready();
  const first = w.socket;
  first.serverCloses();
  await w.time.advance(900);
  w.client.setActive(true);
  assert.equal(first.ofType('heartbeat').length, 1);
});

test('five minutes without input make the page idle, input makes it active, both are sent at once', async () => {
  const page = new FakePage();
  const w = world({ activity: { page } });
  await w.ready();
  assert.deepEqual(beats(w), [true]);
  await alive(w, 299000);
  assert.ok(beats(w).every((active) => active === true));
  await alive(w, 1000);
  assert.equal(beats(w).at(-1), false);
  await alive(w, 2500, 2500);
  const before = beats(w).length;
  page.dispatch('keydown');
  assert.deepEqual([beats(w).length, beats(w).at(-1)], [before + 1, true]);
});

test('input delays idleness', async () => {
  const page = new FakePage();
  const w = world({ activity: { page } });
  await w.ready();
  await alive(w, 200000);
  page.dispatch('pointermove');
  await alive(w, 299000);
  assert.ok(beats(w).every((active) => active === true));
  await alive(w, 1000);
  assert.equal(beats(w).at(-1), false);
});

test('a hidden page is idle after a minute, and active when it is visible again', async () => {
  const page = new FakePage();
  const w = world({ activity: { page } });
  await w.ready();
  page.show(false);
  await alive(w, 59000);
  assert.equal(beats(w).at(-1), true);
  await alive(w, 1000);
  assert.equal(beats(w).at(-1), false);
  page.show(true);
  assert.equal(beats(w).at(-1), true);
});

test('the limits of activity can be set', async () => {
  const page = new FakePage();
  const w = world({ activity: { page, idleAfterMs: 2000, hiddenAfterMs: 1000 } });
  await w.ready();
  await w.time.advance(2000);
  assert.deepEqual(beats(w), [true, false]);
});

test('setActive(false) overrides input, also after a reconnect', async () => {
  const page = new FakePage();
  const w = world({ activity: { page } });
  await w.ready();
  w.client.setActive(false);
  page.dispatch('keydown');
  assert.deepEqual(beats(w), [true, false]);
  w.socket.serverCloses();
  await w.reconnect();
  assert.deepEqual(beats(w), [false]);
  w.client.setActive(null);
  assert.deepEqual(beats(w), [false, true]);
});

test('close() removes the listeners from the page', async () => {
  const page = new FakePage();
  const w = world({ activity: { page } });
  await w.ready();
  assert.ok(page.listening > 0);
  w.client.close();
  assert.equal(page.listening, 0);
  assert.equal(w.time.running, 0);
});
