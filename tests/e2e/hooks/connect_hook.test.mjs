/** The application is asked before a connection is accepted, and its answer holds. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startApplication } from '../support/application.mjs';
import { closeAll, connect, devToken, eventually, refusal, rest, sleep } from '../support/client.mjs';
import { TRANSPORTS, closeAllSocketIo, connectSocketIo, nextEvent, openSocketIo } from '../support/socketio.mjs';
import { startServer } from '../support/server.mjs';

let application, server;

before(async () => {
  application = await startApplication();
  server = await startServer({
    settings: {
      'hooks.connect_url': application.url,
      'webhooks.secret_file': application.secretFile,
      'hooks.timeout_seconds': 1,
      'hooks.circuit_breaker.failure_threshold': 1000,
      'gateway.workers': 2,
    },
  });
});

after(async () => {
  closeAll();
  closeAllSocketIo();
  await server.stop();
  await application.stop();
});

const handshake = async (user, to = server) => ({
  url: `${to.url.replace(/^http/, 'ws')}v1/ws?device_id=phone`,
  options: { headers: { Authorization: `Bearer ${await devToken(to, user)}` } },
});

async function refused(user, to = server) {
  const { url, options } = await handshake(user, to);
  return refusal(url, [], options);
}

test('an empty 2xx accepts; the question names user, device and connection and is signed', async () => {
  application.answer = () => ({ status: 204 });
  const alice = await connect(server, 'alice', { device: 'phone' });
  const question = application.questions.at(-1);
  assert.deepEqual(question, {
    user_id: 'alice',
    device_id: 'phone',
    conn_id: alice.established.conn_id,
    scope: '',
  });
  assert.ok(application.signed);
  assert.equal(application.lastHeaders['content-type'], 'application/json');
  assert.equal(alice.established.display_name, undefined);
});

test('a display name appears in the greeting and in /v1/me, whoever asks when', async () => {
  application.answer = () => ({ body: { allow: true, display_name: 'Bób "B."', more: [1] } });
  const bob = await connect(server, 'bob');
  assert.equal(bob.established.display_name, 'Bób "B."');
  assert.equal((await rest(server, 'GET', 'v1/me', { user: 'bob' })).body.display_name, 'Bób "B."');
  application.answer = () => ({ body: { allow: true } });
  await connect(server, 'bob');
  assert.equal((await rest(server, 'GET', 'v1/me', { user: 'bob' })).body.display_name, 'Bób "B."');
});

test('allow:false and any 4xx are 403, with the application’s words', async () => {
  application.answer = () => ({ body: { allow: false, message: 'your plan has ended' } });
  const { status, error } = await refused('carol');
  assert.deepEqual([status, error.code, error.message], [403, 'FORBIDDEN', 'your plan has ended']);
  for (const code of [400, 401, 403, 404, 429, 499]) {
    application.answer = () => ({ status: code, body: { allow: true } });
    assert.equal((await refused('carol')).status, 403, `${code}`);
  }
  assert.equal((await rest(server, 'GET', 'v1/presence/carol', { user: 'carol' })).body.status, 'offline');
});

test('anything else is 503 with Retry-After and accepts nobody', async () => {
  const answers = [
    { status: 500 }, { status: 503, body: { allow: true } }, { status: 304 },
    { status: 302, headers: { location: application.url } },
    { body: '{"allow":true' }, { body: '[]' }, { body: '{}' }, { body: { allow: 'yes' } }, { body: { allow: 1 } },
    { body: 'null' }, { body: { allow: true, display_name: 7 } }, { body: { allow: true, display_name: 'x'.repeat(65) } },
    { body: { allow: true, display_name: 'a\nb' } }, { body: { allow: true, scope: ['admin'] } },
    { body: { allow: true, pad: 'x'.repeat(70000) } },
  ];
  for (const given of answers) {
    application.answer = () => given;
    const { status, headers } = await refused('dave');
    assert.equal(status, 503, JSON.stringify(given).slice(0, 80));
    assert.ok(headers['retry-after']);
  }
  application.answer = (_, response) => void response.destroy();
  assert.equal((await refused('dave')).status, 503);
});

test('an application that does not answer in time is 503', async () => {
  application.answer = () => new Promise(() => {});
  const begun = Date.now();
  assert.equal((await refused('erin')).status, 503);
  assert.ok(Date.now() - begun >= 900);
  application.inFlight = 0;
});

test('a bad token is refused without a question', async () => {
  const asked = application.questions.length;
  const { url } = await handshake('alice');
  const { status } = await refusal(url, [], { headers: { Authorization: 'Bearer no.token.here' } });
  assert.deepEqual([status, application.questions.length], [401, asked]);
});

for (const [name, transports] of Object.entries(TRANSPORTS))
  test(`Socket.IO, ${name}: accepted, refused and undecided`, async () => {
    application.answer = () => ({ body: { allow: true, display_name: 'Frank' } });
    const frank = await connectSocketIo(server, 'frank', { transports });
    assert.equal((await frank.next('connection_established')).display_name, 'Frank');
    frank.close();
    const open = async (user) => {
      const client = openSocketIo(server, { token: await devToken(server, user), transports, reconnection: false });
      const error = await nextEvent(client.socket, 'connect_error');
      client.close();
      return error;
    };
    application.answer = () => ({ body: { allow: false, message: 'not you' } });
    const no = await open('grace');
    assert.deepEqual([no.message, no.data.code, no.data.retry_after_seconds], ['not you', 'FORBIDDEN', undefined]);
    application.answer = () => ({ status: 500 });
    const later = await open('grace');
    assert.equal(later.data.code, 'SERVICE_UNAVAILABLE');
    assert.ok(later.data.retry_after_seconds > 0);
  });

test('a client that leaves meanwhile leaves nothing behind', async () => {
  let release;
  application.answer = () => new Promise((resolve) => (release = () => resolve({ status: 204 })));
  const { url, options } = await handshake('heidi');
  const gone = refusal(url, [], options).catch(() => {});
  const { default: ws } = await import('ws');
  const socket = new ws(url, [], options);
  socket.on('error', () => {});
  await application.asked(({ user_id: user }) => user === 'heidi');
  socket.terminate();
  await sleep(50);
  release?.();
  application.answer = () => ({ status: 403 });
  await gone;
  const heidi = () => rest(server, 'GET', 'v1/presence/heidi', { user: 'heidi' });
  await eventually(async () => (await heidi()).body.status === 'offline', 'heidi is offline');
});

test('a connection that waits for the application gets one answer when the time for draining is over', async (t) => {
  const own = await startApplication(() => new Promise(() => {}));
  t.after(own.stop);
  const draining = await startServer({ settings: { 'hooks.connect_url': own.url, 'hooks.timeout_seconds': 5 } });
  const answer = refused('ivan', draining);
  await own.asked();
  const stopped = draining.stop();
  assert.equal((await answer).status, 503);
  assert.equal(await stopped, 0);
});

test('the breaker opens after failures, spares the application, and closes after a probe', async () => {
  const own = await startApplication(() => ({ status: 500 }));
  const broken = await startServer({
    settings: {
      'hooks.connect_url': own.url,
      'hooks.circuit_breaker.failure_threshold': 3,
      'hooks.circuit_breaker.open_duration_seconds': 1,
      'gateway.workers': 2,
    },
  });
  for (let i = 0; i < 5; i += 1) assert.equal((await refused('judy', broken)).status, 503);
  assert.equal(own.questions.length, 3);
  own.answer = () => ({ status: 204 });
  await eventually(() => refused('judy', broken).then(() => false, () => true), 'the breaker closes');
  await broken.stop();
  await own.stop();
});

test('neither tokens nor bodies are in the log', async () => {
  application.answer = () => ({ body: { allow: false, message: 'secretive' } });
  await refused('mallory');
  application.answer = () => ({ status: 500, body: 'private words' });
  await refused('mallory');
  assert.doesNotMatch(server.log(), /secretive|private words|eyJ|whsec/);
});
