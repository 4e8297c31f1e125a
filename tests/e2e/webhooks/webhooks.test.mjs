/** Webhooks: every type of event, signed, in order, retried, given up, replayed; and what a crash leaves behind. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { AMPLE_RATES, makeChat, postMessage, sendMessage } from '../support/chats.mjs';
import { closeAll, connect, eventually, metric, rest, sleep } from '../support/client.mjs';
import { acceptContact, befriend, removeContact, requestContact } from '../support/contacts.mjs';
import { NO_BUDGETS, startServer } from '../support/server.mjs';
import { SECRET, startEndpoint, verifySignature, writeSecret } from '../support/webhook_endpoint.mjs';

const QUICK = { ...NO_BUDGETS, ...AMPLE_RATES, 'webhooks.batch_ms': 50 };

async function postText(server, user, chat, body) {
  const { status } = await postMessage(server, user, chat, { client_message_id: body, body });
  assert.equal(status, 201);
}

async function startWithEndpoint({ endpointOptions, settings = {}, ...options } = {}) {
  const endpoint = await startEndpoint(endpointOptions);
  const server = await startServer({
    settings: { ...QUICK, 'webhooks.url': endpoint.url, 'webhooks.secret_file': await writeSecret(), ...settings },
    ...options,
  });
  after(async () => {
    closeAll();
    await server.stop('SIGKILL').catch(() => {});
    await endpoint.stop();
  });
  return { endpoint, server };
}

const restart = (server, settings) =>
  startServer({ dataDir: server.dataDir, settings }).then((again) => {
    after(() => again.stop('SIGKILL').catch(() => {}));
    return again;
  });

test('messages, contacts, chats and presence are told with the fields of their pushes', async () => {
  const { endpoint, server } = await startWithEndpoint();
  await rest(server, 'PATCH', '/v1/me', { user: 'alice', body: { presence_visibility: 'nobody' } });
  const alice = await connect(server, 'alice', { device: 'phone' });
  const connected = await endpoint.next('user.connected');
  assert.equal(connected.data.user_id, 'alice');
  assert.equal(connected.data.device_id, 'phone');
  const online = await endpoint.next('presence.changed', ({ user_id, status }) => user_id === 'alice' && status === 'online');
  assert.equal(online.data.in_call, false);
  assert.match(online.data.timestamp, /^\d{4}-\d\d-\d\dT/);

  const { id } = (await requestContact(server, 'alice', 'bob')) ?? {};
  const requested = await endpoint.next('contact.requested');
  assert.deepEqual(requested.data, { request_id: id ?? requested.data.request_id, user_id: 'alice', from: 'alice', to: 'bob' });
  await acceptContact(server, 'bob', requested.data.request_id);
  const accepted = await endpoint.next('contact.accepted');
  assert.equal(accepted.data.user_id, 'bob');
  assert.equal(accepted.data.from, 'alice');

  await makeChat(server, 'team', 'alice', 'bob');
  const created = await endpoint.next('chat.created');
  assert.equal(created.data.chat_id, 'team');
  assert.equal(created.data.kind, 'group');
  assert.deepEqual(created.data.members, ['alice', 'bob']);
  await rest(server, 'PUT', '/v1/chats/team/members/carol', { user: 'alice' });
  const changed = await endpoint.next('chat.members_changed');
  assert.deepEqual([changed.data.added, changed.data.removed], [['carol'], []]);

  const ack = await sendMessage(alice, 'team', 'hello "you"');
  const message = await endpoint.next('message.created');
  assert.deepEqual(message.data, {
    chat_id: 'team',
    message_id: ack.message_id,
    sequence: 1,
    sender_id: 'alice',
    body: 'hello "you"',
    sent_at: message.data.sent_at,
  });
  assert.match(message.id, /^evt_[0-9a-f]{32}$/);
  assert.match(message.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

  await removeContact(server, 'alice', 'bob');
  assert.equal((await endpoint.next('contact.removed')).data.user_id, 'alice');
  alice.close();
  assert.equal((await endpoint.next('user.disconnected')).data.user_id, 'alice');
  await endpoint.next('presence.changed', ({ user_id, status }) => user_id === 'alice' && status === 'offline');
  assert.equal(new Set(endpoint.events.map((event) => event.id)).size, endpoint.events.length);
  assert.ok((await metric(server, 'webhooks_sent')) >= 9);
});

test('only recipients without a device for two seconds make a message undelivered', async () => {
  const { endpoint, server } = await startWithEndpoint();
  await makeChat(server, 'team', 'alice', 'bob', 'carol', 'dora');
  const alice = await connect(server, 'alice');
  await connect(server, 'bob');
  const sentMs = Date.now();
  await sendMessage(alice, 'team', 'are you there?');
  await sleep(500);
  await connect(server, 'dora'); // in time
  const event = await endpoint.next('message.undelivered');
  assert.ok(Date.now() - sentMs >= 2000);
  assert.deepEqual(event.data.user_ids, ['carol']);
  assert.equal(event.data.body, 'are you there?');
  assert.equal(event.data.sequence, 1);
  await connect(server, 'carol');
  await sendMessage(alice, 'team', 'all here');
  await endpoint.next('message.created', ({ sequence }) => sequence === 2);
  await sleep(3500);
  assert.equal(endpoint.of('message.undelivered').length, 1);
});

test('calls are started, ended and missed', async () => {
  const { endpoint, server } = await startWithEndpoint({ settings: { 'call.ring_timeout_seconds': 1 } });
  await befriend(server, 'alice', 'bob');
  await befriend(server, 'alice', 'carol');
  const alice = await connect(server, 'alice');
  const bob = await connect(server, 'bob');
  alice.send({ type: 'call_request', to: 'bob', call_id: 'k1' });
  await alice.next('call_ringing');
  const started = await endpoint.next('call.started');
  assert.deepEqual([started.data.call_id, started.data.from, started.data.to], ['k1', 'alice', 'bob']);
  await bob.next('call_incoming');
  bob.send({ type: 'call_accept', call_id: 'k1' });
  await alice.next('call_accepted');
  alice.send({ type: 'call_end', call_id: 'k1', id: 'end' });
  await alice.next((answer) => answer.id === 'end' && answer.type === 'ok');
  const ended = await endpoint.next('call.ended');
  assert.equal(ended.data.reason, 'hangup');
  assert.ok(ended.data.answered_at);

  alice.send({ type: 'call_request', to: 'bob', call_id: 'k2' });
  const missed = await endpoint.next('call.missed');
  assert.deepEqual([missed.data.call_id, missed.data.reason, missed.data.to], ['k2', 'timeout', 'bob']);
  alice.send({ type: 'call_request', to: 'carol', call_id: 'k3' });
  const away = await endpoint.next('call.missed', ({ call_id }) => call_id === 'k3');
  assert.deepEqual([away.data.to, away.data.reason], ['carol', 'unavailable']);
  assert.equal(endpoint.of('call.missed').length, 2);
});

test('what was acknowledged before a kill is told after the restart', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-webhooks-'));
  after(() => rm(dataDir, { recursive: true, force: true }));
  const { endpoint, server } = await startWithEndpoint({ endpointOptions: { answer: () => undefined }, dataDir });
  const settings = { ...QUICK, 'webhooks.url': endpoint.url, 'webhooks.secret_file': await writeSecret() };
  await befriend(server, 'alice', 'bob');
  await makeChat(server, 'team', 'alice', 'bob');
  const alice = await connect(server, 'alice');
  await connect(server, 'bob');
  for (let n = 1; n <= 20; n++) await sendMessage(alice, 'team', `text ${n}`);
  alice.send({ type: 'call_request', to: 'bob', call_id: 'k1' });
  await alice.next('call_ringing');
  await server.stop('SIGKILL');
  endpoint.answer = () => 200;
  await restart(server, settings);
  await endpoint.next('call.started');
  await endpoint.next('message.created', ({ sequence }) => sequence === 20);
  const sequences = endpoint.of('message.created').map(({ data }) => data.sequence);
  assert.deepEqual([...new Set(sequences)], Array.from({ length: 20 }, (_, n) => n + 1));
  assert.equal(endpoint.of('contact.accepted').length, 1);
  assert.equal(endpoint.of('chat.created').length, 1);
  await endpoint.next('message.undelivered', ({ user_ids }) => user_ids.includes('bob'));
});

test('events of a chat stay in order while requests fail, and a refused chat holds up no other', async () => {
  let failing = true;
  const { endpoint, server } = await startWithEndpoint({
    endpointOptions: {
      answer: (events) => {
        const refuses = failing && events.some(({ data }) => data.chat_id === 'bad');
        return refuses || Math.random() < 0.2 ? 500 : 200;
      },
    },
    settings: { 'webhooks.batch_max': 7 },
  });
  for (const chat of ['bad', 'good', 'better']) await makeChat(server, chat, 'alice', 'bob');
  for (let n = 1; n <= 10; n++)
    for (const chat of ['bad', 'good', 'better']) await postText(server, 'alice', chat, `text ${n}`);
  const sequencesOf = (chat) =>
    endpoint.of('message.created').filter(({ data }) => data.chat_id === chat).map(({ data }) => data.sequence);
  const all = Array.from({ length: 10 }, (_, n) => n + 1);
  await eventually(() => sequencesOf('good').length === 10 && sequencesOf('better').length === 10, 'the good chats', 120000);
  assert.deepEqual(sequencesOf('good'), all);
  assert.deepEqual(sequencesOf('better'), all);
  assert.deepEqual(sequencesOf('bad'), []);
  failing = false;
  await eventually(() => sequencesOf('bad').length === 10, 'the bad chat', 90000);
  assert.deepEqual(sequencesOf('bad'), all);
  assert.deepEqual(endpoint.problems, []);
  assert.ok((await metric(server, 'webhooks_retried')) > 0);
});

test('a hanging endpoint slows neither clients nor another endpoint, and redirects are not followed', async () => {
  const hanging = await startEndpoint({ answer: () => undefined });
  const moved = await startEndpoint({ answer: (events, request) => (request.url === '/hook' ? 302 : 200) });
  after(() => Promise.all([hanging.stop(), moved.stop()]));
  const { endpoint, server } = await startWithEndpoint({
    settings: { 'webhooks.endpoints': `${hanging.url},${moved.url}` },
  });
  await makeChat(server, 'team', 'alice', 'bob');
  const alice = await connect(server, 'alice');
  const startedMs = Date.now();
  for (let n = 1; n <= 50; n++) await sendMessage(alice, 'team', `text ${n}`);
  assert.ok(Date.now() - startedMs < 20000);
  await endpoint.next('message.created', ({ sequence }) => sequence === 50);
  await eventually(() => hanging.requests.length > 0 && moved.requests.length > 0, 'requests to the others');
  assert.equal(moved.events.length, 0);
  await eventually(async () => (await metric(server, 'webhooks_backlog')) >= 50, 'the backlog');
});

test('endpoints of the file have types and secrets of their own', async () => {
  const other = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD';
  const calls = await startEndpoint({ secret: other });
  const path = join(await mkdtemp(join(tmpdir(), 'rollcall-config-')), 'rollcall.yaml');
  const all = await startEndpoint();
  await writeFile(
    path,
    `webhooks:\n  batch_ms: 50\n  secret_file: ${await writeSecret()}\n  endpoints:\n    - url: ${calls.url}\n      types: [chat.created, call.missed]\n      secret_file: ${await writeSecret(other)}\n    - ${all.url}\n`,
  );
  const server = await startServer({ settings: NO_BUDGETS, args: ['--config', path] });
  after(async () => {
    await server.stop('SIGKILL');
    await Promise.all([calls.stop(), all.stop()]);
  });
  await makeChat(server, 'team', 'alice', 'bob');
  await postText(server, 'alice', 'team', 'hello');
  await all.next('message.created');
  await all.next('chat.created');
  await calls.next('chat.created');
  assert.deepEqual(calls.events.map(({ type }) => type), ['chat.created']);
});

test('a secret or a type that is wrong stops the start and says what was expected', async () => {
  const refused = (settings) =>
    startServer({ settings }).then(
      () => assert.fail('it started'),
      (error) => String(error.message ?? error),
    );
  assert.match(await refused({ 'webhooks.url': 'http://127.0.0.1:1/', 'webhooks.secret_file': await writeSecret('secret') }), /whsec_/);
  assert.match(await refused({ 'webhooks.url': 'ftp://example.com/' }), /webhooks\.url/);
  assert.throws(() => verifySignature({ 'webhook-id': 'a', 'webhook-timestamp': '1', 'webhook-signature': 'v1,AAAA' }, '', SECRET));
});
