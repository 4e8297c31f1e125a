/**
 * Connection state recovery in a fleet: who is cut off by one gateway is recovered by another, with its id and
 * what it missed, once and in order; what cannot be recovered is a clean new session.
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

    /** Cut off by one gateway, away while `meanwhile` goes on, then back by itself on the other. */
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
      test(`${name}: recovered on the other gateway, and back on the first`, async () => {
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
        assert.deepEqual(missed.sort(), ['one', 'three', 'two']); // by two roads: in any order
        await send(ann, 'between');
        assert.equal(await nextText(client), 'between');
        await move(client, ann, () => send(ann, 'four'), { to: one });
        assert.equal(client.socket.recovered, true);
        assert.equal(client.socket.id, id);
        assert.equal(await nextText(client), 'four');
        await client.settle();
        assert.equal(client.count('delivery'), 0, 'each once');
      });

    test('whatever comes while it is cut off and comes back, comes once and in order', async () => {
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
      const back = client.connected();
      client.socket.io.reconnectionDelay(200);
      proxy.forwardTo(two.port);
      proxy.cut();
      await back;
      await sleep(100);
      goesOn = false;
      await stream;
      assert.equal(client.socket.recovered, true);
      for (let at = 0; at < sent; at += 1) assert.equal(await nextText(client), `${at}`);
      await client.settle();
      assert.equal(client.count('delivery'), 0, 'each once');
    });

    test('who is away for too long starts anew', async () => {
      const [ann] = uniqueUsers('ann');
      const client = await join(ann, { transports: ['websocket'] });
      const { id } = client.socket;
      await move(client, ann, () => send(ann, 'lost'), { awayMs: RECOVERY_MS + 1000 });
      assert.equal(client.socket.recovered, false);
      assert.notEqual(client.socket.id, id);
      await client.settle();
      assert.equal(client.count('delivery'), 0);
    });

    test('too much to keep is not recovered in part', async () => {
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

    test('an event in Redis that is none is not recovered, and does no harm', async () => {
      const [ann] = uniqueUsers('ann');
      const client = await join(ann, { transports: ['polling'] });
      const { id } = client.socket;
      await move(client, ann, async () => {
        await send(ann, 'lost');
        const kept = async () => (await redis.keys(`recovery_events:*${ann}*`))[0];
        const list = await eventually(kept, 'event in Redis');
        await redis.command('RPUSH', list, `${'f'.repeat(16)}${'0'.repeat(15)}1\x01`);
      });
      assert.equal(client.socket.recovered, false);
      assert.notEqual(client.socket.id, id);
      await send(ann, 'after');
      assert.equal(await nextText(client), 'after');
    });

    test('the private id of somebody else recovers nothing, and takes nothing away', async () => {
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

    test('of two connections with one private id, one is recovered', async () => {
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

    test('who is sent away by a drain is recovered elsewhere', async () => {
      const third = await fleet.start('gw-003');
      await fleet.waitUntilLinked();
      proxy.forwardTo(third.port);
      const [ann] = uniqueUsers('ann');
      const client = await join(ann, { transports: ['websocket'] });
      const { id } = client.socket;
      await send(ann, 'before');
      assert.equal(await nextText(client), 'before');
      let ended;
      const cut = () => {
        proxy.forwardTo(two.port);
        ended = third.stop();
      };
      await cutOff(client, ann, { server: two, awayMs: 900, cut, meanwhile: () => send(ann, 'missed') });
      assert.equal(await ended, 0);
      assert.equal(client.socket.recovered, true);
      assert.equal(client.socket.id, id);
      assert.equal(await nextText(client), 'missed');
      await client.settle();
      assert.equal(client.count('delivery'), 0, 'each once');
    });

    test('with its gateway a session dies', async () => {
      const third = await fleet.start('gw-004');
      proxy.forwardTo(third.port);
      const [ann] = uniqueUsers('ann');
      const client = await join(ann, { transports: ['websocket'] });
      const { id } = client.socket;
      const back = client.connected();
      proxy.forwardTo(two.port);
      await fleet.crash(third);
      await back;
      assert.equal(client.socket.recovered, false);
      assert.notEqual(client.socket.id, id);
      await send(ann, 'after');
      assert.equal(await nextText(client), 'after');
    });

    test('what went by while Redis was away is not passed over in silence', async () => {
      const [ann, bob] = uniqueUsers('ann', 'bob');
      const chatId = `chat-${ann}`;
      await befriend(two, ann, bob);
      await makeChat(two, chatId, ann, bob);
      const native = await connect(two, bob);
      const client = await join(ann, { transports: ['websocket'] });
      const say = async (body) => {
        const before = await metric(two, 'fanout_broadcasts');
        await redis.pause();
        const message = { type: 'send_message', chat_id: chatId, client_message_id: body, body };
        assert.equal((await native.ask(message)).type, 'message_ack');
        await eventually(async () => (await metric(two, 'fanout_broadcasts')) > before, 'broadcast');
        await redis.resume();
        await eventually(() => isReady(two), 'Redis is back');
      };
      await move(client, ann, () => say('not kept'), { awayMs: RECOVERY_MS - 1000 });
      assert.equal(client.socket.recovered, false);
      await move(client, ann, () => send(ann, 'kept'), { to: one });
      assert.equal(client.socket.recovered, true);
      assert.equal(await nextText(client), 'kept');
    });

    test('recoveries are counted where they happen', async () => {
      assert.ok((await metric(two, 'socketio_recovered')) > 0);
    });
  });
