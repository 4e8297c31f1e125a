/**
 * Socket.IO clients with socket.io-msgpack-parser. Packets are also tested against the npm server with the
 * same parser. Then these clients exchange events with all other kinds, and are recovered like them.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { closeAll, connect, deliver, nested } from '../support/client.mjs';
import { newChat, sendMessage } from '../support/chats.mjs';
import { EngineSession, EngineSocket } from '../support/engine.mjs';
import { befriend, uniqueUsers } from '../support/contacts.mjs';
import { startProxy } from '../support/proxy.mjs';
import { cutOff, nextText } from '../support/recovery.mjs';
import { describeBoth } from '../support/reference.mjs';
import { startServer } from '../support/server.mjs';
import {
  closeAllSocketIo,
  connectError,
  connectSocketIo,
  expectRefused,
  openSocketIo,
  PARSERS,
  TRANSPORTS,
} from '../support/socketio.mjs';

const parser = PARSERS.MessagePack;

/** Encodes any value in MessagePack, whether it is a packet or not. */
const encode = (value) => new parser.Encoder().encode(value)[0];

const [CONNECT, DISCONNECT, EVENT, ACK] = [0, 1, 2, 3];

const packet = (type, data, more = {}) => encode({ type, nsp: '/', ...(data && { data }), ...more });

/** Opens an Engine.IO WebSocket that has joined the main namespace. */
async function joinBySocket(server, user) {
  const token = await server.token(user); // first, because a socket that answers no pings soon ends
  const socket = new EngineSocket(server);
  await socket.opened;
  await socket.next();
  socket.send(packet(CONNECT, { token }));
  assert.ok(Buffer.isBuffer(await socket.take()));
  return socket;
}

describeBoth(
  'Socket.IO packets in MessagePack',
  (server) => {
    const whole = packet(EVENT, ['heartbeat', {}], { id: 1 });
    for (const [what, bytes] of [
      ['an empty packet', Buffer.alloc(0)],
      ['the unused byte 0xc1', Buffer.from([0xc1])],
      ['a number', Buffer.from([7])],
      ['nil', Buffer.from([0xc0])],
      ['an array', encode([EVENT, ['heartbeat']])],
      ['an empty map', encode({})],
      ['an incomplete packet', whole.subarray(0, -1)],
      ['a packet with an extra byte', Buffer.concat([whole, Buffer.from([0])])],
      ['a count beyond the packet’s end', Buffer.from([0xdd, 0xff, 0xff, 0xff, 0xff])],
      ['a length beyond the packet’s end', Buffer.from([0x81, 0xdb, 0xff, 0xff, 0xff, 0xff, 0x61])],
      ['an unknown packet type', packet(5, ['heartbeat'])],
      ['a type that is no number', packet('2', ['heartbeat'])],
      ['no namespace', encode({ type: EVENT, data: ['heartbeat'] })],
      ['a namespace that is no text', packet(EVENT, ['heartbeat'], { nsp: 7 })],
      ['a namespace that was not joined', packet(EVENT, ['heartbeat'], { nsp: '/admin' })],
      ['an event without data', packet(EVENT)],
      ['an event that is no array', packet(EVENT, { a: 1 })],
      ['an acknowledgement without data', packet(ACK)],
      ['an id that is no number', packet(EVENT, ['heartbeat'], { id: null })],
      ['a DISCONNECT with data', packet(DISCONNECT, {})],
      ['a second CONNECT', packet(CONNECT, { token: 'x' })],
      ['text', '42["heartbeat",{}]'],
    ])
      test(`${what} closes only its own connection`, async () => {
        const token = await server.token('near');
        const bystander = await connectSocketIo(server, 'near', { token, parser });
        const socket = await joinBySocket(server, 'bad');
        socket.send(bytes);
        await socket.ended();
        assert.ok('server_time' in (await bystander.ask('heartbeat', {})));
      });

    for (const [what, ...packets] of [
      ['an event before CONNECT', packet(EVENT, ['heartbeat'])],
      ['a CONNECT with an array', packet(CONNECT, [])],
      ['a CONNECT with null', encode({ type: CONNECT, nsp: '/', data: null })],
    ])
      test(`${what} closes the connection`, async () => {
        const socket = new EngineSocket(server);
        await socket.opened;
        socket.send(...packets);
        await socket.ended();
      });

    test('an invalid packet in a POST ends the session', async () => {
      const session = await EngineSession.start(server);
      await session.post(`b${Buffer.from([0xc1]).toString('base64')}`);
      await assert.rejects(async () => {
        for (;;) if ((await session.poll()).includes('1')) throw new Error('closed');
      });
    });

    for (const [what, ...packets] of [
      ['an unknown event', packet(EVENT, ['no such thing', 1, 2, 3])],
      ['a number as event name', packet(EVENT, [7])],
      ['an unexpected acknowledgement', packet(ACK, ['x'], { id: 99 })],
      ['unknown members', packet(EVENT, ['no such thing'], { options: {}, x: [{}] })],
    ])
      test(`${what} does no harm`, async () => {
        const socket = await joinBySocket(server, 'odd');
        socket.send(...packets, packet(EVENT, ['heartbeat', {}], { id: 5 }));
        const isAnswer = (answer) => Buffer.isBuffer(answer) && answer.includes('server_time');
        while (!isAnswer(await socket.take()));
        socket.terminate();
      });
  },
  { parser },
);

describe('MessagePack clients among others', () => {
  let server;
  let backend;
  let proxy;

  before(async () => {
    server = await startServer({
      args: ['--workers', '2'],
      settings: { 'socketio.ping_interval_ms': 300, 'socketio.ping_timeout_ms': 300 },
    });
    backend = await server.token('backend', { scope: 'deliver' });
    proxy = await startProxy(server.port);
  });
  after(async () => {
    proxy.close();
    assert.equal(await server.stop(), 0);
  });
  afterEach(() => {
    closeAll();
    closeAllSocketIo();
  });

  const isAbout = (userId) => (event) => event.userId === userId;

  for (const [transport, transports] of Object.entries(TRANSPORTS))
    describe(transport, () => {
      const join = (user, options) =>
        connectSocketIo(server, user, { transports, parser, ...options });

      test('presence, messages and typing pass between clients of every kind', async () => {
        const [ann, bob, cat] = uniqueUsers('ann', 'bob', 'cat');
        await befriend(server, ann, bob);
        await befriend(server, ann, cat);
        await befriend(server, bob, cat);
        const packed = await join(ann);
        const plain = await join(bob, { parser: undefined });
        const native = await connect(server, cat);
        await packed.next('friend_online', isAbout(bob));
        await packed.next('friend_online', isAbout(cat));
        const chatId = await newChat(server, ann, bob, cat);
        const chat = { chat_id: chatId };
        assert.equal((await packed.ask('open_chat', chat)).type, 'chat_snapshot');
        await plain.ask('open_chat', chat);
        await native.ask({ type: 'open_chat', ...chat });
        const body = 'häl€o \u{1f600} "\\\n\u0000';
        const stored = await packed.ask('send_message', {
          ...chat, client_message_id: 'p', body, unsaid: undefined,
        });
        assert.equal(stored.type, 'message_ack');
        assert.equal((await plain.next('message')).body, body);
        assert.equal((await native.next('message')).body, body);
        await plain.ask('send_message', { ...chat, client_message_id: 'q', body: `${body}2` });
        assert.equal((await packed.next('message')).body, `${body}2`);
        await sendMessage(native, chatId, `${body}3`);
        const { body: third, sequence } = await packed.next('message');
        assert.equal(third, `${body}3`);
        assert.equal(sequence, stored.sequence + 2);
        native.send({ type: 'typing_start', ...chat });
        assert.deepEqual(await packed.next('typing', isAbout(cat)), {
          roomId: chatId, userId: cat, typing: true,
        });
        packed.emit('typing:start', { roomId: chatId });
        assert.equal((await plain.next('typing', isAbout(ann))).typing, true);
        packed.close();
        await plain.next('friend_offline', isAbout(ann));
        assert.equal((await native.nextChange(ann, 'offline')).status, 'offline');
      });

      test('a call and its signals pass between MessagePack and JSON clients', async () => {
        const [ann, bob] = uniqueUsers('ann', 'bob');
        await befriend(server, ann, bob);
        const [caller, callee] = [await join(ann), await join(bob, { parser: undefined })];
        const { call_id: callId } = await caller.ask('call:request', { to: bob });
        const incoming = await callee.next('call:incoming');
        assert.equal(incoming.callId, callId);
        assert.equal(incoming.from, ann);
        callee.emit('call:accept', { from: ann });
        await caller.next('call:accepted');
        const data = { sdp: 'offer', numbers: [1, -1, 0.5, 2 ** 40, -(2 ** 40)], none: null };
        for (const signal of [data, nested(30)]) {
          caller.emit('call_signal', { call_id: callId, data: signal });
          assert.deepEqual((await callee.next('call_signal')).data, signal);
          callee.emit('call_signal', { call_id: callId, data: signal });
          assert.deepEqual((await caller.next('call_signal')).data, signal);
        }
        for (const client of [caller, callee]) {
          const refused = await client.ask('call_signal', { call_id: callId, data: nested(31) });
          assert.deepEqual([refused.type, refused.code], ['error', 'INVALID_MESSAGE']);
          assert.match(refused.message, /nested too deep/);
        }
        caller.emit('call:end');
        await callee.next('call:ended');
      });

      test('deliveries of any JSON arrive unchanged', async () => {
        const [ann] = uniqueUsers('ann');
        const client = await join(ann);
        for (const data of [
          [0, 127, 128, 255, 256, 65535, 65536, 2 ** 32, Number.MAX_SAFE_INTEGER],
          [-1, -32, -33, -128, -129, -32768, -32769, -(2 ** 31) - 1, Number.MIN_SAFE_INTEGER],
          [0.1, -1e-300, 1e300, true, false, null, '', 'ä€\u{1f600}"\\\u0000', [], {}],
          { long: 'x'.repeat(3000), many: Array(300).fill(7) },
          Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`key ${at}`, { at }])),
          nested(30),
        ]) {
          await deliver(server, backend, ann, data);
          assert.deepEqual((await client.next('delivery')).data, data);
        }
      });

      for (const [what, value] of Object.entries({
        binary: Buffer.from('hi'),
        'an ArrayBuffer': new Uint8Array([1, 2]).buffer,
        'a date': new Date(),
        'nested too deep': JSON.parse(`${'['.repeat(50)}${']'.repeat(50)}`),
      }))
        test(`an argument that is ${what} is refused, and the connection stays`, async () => {
          const [ann] = uniqueUsers('ann');
          await expectRefused(await join(ann), value);
        });

      test('a client is recovered repeatedly, with its id and the events it missed', async () => {
        const [ann] = uniqueUsers('ann');
        const client = await connectSocketIo({ ...server, url: proxy.url }, ann, {
          transports, parser, randomizationFactor: 0,
        });
        const { id } = client.socket;
        const send = (text) => deliver(server, backend, ann, { text });
        const cutOffWhile = (meanwhile) =>
          cutOff(client, ann, { server, awayMs: 600, cut: () => proxy.cut(), meanwhile });
        await send('before');
        assert.equal(await nextText(client), 'before');
        for (const [one, two] of [['one', 'two'], ['ä\n"', 'three']]) {
          await cutOffWhile(async () => {
            await send(one);
            await send(two);
          });
          assert.equal(client.socket.recovered, true);
          assert.equal(client.socket.id, id);
          assert.equal(await nextText(client), one);
          assert.equal(await nextText(client), two);
        }
        await send('after');
        assert.equal(await nextText(client), 'after');
        await client.settle();
        assert.equal(client.count('delivery'), 0, 'each event comes once');
      });

      test('an invalid token is refused, and a valid one is accepted afterwards', async () => {
        const [ann] = uniqueUsers('ann');
        const auth = { token: 'nonsense' };
        const client = openSocketIo(server, { transports, parser, auth });
        const { data } = await connectError(client);
        assert.equal(data.code, 'UNAUTHENTICATED');
        auth.token = await server.token(ann);
        client.socket.connect();
        await client.connected();
        assert.ok('server_time' in (await client.ask('heartbeat', {})));
      });

      test('user:disconnect is acknowledged, and the server disconnects', async () => {
        const [ann] = uniqueUsers('ann');
        const client = await join(ann);
        const disconnected = client.disconnected();
        assert.equal((await client.ask('user:disconnect')).type, 'ok');
        assert.equal(await disconnected, 'io server disconnect');
      });
    });
});
