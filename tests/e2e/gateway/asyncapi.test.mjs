/**
 * docs/asyncapi.json describes the socket: it is a valid document, lists exactly the server's messages, error codes,
 * reasons and close codes, and every message that clients and the running server exchange here matches it.
 *
 * A new message needs an entry in docs/asyncapi.json, and a step below that makes a client or the server send it.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import asyncapi from '@asyncapi/specs';
import Ajv from 'ajv';
import addFormats from 'ajv-formats';
import { startApplication } from '../support/application.mjs';
import { closeAll, connect, deliver, rest } from '../support/client.mjs';
import { befriend, removeContact } from '../support/contacts.mjs';
import { follow } from '../support/schema.mjs';
import { startServer } from '../support/server.mjs';

/** Part of the contract, but sent only after faults of a fleet. */
const AFTER_FAULTS = ['sync_required'];
/** In the server's table of messages, but for other dialects or between gateways. */
const NOT_NATIVE = ['invalid', 'user:connect', 'user:disconnect', 'call:start', 'call:end', 'contact_presence', 'chat_presence', 'relay'];

const read = (path) => readFile(new URL(`../../../${path}`, import.meta.url), 'utf8');

let application;
let server;
let document;
/** All messages, as {sent: boolean, message}. */
const records = [];

before(async () => {
  application = await startApplication();
  server = await startServer({ settings: { 'hooks.event_url': application.url, 'limits.messages_per_second_per_user_burst': 15 } });
  document = await (await fetch(`${server.url}asyncapi.json`)).json();
});
after(async () => {
  closeAll();
  await server.stop();
  await application.stop();
});

// --- The document ---------------------------------------------------------------------------------

const names = (messages) => [...new Set(messages.map(({ name }) => name))].sort();
const operations = (action) => Object.values(document.operations).filter((operation) => operation.action === action);
const resolved = (references) => references.map((reference) => follow(document, reference));
const commands = () => operations('receive').flatMap(({ messages }) => resolved(messages));
const pushes = () => operations('send').flatMap(({ messages }) => resolved(messages));
const replies = () => operations('receive').flatMap(({ reply }) => resolved(reply.messages));
const answers = () => [...pushes(), ...replies()];

/** The names of a C table, `[ROW_X] = "name"`. */
const tableOf = (source, key) => [...source.matchAll(new RegExp(`\\[(${key}_\\w+)\\] = "([^"]+)"`, 'g'))].map(([, row, name]) => ({ row, name }));

/** Schemas in which members that are not described are errors; clients must accept them, but here they show a gap. */
function strict(schema) {
  if (Array.isArray(schema)) return schema.map(strict);
  if (schema === null || typeof schema !== 'object') return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, strict(value)]));
  return copy.properties && copy.type === 'object' ? { additionalProperties: false, ...copy } : copy;
}

function makeValidators() {
  const ajv = addFormats(new Ajv({ allErrors: true, allowUnionTypes: true }));
  const relative = (schema) => JSON.parse(JSON.stringify(strict(schema)).replaceAll('"#/components/schemas/', '"document#/definitions/'));
  ajv.addSchema(relative({ definitions: document.components.schemas }), 'document');
  const compile = (messages) =>
    Object.fromEntries(messages.map(({ name, payload }) => [name, ajv.compile(relative(payload))]));
  const [ins, outs] = [compile(commands()), compile(answers())];
  return (sent, message) => {
    const validate = (sent ? ins : outs)[message.type];
    if (!validate) return [`${message.type} is not described`];
    return validate(message) ? [] : [ajv.errorsText(validate.errors)];
  };
}

test('the server serves docs/asyncapi.json, for the version of the build', async () => {
  assert.deepEqual(document, JSON.parse(await read('docs/asyncapi.json')));
  const [, version] = /version: '([^']+)'/.exec(await read('meson.build'));
  assert.equal(document.info.version, version);
});

test('the document is valid AsyncAPI 3', () => {
  const { $schema, ...schema } = asyncapi.schemasWithoutId['3.0.0'];
  assert.match($schema, /draft-07/);
  const ajv = addFormats(new Ajv({ allErrors: false, strict: false, validateSchema: false }));
  const validate = ajv.compile(schema);
  assert.ok(validate(document), ajv.errorsText(validate.errors).slice(0, 2000));
});

test('every reference resolves, and every definition is used', () => {
  const used = new Set();
  const walk = (at, path) => {
    if (at === null || typeof at !== 'object') return;
    if (typeof at.$ref === 'string') {
      assert.ok(follow(document, at), `${path}: ${at.$ref} does not exist`);
      used.add(at.$ref);
    }
    for (const [key, value] of Object.entries(at)) walk(value, `${path}/${key}`);
  };
  walk(document, '#');
  for (const kind of ['messages', 'schemas', 'securitySchemes'])
    for (const name of Object.keys(document.components[kind]))
      assert.ok(used.has(`#/components/${kind}/${name}`), `${kind}/${name} is not used`);
  for (const name of Object.keys(document.channels.socket.messages))
    assert.ok(used.has(`#/channels/socket/messages/${name}`), `${name} is in no operation`);
});

test('the described messages are those of the server', async () => {
  const source = await read('src/protocol/message.c');
  const header = await read('src/protocol/message.h');
  const table = tableOf(source, 'MESSAGE').map(({ name }) => name);
  assert.ok(table.length > 40, 'the table is found');
  const last = table.indexOf('event');
  const native = (list) => list.filter((name) => !NOT_NATIVE.includes(name));
  assert.deepEqual(names(commands()), native(table.slice(0, last + 1)).sort());
  const relayed = [...header.matchAll(/#define RELAY_\w+ SLICE\("(\w+)"\)/g)].map(([, name]) => name);
  assert.ok(relayed.length > 5, 'the names of relayed events are found');
  const sent = new Set([...native(table.slice(last + 1)), ...relayed, ...AFTER_FAULTS, 'call_signal']);
  assert.deepEqual(names(answers()), [...sent].sort());
});

test('every command has the reply that PROTOCOL.md names', async () => {
  const page = await read('docs/PROTOCOL.md');
  const table = page.slice(page.indexOf('| client sends |'), page.indexOf('The reply to any of them'));
  const rows = table.split('\n').slice(2).filter((row) => row.startsWith('|'));
  for (const [, left, right] of rows.map((row) => row.split('|')))
    for (const [, command] of left.matchAll(/\[`(\w+)`\]/g)) {
      const named = /`(\w+)`/.exec(right)?.[1];
      const described = document.operations[command].reply.messages.map((message) => follow(document, message).name);
      assert.deepEqual(described, named ? [named, 'error'] : ['error'], command);
    }
});

test('the described error codes, reasons and close codes are those of the server', async () => {
  const source = await read('src/protocol/message.c');
  const { ErrorCode, ClosingReason } = document.components.schemas;
  const closing = tableOf(source, 'CLOSING');
  assert.deepEqual(ErrorCode.enum, tableOf(source, 'ERROR').map(({ name }) => name));
  assert.deepEqual(ClosingReason.enum, closing.map(({ name }) => name));

  const end = await read('src/connection/connection_end.c');
  const numbers = Object.fromEntries([...end.matchAll(/(CLOSE_\w+) = (\d+)/g)].map(([, name, code]) => [name, Number(code)]));
  const codes = document.channels.socket['x-close-codes'];
  for (const { row, name } of closing) {
    const constant = new RegExp(`\\[${row}\\] = (\\w+)`).exec(end)?.[1];
    const wanted = numbers[constant] ?? 1001; // WEBSOCKET_CLOSE_GOING_AWAY
    assert.equal(codes.find(({ reasons }) => reasons.includes(name))?.code, wanted, name);
  }
});

test('the examples of the document and of PROTOCOL.md match the schemas', async () => {
  const problems = makeValidators();
  for (const [key, { name, examples }] of Object.entries(document.components.messages)) {
    assert.ok(examples?.length > 0, `${key} has an example`);
    const isCommand = commands().some((command) => command === document.components.messages[key]);
    for (const { payload } of examples) assert.deepEqual(problems(isCommand, payload), [], `${name} ${JSON.stringify(payload)}`);
  }
  const page = await read('docs/PROTOCOL.md');
  const lines = [...page.matchAll(/^```\w*\n([→←][^]*?)^```$/gm)].flatMap(([, text]) => text.trimEnd().split('\n'));
  assert.ok(lines.length > 40);
  for (const line of lines) {
    const message = JSON.parse(line.slice(2));
    if (message.type !== 'shout') assert.deepEqual(problems(line.startsWith('→'), message), [], line);
  }
});

// --- A conversation in which every message occurs -------------------------------------------------

/** A connection whose messages are recorded. */
async function recorded(user, options) {
  const client = await connect(server, user, options);
  records.push({ sent: false, message: client.established });
  const send = client.send.bind(client);
  client.send = (message) => {
    if (typeof message !== 'string') records.push({ sent: true, message });
    send(message);
  };
  for (const message of client.messages) records.push({ sent: false, message }); // came with the first one
  client.socket.on('message', (data) => records.push({ sent: false, message: JSON.parse(data) }));
  return client;
}

const post = async (path, user, body, scope) => {
  const token = scope ? await server.token('backend', { scope }) : undefined;
  const { status } = await rest(server, 'POST', path, { user, token, body });
  assert.ok(status < 300, `POST ${path}: ${status}`);
};

async function talkOfPresence(alice) {
  await alice.ask({ type: 'heartbeat', active: true });
  await alice.ask({ type: 'subscribe_presence', user_ids: ['bob', 'nobody-known'] });
  await alice.ask({ type: 'query_presence', user_ids: ['bob'] });
  await alice.ask({ type: 'unsubscribe_presence', user_ids: ['bob'] });
  await alice.ask({ type: 'refresh_token', token: await server.token('alice') });
  await alice.ask({ type: 'refresh_token', token: 'x' });
  await alice.ask({ type: 'open_chat', chat_id: 'elsewhere' });
}

async function talkInAChat(alice, bob) {
  await post('/v1/chats', 'alice', { chat_id: 'talk', members: ['bob'] });
  await bob.next('chat_added');
  await alice.ask({ type: 'open_chat', chat_id: 'talk' });
  await bob.ask({ type: 'open_chat', chat_id: 'talk' });
  alice.send({ type: 'typing_start', chat_id: 'talk' });
  await bob.next('typing_changed');
  await alice.ask({ type: 'typing_stop', chat_id: 'talk' });
  for (const body of ['one', 'two', 'two, again'])
    await alice.ask({ type: 'send_message', chat_id: 'talk', client_message_id: `id-${body.slice(0, 3)}`, body });
  await bob.next('message');
  bob.send({ type: 'ack', chat_id: 'talk', sequence: 1 });
  await alice.next('receipt');
  await post('/v1/service/chats/talk/messages', undefined, { client_message_id: 's', body: 'from the system' }, 'service');
  const token = await server.token('backend', { scope: 'service' });
  await rest(server, 'DELETE', '/v1/service/chats/talk/messages/1', { token });
  await bob.next('message_deleted');
  const { messages } = await bob.ask({ type: 'sync_request', chat_id: 'talk', after_sequence: 0, limit: 10 });
  assert.deepEqual(messages.map(({ deleted, sender_id: sender }) => [deleted, sender]),
    [[true, 'alice'], [undefined, 'alice'], [undefined, null]]);
}

async function talkOfCalls(alice, bob, phone) {
  const { call_id: first } = await alice.ask({ type: 'call_request', to: 'bob' });
  await bob.next('call_incoming');
  await bob.ask({ type: 'call_accept', call_id: first });
  await alice.next('call_accepted');
  await phone.next('call_ended'); // answered elsewhere
  alice.send({ type: 'call_signal', call_id: first, data: { offer: ['sdp', null] } });
  await bob.next('call_signal');
  await alice.ask({ type: 'call_end', call_id: first });
  await bob.next('call_ended');
  await alice.ask({ type: 'call_request', to: 'bob', call_id: 'chosen' });
  await bob.next('call_incoming');
  await bob.ask({ type: 'call_reject', call_id: 'chosen' });
  await alice.next('call_rejected');
  await alice.ask({ type: 'call_request', to: 'nobody-known' });
}

async function talkToTheApplication(alice) {
  application.answer = () => ({ body: { price: 12.5 } });
  await alice.ask({ type: 'event', name: 'quote', data: [1] });
  const token = await server.token('backend', { scope: 'deliver service' });
  await deliver(server, token, 'alice', { any: 'thing' });
  await alice.next('delivery');
  await post('/v1/service/deliver', undefined, { to: { users: ['alice'] }, event: 'order:shipped', data: null }, 'service');
  await alice.next('delivery');
}

async function change(alice, bob) {
  const { status } = await rest(server, 'PUT', '/v1/chats/talk/admins/bob', { user: 'alice' });
  assert.equal(status, 204);
  await alice.next('chat_changed');
  await alice.ask({ type: 'close_chat', chat_id: 'talk' });
  await rest(server, 'DELETE', '/v1/chats/talk/members/bob', { user: 'alice' });
  await bob.next('chat_removed');
  await bob.next('chat_closed');
  await removeContact(server, 'alice', 'bob');
  await bob.next('contact_removed');
}

/** More messages than the limit allows. */
async function exceed(alice) {
  for (let i = 0; i < 40; i += 1)
    alice.send({ type: 'send_message', chat_id: 'talk', client_message_id: `many-${i}`, body: 'x' });
  await alice.next(({ code }) => code === 'RATE_LIMITED');
}

async function end(alice, phone) {
  const brief = await recorded('carol', { token: await server.token('carol', { ttlSeconds: 2 }) });
  const token = await server.token('root', { scope: 'admin' });
  await rest(server, 'DELETE', `/admin/v1/connections/${phone.established.conn_id}`, { token });
  assert.equal((await phone.ended()).code, 4005);
  assert.equal((await brief.ended()).code, 4001);
  await rest(server, 'POST', '/admin/v1/users/alice/revoke', { token });
  assert.equal((await alice.ended()).code, 4001);
}

test('every message that is exchanged matches the document, and every described one occurs', async () => {
  const [alice, bob, phone] = [await recorded('alice', { device: 'a' }), await recorded('bob', { device: 'b' }), await recorded('bob', { device: 'phone' })];
  await befriend(server, 'alice', 'bob');
  await alice.next('contact_accepted');
  await bob.nextChange('alice', 'online');
  await talkOfPresence(alice);
  await talkInAChat(alice, bob);
  await talkOfCalls(alice, bob, phone);
  await talkToTheApplication(alice);
  await change(alice, bob);
  await exceed(alice);
  await end(alice, phone);

  const problems = makeValidators();
  for (const { sent, message } of records) assert.deepEqual(problems(sent, message), [], JSON.stringify(message));
  const seen = (sent) => [...new Set(records.filter((record) => record.sent === sent).map(({ message }) => message.type))];
  assert.deepEqual(names(commands()).filter((name) => !seen(true).includes(name)), []);
  assert.deepEqual(names(answers()).filter((name) => !seen(false).includes(name) && !AFTER_FAULTS.includes(name)), []);
});

test('the server refuses what the document does not allow', async () => {
  const problems = makeValidators();
  const dave = await connect(server, 'dave');
  for (const { name, payload, examples } of commands()) {
    for (const member of payload.required.filter((each) => each !== 'type' && each !== 'data')) {
      const { [member]: _, ...message } = examples[0].payload;
      assert.notDeepEqual(problems(true, message), [], `${name} needs ${member}`);
      delete message.id;
      const { code } = await dave.ask(message);
      assert.equal(code, 'INVALID_MESSAGE', `${name} without ${member}`);
    }
  }
});
