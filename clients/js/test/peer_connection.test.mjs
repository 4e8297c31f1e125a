/** The negotiation of a call: two sides whose signals can be lost, over connections that follow the rules of WebRTC. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { PeerConnection } from '../peer_connection.js';

const pause = () => new Promise((resolve) => setImmediate(resolve));

async function settle() {
  for (let round = 0; round < 20; round += 1) await pause();
}

/** The part of an RTCPeerConnection that matters for signalling; like Chromium it gathers nothing after a first rollback. */
class FakeConnection {
  signalingState = 'stable';
  connectionState = 'new';
  localDescription = null;
  remoteDescription = null;
  gathers = true;
  configurations = [];
  restarts = 0;
  added = [];
  #offers = 0;
  #isNeeded = false;
  #isBusy = false;

  constructor(configuration) {
    this.configurations.push(configuration);
    made.push(this);
  }

  addTrack(track) {
    this.added.push(track);
    this.needNegotiation();
  }

  needNegotiation() {
    this.#isNeeded = true;
    setImmediate(() => this.#check());
  }

  /** The event waits for operations that run. */
  #check() {
    if (this.#isNeeded && !this.#isBusy && this.signalingState === 'stable') this.onnegotiationneeded();
  }

  async setLocalDescription() {
    this.#isBusy = true;
    await pause();
    this.#isNeeded = false; // an answer has the own changes, too
    const type = this.signalingState === 'have-remote-offer' ? 'answer' : 'offer';
    if (type === 'offer') this.#offers += 1;
    this.localDescription = { type, sdp: `${type} ${this.#offers}` };
    this.#become(type === 'offer' ? 'have-local-offer' : 'stable');
  }

  async setRemoteDescription(description) {
    const { type } = description;
    this.#isBusy = true;
    await pause();
    if (type === 'answer' && this.signalingState !== 'have-local-offer')
      throw new Error(`an answer in ${this.signalingState}`);
    if (type === 'offer' && this.signalingState === 'have-local-offer') this.#rollBack();
    this.remoteDescription = description;
    this.#become(type === 'offer' ? 'have-remote-offer' : 'stable');
  }

  #rollBack() {
    if (this.remoteDescription === null) this.gathers = false;
    this.needNegotiation();
  }

  #become(state) {
    this.#isBusy = false;
    if (this.signalingState === 'closed') return;
    this.signalingState = state;
    if (state === 'stable') setImmediate(() => this.#check());
  }

  setConfiguration(configuration) {
    this.configurations.push(configuration);
  }

  restartIce() {
    this.restarts += 1;
    this.needNegotiation();
  }

  turn(state) {
    this.connectionState = state;
    this.onconnectionstatechange();
  }

  close() {
    this.signalingState = 'closed';
  }
}

let made;
let warnings;
let timers;
const { RTCPeerConnection, setTimeout, clearTimeout } = globalThis;
const { warn } = console;

/** Lets every timer of the present end. */
function elapse() {
  const due = [...timers.values()];
  timers.clear();
  for (const { run } of due) run();
  return due.map(({ ms }) => ms);
}

beforeEach(() => {
  made = [];
  warnings = [];
  timers = new Map();
  globalThis.RTCPeerConnection = FakeConnection;
  globalThis.setTimeout = (run, ms) => {
    const id = Symbol('timer');
    timers.set(id, { run, ms });
    return id;
  };
  globalThis.clearTimeout = (id) => timers.delete(id);
  console.warn = (...words) => warnings.push(words.join(' '));
});
afterEach(() => {
  Object.assign(globalThis, { RTCPeerConnection, setTimeout, clearTimeout });
  console.warn = warn;
  assert.deepEqual(warnings, []);
});

/** Two sides; `loses(from, data)` decides which signals are lost. */
function pair() {
  const call = { sides: {}, sent: [], loses: () => false, iceServers: [] };
  const stream = { getTracks: () => ['microphone'] };
  call.join = (name, { starts }) => {
    const other = name === 'caller' ? 'callee' : 'caller';
    const side = new PeerConnection({
      polite: name === 'callee',
      starts,
      media: Promise.resolve(stream),
      fetchIceServers: async () => call.iceServers,
      events: { state() {}, remote() {} },
      signal: (data) => {
        const copy = JSON.parse(JSON.stringify(data));
        call.sent.push([name, copy]);
        if (call.sides[name] === side && !call.loses(name, copy)) call.sides[other]?.receive(copy);
      },
    });
    call.sides[name] = side;
    return side;
  };
  return call;
}

async function connected() {
  const call = pair();
  call.join('callee', { starts: false });
  call.join('caller', { starts: true });
  await settle();
  const [caller, callee] = made;
  return { call, caller, callee };
}

const types = (call) => call.sent.map(([name, { description }]) => `${name} ${description?.type}`);
const live = () => made.filter(({ signalingState }) => signalingState !== 'closed');
const areStable = () =>
  live().length === 2 && live().every(({ signalingState, gathers }) => signalingState === 'stable' && gathers);

test('the caller offers, the callee answers, and nothing else is sent', async () => {
  const { call } = await connected();
  assert.deepEqual(types(call), ['caller offer', 'callee answer']);
  assert.ok(areStable());
  assert.equal(made.length, 2);
});

test('if both offer at once, the callee gives way, and its change is in its answer', async () => {
  const { call, caller, callee } = await connected();
  call.sent.length = 0;
  caller.needNegotiation();
  callee.needNegotiation();
  await settle();
  assert.deepEqual(types(call).sort(), ['callee answer', 'callee offer', 'caller offer']);
  assert.ok(areStable());
  assert.equal(made.length, 2, 'the connections are the same');
});

for (const lost of ['offer', 'answer'])
  test(`a lost ${lost} is made up for when the signalling is back`, async () => {
    const { call, caller } = await connected();
    call.loses = (name, { description }) => description?.type === lost;
    caller.needNegotiation();
    await settle();
    assert.equal(caller.signalingState, 'have-local-offer');
    call.loses = () => false;
    for (const side of Object.values(call.sides)) side.resume();
    await settle();
    assert.ok(areStable());
  });

test('a late answer to an earlier offer is ignored', async () => {
  const { call, caller } = await connected();
  const [, answer] = call.sent.find(([name]) => name === 'callee');
  call.loses = () => true;
  caller.needNegotiation();
  await settle();
  call.sides.caller.receive(answer);
  await settle();
  assert.equal(caller.signalingState, 'have-local-offer');
});

for (const name of ['caller', 'callee'])
  test(`after a reload of the ${name} both have new connections, and late signals are dropped`, async () => {
    const { call, caller, callee } = await connected();
    const old = name === 'caller' ? call.sides.caller : call.sides.callee;
    const late = { ...call.sent.find(([from]) => from === name)[1], description: undefined, candidate: {} };
    old.close();
    call.join(name, { starts: true });
    await settle();
    assert.ok(areStable());
    assert.ok(![caller, callee].some((one) => live().includes(one)), 'both are new');
    call.sides[name === 'caller' ? 'callee' : 'caller'].receive(late); // addIceCandidate() does not exist here
    await settle();
  });

test('after a reload of both the call is negotiated, although the first offer was lost', async () => {
  const { call } = await connected();
  call.sides.caller.close();
  call.sides.callee.close();
  call.sides = {};
  call.join('caller', { starts: true }); // its offer finds nobody
  await settle();
  call.join('callee', { starts: true });
  await settle();
  assert.ok(areStable());
});

test('if both offer at once after a reload of both, the connection that gives way still gathers candidates', async () => {
  const { call } = await connected();
  for (const side of Object.values(call.sides)) side.close();
  call.join('caller', { starts: true });
  call.join('callee', { starts: true });
  await settle();
  assert.ok(areStable());
});

for (const lost of ['offer', 'answer'])
  test(`a lost ${lost} is repeated until the connection is there`, async () => {
    const call = pair();
    call.loses = (name, { description }) => description?.type === lost;
    call.join('callee', { starts: false });
    call.join('caller', { starts: true });
    await settle();
    elapse();
    await settle();
    assert.ok(!areStable());
    call.loses = () => false;
    elapse();
    await settle();
    assert.ok(areStable());
    for (const connection of live()) connection.turn('connected');
    assert.deepEqual(elapse(), [], 'nothing waits any more');
  });

test('a connection that stays interrupted is negotiated again, less and less often', async () => {
  const { call, caller, callee } = await connected();
  for (const connection of [caller, callee]) connection.turn('connected');
  caller.turn('disconnected');
  const waits = [];
  for (let round = 0; round < 5; round += 1) {
    waits.push(...elapse());
    await settle();
  }
  assert.deepEqual(waits, [4000, 8000, 16000, 30000, 30000]);
  assert.equal(caller.restarts, 5);
  call.sides.caller.close();
  assert.deepEqual(elapse(), []);
});

test('an offer to the connection before a reload is dropped', async () => {
  const { call } = await connected();
  const [, offer] = call.sent.find(([name]) => name === 'caller');
  const [, answer] = call.sent.find(([name]) => name === 'callee');
  call.sides.caller.close();
  call.join('caller', { starts: true });
  await settle();
  const count = made.length;
  call.sides.caller.receive({ ...offer, from: answer.from, to: offer.from, number: 9 });
  await settle();
  assert.equal(made.length, count);
  assert.ok(areStable());
});

test('a connection that fails is restarted with fresh servers, on the same connection', async () => {
  const { call, caller } = await connected();
  call.iceServers = [{ urls: ['turn:fresh'] }];
  caller.turn('failed');
  await settle();
  assert.equal(caller.restarts, 1);
  assert.deepEqual(caller.configurations, [{ iceServers: [] }, { iceServers: call.iceServers }]);
  assert.ok(areStable());
  assert.equal(made.length, 2);
});

test('a closed side does nothing more', async () => {
  const { call, caller } = await connected();
  call.sides.caller.close();
  call.sent.length = 0;
  call.sides.callee.receive = () => {};
  call.sides.caller.receive({ from: 'x', to: null, description: { type: 'offer' }, number: 1 });
  call.sides.caller.resume();
  await settle();
  assert.deepEqual(call.sent, []);
  assert.equal(caller.signalingState, 'closed');
});
