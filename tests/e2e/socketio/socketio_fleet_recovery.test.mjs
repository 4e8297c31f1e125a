/**
 * Connection state recovery in a fleet: a client that is cut off from one gateway is recovered by another, with
 * its id and the events it missed, once and in order. What cannot be recovered becomes a new session.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { makeChat } from '../support/chats.mjs';
import { closeAll, connect, deliver, eventually, metric, sleep } from '../support/client.mjs';
import { BACKENDS, isReady, startFleet } from '../support/fleet.mjs';
import { befriend, uniqueUsers } from '../support/contacts.mjs';
import { startProxy } from '../support/proxy.mjs';
import { cutOff, nextText, waitUntilOffline } from '../support/recovery.mjs';
import { closeAllSocketIo, connectSocketIo, PARSERS, TRANSPORTS } from '../support/socketio.mjs';

const RECOVERY_MS = 6000;
/** The store's bound (recovery_store.h). */
const EVENTS_MAX = 100;

for (const [kind, backend] of Object.entries(BACKENDS))
  describe(`recovery in a fleet, ${kind} Redis`, () => {
    let redis;
    let fleet;
    let one;
    let two;
    let proxy;
    let sender;

    before(async () => {
      redis = await backend.start();
      fleet = await startFleet({
        redis,
        settings: {
          'socketio.recovery_ms': RECOVERY_MS,
          'socketio.ping_interval_ms': 300,
          'socketio.ping_timeout_ms': 300,
          'gateway.shutdown.drain_timeout_seconds': 2,
        },
      });
      [one, two] = fleet.gateways;
      proxy = await startProxy(one.port);
      sender = await two.token('backend', { scope: 'deliver' });
    });
    after(async () => {
      proxy?.close();
      await fleet?.stop();
      await redis?.stop();
    });
    afterEach(() => {
      closeAll();
      closeAllSocketIo();
      proxy.forwardTo(one.port);
    });

    const join = (user, options) =>
      connectSocketIo({ ...one, url: proxy.url }, user, { randomizationFactor: 0, ...options });

    const send = (user, text, from = two) => deliver(from, sender, user, { text });

    /** Cuts the client off from one gateway, runs `meanwhile`, and waits until it has reconnected to the other. */
    const move = (client, user, meanwhile, { awayMs = 900, to = two } = {}) => {
      const cut = () => {
        proxy.forwardTo(to.port);
        proxy.cut();
      };
      return cutOff(client, user, { server: two, awayMs, cut, meanwhile });
    };

    const KINDS = Object.entries(PARSERS).flatMap(([parserName, parser]) =>
      Object.entries(TRANSPORTS).map(([transport, transports]) => [
        `${transport}, ${parserName}`,
        { transports, parser },
      ]),
    );
    for (const [name, options] of KINDS)
      test(`a client is recovered on the other gateway, and again on the first: ${name}`, async () => {
        const [ann] = uniqueUsers('ann');
        const client = await join(ann, options);
        const { id } = client.socket;
        await send(ann, 'before');
        assert.equal(await nextText(client), 'before');
        await move(client, ann, async () => {
          await send(ann, 'one');
          await send(ann, 'two', one);
          await send(ann, 'three');
        });
        assert.equal(client.socket.recovered, true);
        assert.equal(client.socket.id, id);
        const missed = [await nextText(client), await nextText(client), await nextText(client)];
        assert.deepEqual(missed.sort(), ['one', 'three', 'two']); // from two gateways, so in any order
        await send(ann, 'between');
        assert.equal(await nextText(client), 'between');
        await move(client, ann, () => send(ann, 'four'), { to: one });
        assert.equal(client.socket.recovered, true);
        assert.equal(client.socket.id, id);
        assert.equal(await nextText(client), 'four');
        await client.settle();
        assert.equal(client.count('delivery'), 0, 'each event comes once');
      });

    test('events sent while a client is cut off and reconnects arrive once and in order', async () => {
      const [ann] = uniqueUsers('ann');
      const client = await join(ann, { transports: ['websocket'] });
      let sent = 0;
      let goesOn = true;
      const stream = (async () => {
        while (goesOn && sent < EVENTS_MAX - 10) {
          await send(ann, `${sent}`);
          sent += 1;
          await sleep(10);
        }
      })();
      await sleep(100);
      const reconnected = client.connected();
      client.socket.io.reconnectionDelay(200);
      proxy.forwardTo(two.port);
      proxy.cut();
      await reconnected;
      await sleep(100);
      goesOn = false;
      await stream;
      assert.equal(client.socket.recovered, true);
      for (let at = 0; at < sent; at += 1) assert.equal(await nextText(client), `${at}`);
      await client.settle();
      assert.equal(client.count('delivery'), 0, 'each event comes once');
    });

    test('a client that is away too long gets a new session', async () => {
      const [ann] = uniqueUsers('ann');
      const client = await join(ann, { transports: ['websocket'] });
      const { id } = client.socket;
      await move(client, ann, () => send(ann, 'lost'), { awayMs: RECOVERY_MS + 1000 });
      assert.equal(client.socket.recovered, false);
      assert.notEqual(client.socket.id, id);
      await client.settle();
      assert.equal(client.count('delivery'), 0);
    });

    test('a client with too many missed events is not recovered in part', async () => {
      const [ann] = uniqueUsers('ann');
      const client = await join(ann, { transports: ['websocket'] });
      await move(
        client,
        ann,
        () => Promise.all(Array.from({ length: EVENTS_MAX + 1 }, (_, at) => send(ann, `${at}`))),
        { awayMs: RECOVERY_MS - 1000 },
      );
      assert.equal(client.socket.recovered, false);
      await client.settle();
      assert.equal(client.count('delivery'), 0);
    });

    test('an invalid event in Redis prevents recovery and does no harm', async () => {
      const [ann] = uniqueUsers('ann');
      const client = await join(ann, { transports: ['polling'] });
      const { id } = client.socket;
      await move(client, ann, async () => {
        await send(ann, 'lost');
        const findList = async () => (await redis.keys(`recovery_events:*${ann}*`))[0];
        const list = await eventually(findList, 'an event is stored in Redis');
        await redis.command('RPUSH', list, `${'f'.repeat(16)}${'0'.repeat(15)}1\x01`);
      });
      assert.equal(client.socket.recovered, false);
      assert.notEqual(client.socket.id, id);
      await send(ann, 'after');
      assert.equal(await nextText(client), 'after');
    });

    test('another user’s private id recovers nothing and does not disturb its owner', async () => {
      const [ann, eve] = uniqueUsers('ann', 'eve');
      const client = await join(ann, { transports: ['websocket'] });
      await client.settle();
      const { _pid: pid, _lastOffset: offset, id } = client.socket;
      let thief;
      await move(client, ann, async () => {
        await send(ann, 'secret');
        const token = await two.token(eve);
        thief = await connectSocketIo(two, eve, { auth: { token, pid, offset } });
      });
      assert.notEqual(thief.socket.id, id);
      await thief.settle();
      assert.equal(thief.count('delivery'), 0);
      assert.equal(client.socket.id, id);
      assert.equal(await nextText(client), 'secret');
    });

    test('only one of two connections with the same private id is recovered', async () => {
      const [ann] = uniqueUsers('ann');
      const client = await join(ann, { transports: ['websocket'], reconnection: false });
      await client.settle();
      const { _pid: pid, _lastOffset: offset, id } = client.socket;
      proxy.cut();
      await waitUntilOffline(two, ann);
      const token = await two.token(ann);
      const both = await Promise.all(
        [one, two].map((server) => connectSocketIo(server, ann, { auth: { token, pid, offset } })),
      );
      assert.equal(both.filter(({ socket }) => socket.id === id).length, 1);
    });

    test('a client of a draining gateway is recovered on another', async () => {
      const third = await fleet.start('gw-003');
      await fleet.waitUntilLinked();
      proxy.forwardTo(third.port);
      const [ann] = uniqueUsers('ann');
      const client = await join(ann, { transports: ['websocket'] });
      const { id } = client.socket;
      await send(ann, 'before');
      assert.equal(await nextText(client), 'before');
      let stopped;
      const cut = () => {
        proxy.forwardTo(two.port);
        stopped = third.stop();
      };
      await cutOff(client, ann, { server: two, awayMs: 900, cut, meanwhile: () => send(ann, 'missed') });
      assert.equal(await stopped, 0);
      assert.equal(client.socket.recovered, true);
      assert.equal(client.socket.id, id);
      assert.equal(await nextText(client), 'missed');
      await client.settle();
      assert.equal(client.count('delivery'), 0, 'each event comes once');
    });

    test('a client of a crashed gateway gets a new session', async () => {
      const third = await fleet.start('gw-004');
      proxy.forwardTo(third.port);
      const [ann] = uniqueUsers('ann');
      const client = await join(ann, { transports: ['websocket'] });
      const { id } = client.socket;
      const reconnected = client.connected();
      proxy.forwardTo(two.port);
      await fleet.crash(third);
      await reconnected;
      assert.equal(client.socket.recovered, false);
      assert.notEqual(client.socket.id, id);
      await send(ann, 'after');
      assert.equal(await nextText(client), 'after');
    });

    test('a client that missed events while Redis was unavailable is not recovered', async () => {
      const [ann, bob] = uniqueUsers('ann', 'bob');
      const chatId = `chat-${ann}`;
      await befriend(two, ann, bob);
      await makeChat(two, chatId, ann, bob);
      const native = await connect(two, bob);
      const client = await join(ann, { transports: ['websocket'] });
      const sendWithoutRedis = async (body) => {
        const before = await metric(two, 'fanout_broadcasts');
        await redis.pause();
        const message = { type: 'send_message', chat_id: chatId, client_message_id: body, body };
        assert.equal((await native.ask(message)).type, 'message_ack');
        await eventually(async () => (await metric(two, 'fanout_broadcasts')) > before, 'the message is broadcast');
        await redis.resume();
        await eventually(() => isReady(two), 'the gateway is ready again');
      };
      await move(client, ann, () => sendWithoutRedis('not kept'), { awayMs: RECOVERY_MS - 1000 });
      assert.equal(client.socket.recovered, false);
      await move(client, ann, () => send(ann, 'kept'), { to: one });
      assert.equal(client.socket.recovered, true);
      assert.equal(await nextText(client), 'kept');
    });

    test('the gateway that recovers a client counts it', async () => {
      assert.ok((await metric(two, 'socketio_recovered')) > 0);
    });
  });
