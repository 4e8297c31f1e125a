/** Events of names that are no commands go to the application, and its answers come back. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startApplication } from '../support/application.mjs';
import { closeAll, connect, eventually, metric, nested, sleep } from '../support/client.mjs';
import { PARSERS, TRANSPORTS, closeAllSocketIo, connectSocketIo } from '../support/socketio.mjs';
import { startServer } from '../support/server.mjs';

const QUICK = { 'hooks.timeout_seconds': 1, 'hooks.circuit_breaker.failure_threshold': 1000 };
let application, server;

const start = (url, settings = {}) =>
  startServer({ settings: { ...QUICK, 'hooks.event_url': url, ...settings } });

before(async () => {
  application = await startApplication();
  server = await start(application.url, { 'hooks.secret_file': application.secretFile });
});

after(async () => {
  closeAll();
  closeAllSocketIo();
  await server.stop();
  await application.stop();
});

const answering = (body) => {
  application.questions.length = 0;
  application.answer = () => ({ body });
};

test('a native event is asked with user, device, connection, name, data and args', async () => {
  answering({ price: 12.5, tags: ['a', null] });
  const alice = await connect(server, 'alice', { device: 'phone' });
  const answer = await alice.ask({ type: 'event', name: 'quote', data: { symbol: 'X\u00e9"' } });
  assert.deepEqual([answer.type, answer.data], ['event_ack', { price: 12.5, tags: ['a', null] }]);
  assert.deepEqual(application.questions, [{
    user_id: 'alice', device_id: 'phone', conn_id: alice.established.conn_id,
    name: 'quote', data: { symbol: 'X\u00e9"' }, args: [{ symbol: 'X\u00e9"' }],
  }]);
  assert.ok(application.signed);
  alice.send({ type: 'event', name: 'quote' });
  const unnamed = await alice.next('event_ack');
  assert.ok(!('id' in unnamed));
  assert.deepEqual([application.questions[1].data, application.questions[1].args], [null, []]);
});

for (const [transport, transports] of Object.entries(TRANSPORTS))
  for (const [parserName, parser] of Object.entries(PARSERS))
    test(`Socket.IO, ${transport}, ${parserName}: any name, all arguments, the answer is the acknowledgement`, async () => {
      answering({ ok: [1, 'two'] });
      const bob = await connectSocketIo(server, 'bob', { transports, parser });
      assert.deepEqual(await bob.ask('order:place', { id: 7 }, 'fast', [1, null]), { ok: [1, 'two'] });
      const [question] = application.questions;
      assert.deepEqual([question.user_id, question.name, question.data, question.args],
        ['bob', 'order:place', { id: 7 }, [{ id: 7 }, 'fast', [1, null]]]);
      assert.deepEqual(await bob.ask('event'), { ok: [1, 'two'] }); // not the native command of that name
      answering(undefined);
      assert.equal(await bob.ask('nothing'), null);
      bob.emit('unheard', 1); // without a callback nothing comes back
      await application.asked(({ name }) => name === 'unheard');
      assert.equal((await bob.settle()).filter(({ name }) => name === 'event_ack').length, 0);
      bob.close();
    });

test('the application’s refusals become errors with its words', async () => {
  const alice = await connect(server, 'alice');
  const codes = { 400: 'INVALID_MESSAGE', 401: 'FORBIDDEN', 403: 'FORBIDDEN', 404: 'NOT_FOUND', 413: 'MESSAGE_TOO_LARGE', 429: 'RATE_LIMITED', 422: 'INVALID_MESSAGE' };
  for (const [status, code] of Object.entries(codes)) {
    application.answer = () => ({ status: Number(status), body: { message: `no ${status}` } });
    const error = await alice.ask({ type: 'event', name: 'x' });
    assert.deepEqual([error.type, error.code, error.message], ['error', code, `no ${status}`]);
  }
  application.answer = () => ({ status: 403, body: '<html>' });
  assert.equal((await alice.ask({ type: 'event', name: 'x' })).message, 'the application refused the event');
  const bob = await connectSocketIo(server, 'bob');
  assert.equal((await bob.ask('x')).code, 'FORBIDDEN');
});

test('failures, answers that are no JSON or too large, and silence are SERVICE_UNAVAILABLE', async () => {
  const alice = await connect(server, 'alice');
  for (const given of [{ status: 500 }, { status: 302, headers: { location: application.url } }, { body: 'plain' },
    { body: '{"a":1} 2' }, { body: nested(40) }, { body: `"${'x'.repeat(70000)}"` }]) {
    application.answer = () => given;
    const error = await alice.ask({ type: 'event', name: 'x' });
    assert.deepEqual([error.type, error.code], ['error', 'SERVICE_UNAVAILABLE'], JSON.stringify(given).slice(0, 60));
  }
  application.answer = () => new Promise(() => {});
  assert.equal((await alice.ask({ type: 'event', name: 'x' })).code, 'SERVICE_UNAVAILABLE');
  assert.ok((await metric(server, 'hooks_failed')) >= 3);
});

test('events of one connection arrive one by one in their order, others do not wait for them', async () => {
  answering({});
  const order = [];
  application.inFlight = application.inFlightMost = 0;
  application.answer = async ({ user_id: user, data }) => {
    if (user === 'carol') await sleep(data % 3 === 0 ? 30 : 1);
    order.push(`${user}${data}`);
    return { body: { done: data } };
  };
  const [carol, dave] = await Promise.all([connect(server, 'carol'), connect(server, 'dave')]);
  const answers = Promise.all(Array.from({ length: 20 }, (_, i) => carol.ask({ type: 'event', name: 'step', data: i })));
  await eventually(() => order.length > 0, 'the first event');
  assert.deepEqual((await dave.ask({ type: 'event', name: 'step', data: 0 })).data, { done: 0 });
  assert.ok(order.indexOf('dave0') < 15, 'dave did not wait for all of them');
  assert.deepEqual((await answers).map(({ data }) => data.done), Array.from({ length: 20 }, (_, i) => i));
  assert.deepEqual(order.filter((item) => item !== 'dave0'), Array.from({ length: 20 }, (_, i) => `carol${i}`));
  assert.ok(application.inFlightMost <= 2);
});

test('commands stay commands, and bad events are refused as such', async () => {
  answering({});
  const alice = await connect(server, 'alice');
  const bob = await connectSocketIo(server, 'bob');
  assert.equal((await alice.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  assert.equal((await bob.ask('HEARTBEAT', {})).type, 'heartbeat_ack');
  assert.equal((await alice.ask({ type: 'shout' })).code, 'INVALID_MESSAGE');
  for (const name of [undefined, 7, '', 'x'.repeat(129)])
    assert.equal((await alice.ask({ type: 'event', name })).code, 'INVALID_MESSAGE', `${name}`);
  assert.equal((await bob.ask('upload', Buffer.from('bytes'))).code, 'INVALID_MESSAGE');
  assert.equal((await bob.ask('big', 'x'.repeat(70000))).code, 'MESSAGE_TOO_LARGE');
  assert.equal(application.questions.length, 0);
});

test('too many questions at a time are SERVER_BUSY, and one user cannot take all of them', async () => {
  const own = await startApplication(() => new Promise(() => {}));
  const busy = await start(own.url, { 'hooks.in_flight_max': 8, 'gateway.workers': 1 });
  const devices = await Promise.all(Array.from({ length: 6 }, () => connect(busy, 'greedy')));
  const asked = devices.map((device) => device.ask({ type: 'event', name: 'x' }));
  await eventually(() => own.questions.length === 2, 'a quarter of eight');
  const others = await Promise.all(Array.from({ length: 9 }, (_, i) => connect(busy, `user${i}`)));
  const answers = await Promise.all([...asked, ...others.map((one) => one.ask({ type: 'event', name: 'x' }))]);
  const count = (code) => answers.filter((answer) => answer.code === code).length;
  assert.deepEqual([count('SERVICE_UNAVAILABLE'), count('SERVER_BUSY')], [8, 7]);
  assert.ok(answers.every(({ code, retry_after_seconds: after }) => code !== 'SERVER_BUSY' || after > 0));
  assert.equal(own.inFlightMost, 8);
  await busy.stop();
  await own.stop();
});

test('the breaker opens for events alone, refuses at once, and a probe closes it', async () => {
  const own = await startApplication(() => ({ status: 500 }));
  const broken = await start(own.url, {
    'hooks.circuit_breaker.failure_threshold': 3, 'hooks.circuit_breaker.open_duration_seconds': 2, 'gateway.workers': 2,
  });
  const erin = await connect(broken, 'erin');
  for (let i = 0; i < 6; i += 1)
    assert.equal((await erin.ask({ type: 'event', name: 'x' })).code, 'SERVICE_UNAVAILABLE');
  assert.equal(own.questions.length, 3);
  await eventually(async () => (await metric(broken, 'hooks_circuit_breaker_open')) === 1, 'the gauge');
  own.answer = () => ({ body: 'true' });
  await eventually(async () => (await erin.ask({ type: 'event', name: 'x' })).data === true, 'the breaker closes');
  await broken.stop();
  await own.stop();
});

test('a user has a budget of events over all devices', async () => {
  const own = await startApplication(() => ({ body: '1' }));
  const strict = await start(own.url, { 'limits.events_per_second_per_user': 1, 'limits.events_per_second_per_user_burst': 3 });
  const devices = await Promise.all([connect(strict, 'frank'), connect(strict, 'frank')]);
  const answers = [];
  for (let i = 0; i < 6; i += 1) answers.push(await devices[i % 2].ask({ type: 'event', name: 'x' }));
  assert.ok(answers.filter(({ code }) => code === 'RATE_LIMITED').length >= 2);
  assert.ok(answers.at(-1).retry_after_seconds > 0);
  assert.equal((await (await connect(strict, 'grace')).ask({ type: 'event', name: 'x' })).data, 1);
  await strict.stop();
  await own.stop();
});

test('a drain waits for the answer that a client is owed', async () => {
  let release;
  const own = await startApplication(() => new Promise((resolve) => (release = () => resolve({ body: '"late"' }))));
  const draining = await start(own.url);
  const heidi = await connect(draining, 'heidi');
  const answer = heidi.ask({ type: 'event', name: 'x' });
  await own.asked();
  const stopped = draining.stop();
  await heidi.next('connection_closing');
  release();
  assert.equal((await answer).data, 'late');
  assert.equal(await stopped, 0);
  await own.stop();
});

test('connections are kept for the next question', async () => {
  answering({});
  const before = application.sockets;
  const alice = await connect(server, 'alice');
  for (let i = 0; i < 10; i += 1) await alice.ask({ type: 'event', name: 'x' });
  assert.ok(application.sockets - before <= 1);
  assert.doesNotMatch(server.log(), /symbol|private|whsec/);
});

test('without hooks.event_url unknown events are refused as before', async () => {
  const plain = await startServer();
  const alice = await connect(plain, 'alice');
  const bob = await connectSocketIo(plain, 'bob');
  const native = await alice.ask({ type: 'event', name: 'x', data: 1 });
  assert.deepEqual([native.code, native.message], ['INVALID_MESSAGE', 'unknown type']);
  const event = await bob.ask('x', 1);
  assert.deepEqual([event.code, event.message], ['INVALID_MESSAGE', 'unknown event']);
  bob.emit('x');
  assert.equal((await bob.next('error')).code, 'INVALID_MESSAGE');
  await plain.stop();
});
