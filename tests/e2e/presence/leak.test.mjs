/**
 * Privacy of every output of the server, for every relation between two users and every setting.
 *
 * A viewer and a target are brought into a relation. The target connects, types, becomes idle and
 * disconnects, and every output that the viewer gets is compared with what privacy allows. A blocked viewer
 * must get, byte for byte, what a viewer who is no contact gets when the target is visible to nobody.
 *
 * Add a new output as a row of OUTPUTS, and a new relation as an entry of RELATIONS.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { closeAll, connect, devToken, setVisibility, sleep } from '../support/client.mjs';
import {
  befriend,
  block,
  expectRest,
  removeContact,
  requestContact,
  uniqueUsers,
} from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';

/** Time in which an unexpected message would have arrived. */
const QUIET_MS = 200;
const SETTINGS = ['everyone', 'contacts_only', 'nobody'];

let server;
before(async () => {
  server = await startServer({
    args: ['--workers', '2'],
    settings: { 'gateway.backpressure.inbound.command_rate_burst': 1000 },
  });
});
after(async () => {
  closeAll();
  await server.stop();
});

/** How each relation of a viewer to a target is made. */
const RELATIONS = {
  no_contact: async () => {},
  contact: (viewer, target) => befriend(server, viewer, target),
  requested: (viewer, target) => requestContact(server, viewer, target),
  requested_by_target: (viewer, target) => requestContact(server, target, viewer),
  removed: async (viewer, target) => {
    await befriend(server, viewer, target);
    await removeContact(server, target, viewer);
  },
  blocker: (viewer, target) => block(server, viewer, target),
  blocked: (viewer, target) => block(server, target, viewer),
  blocked_contact: async (viewer, target) => {
    await befriend(server, viewer, target);
    await block(server, target, viewer);
  },
  blocked_requested: async (viewer, target) => {
    await requestContact(server, viewer, target);
    await block(server, target, viewer);
  },
};

/** What privacy allows; every output is compared with it. */
function allowed(relation, presence, lastSeen) {
  const isContact = relation === 'contact';
  const isBlocked = relation.startsWith('blocked');
  const allows = (setting) =>
    !isBlocked && (setting === 'everyone' || (setting === 'contacts_only' && isContact));
  const visible = allows(presence);
  return {
    visible,
    isContact,
    lastSeen: visible && allows(lastSeen),
    typing: presence !== 'nobody' && !relation.includes('block'),
    reason: isBlocked || presence === 'nobody' ? 'privacy' : 'not_contacts',
  };
}

/** Replaces everything in an answer that differs between any two users. */
function anonymous(text, { viewer, target, chat }) {
  return text
    .replaceAll(viewer, 'VIEWER')
    .replaceAll(target, 'TARGET')
    .replaceAll(chat, 'CHAT')
    .replace(/"(id|request_id|call_id)":"[^"]*"/g, '"$1":"ID"')
    .replace(/"version":[1-9]\d*/g, '"version":"GREATER THAN 0"')
    .replace(/"(timestamp|created_at|server_time|last_activity)":"[^"]*"/g, '"$1":"TIME"');
}

async function restText(scene, method, path, body) {
  const response = await fetch(new URL(path, server.url), {
    method,
    headers: { Authorization: `Bearer ${scene.token}` },
    body: body && JSON.stringify(body),
  });
  return `${response.status} ${await response.text()}`;
}

const restJson = (text) => JSON.parse(text.slice(text.indexOf(' ')));

/** Takes the messages of these types that a client has received. */
function takePushes(client, ...types) {
  const found = client.messages.filter(({ type }) => types.includes(type));
  client.messages = client.messages.filter(({ type }) => !types.includes(type));
  return found;
}

const expectPresence = (presence, expected, status) => {
  if (!expected.visible) {
    assert.equal(presence.status, 'unknown');
    assert.equal(presence.reason, expected.reason);
    assert.deepEqual([presence.version, presence.in_call, presence.last_seen], [0, false, null]);
  } else {
    assert.equal(presence.status, status);
    assert.equal('reason' in presence, false);
    assert.equal(presence.last_seen !== null, expected.lastSeen && status === 'offline');
  }
};

/** Expects the right changes of the target on one connection, or none if it may receive none. */
const expectChanges = (texts, expected, mayReceive) => {
  const changes = texts.map((text) => JSON.parse(text));
  assert.deepEqual(
    changes.map(({ status }) => status),
    mayReceive ? ['online', 'away', 'offline'] : [],
  );
  for (const change of changes) expectPresence(change, expected, change.status);
};

/**
 * The outputs. `read` returns texts, which are compared byte for byte if the target is hidden; `expect`
 * checks them. All are read after the target has disconnected.
 */
const OUTPUTS = {
  'GET /v1/presence/{user}': {
    read: async (scene) => [await restText(scene, 'GET', `/v1/presence/${scene.target}`)],
    expect: ([text], expected) => expectPresence(restJson(text), expected, 'offline'),
  },
  'GET /v1/presence?users=': {
    read: async (scene) => [
      await restText(scene, 'GET', `/v1/presence?users=${scene.target},${scene.target}`),
    ],
    expect: ([text], expected) => {
      const { presences } = restJson(text);
      assert.equal(presences.length, 2);
      for (const presence of presences) expectPresence(presence, expected, 'offline');
    },
  },
  'GET /v1/friends': {
    read: async (scene) => [await restText(scene, 'GET', '/v1/friends')],
    expect: ([text], expected) => {
      const { friends } = restJson(text);
      assert.equal(friends.length, expected.isContact ? 1 : 0);
      for (const friend of friends) expectPresence(friend, expected, 'offline');
    },
  },
  'GET /v1/friends?status=': {
    read: async (scene) => [
      await restText(scene, 'GET', '/v1/friends?status=online'),
      await restText(scene, 'GET', '/v1/friends?status=offline'),
    ],
    expect: ([online, offline], expected) => {
      assert.equal(restJson(online).friends.length, 0);
      assert.equal(restJson(offline).friends.length, expected.isContact && expected.visible ? 1 : 0);
    },
  },
  'POST /v1/contact-requests': {
    read: async (scene) => [
      await restText(scene, 'POST', '/v1/contact-requests', { to: scene.target }),
      await restText(scene, 'GET', '/v1/contact-requests'),
    ],
    expect: () => {},
    last: true, // because it changes the relation
  },
  query_presence: {
    read: async ({ plain, target }) => [JSON.stringify(await plain.query(target))],
    expect: ([text], expected) => expectPresence(JSON.parse(text)[0], expected, 'offline'),
  },
  subscribe_presence: {
    read: async ({ plain, target }) => [JSON.stringify(await plain.subscribe(target))],
    expect: ([text], expected) => expectPresence(JSON.parse(text)[0], expected, 'offline'),
  },
  chat_snapshot: {
    read: async ({ plain, chat }) => [JSON.stringify(await plain.ask({ type: 'open_chat', chat_id: chat }))],
    expect: ([text], expected, { target }) => {
      const { presences, typing } = JSON.parse(text);
      expectPresence(
        presences.find(({ user_id }) => user_id === target),
        expected,
        'offline',
      );
      assert.deepEqual(typing, []);
    },
  },
  'GET /v1/chats/{chat}': {
    read: async (scene) => [
      await restText(scene, 'GET', `/v1/chats/${scene.chat}`),
      await restText(scene, 'GET', '/v1/chats'),
    ],
    expect: ([one, list], expected, { target }) => {
      assert.ok(restJson(one).members.includes(target), 'also across a block: the two share the chat');
      assert.equal(restJson(list).chats.length, 1);
    },
  },
  'changes without a subscription': {
    read: async ({ changes }) => changes.plain,
    expect: (texts, expected) => expectChanges(texts, expected, expected.visible && expected.isContact),
  },
  'changes with a subscription': {
    read: async ({ changes }) => changes.watching,
    expect: (texts, expected) => expectChanges(texts, expected, expected.visible),
  },
  'changes in an open chat': {
    read: async ({ changes }) => changes.chatting,
    expect: (texts, expected) => expectChanges(texts, expected, expected.visible),
  },
  'typing in an open chat': {
    read: async ({ typing }) => typing,
    expect: (texts, expected) =>
      assert.deepEqual(
        texts.map((text) => JSON.parse(text).typing),
        expected.typing ? [true, false] : [],
      ),
  },
  call_request: {
    read: async ({ plain, target }) => [
      JSON.stringify(await plain.ask({ type: 'call_request', to: target })),
    ],
    expect: ([text], expected) =>
      expected.isContact || assert.equal(JSON.parse(text).type, 'error'),
  },
};

/** The target connects, types, becomes idle and disconnects, while the viewer watches in every way. */
async function play({ relation, presence, lastSeen }) {
  const [viewer, target] = uniqueUsers('viewer', 'target');
  const { chat_id: chat } = await expectRest(server, 201, 'POST', '/v1/chats', viewer, {
    members: [target],
  });
  await setVisibility(server, target, presence, lastSeen);
  await RELATIONS[relation](viewer, target);
  const token = await devToken(server, viewer);
  const open = () => connect(server, viewer, { token });
  const [plain, watching, chatting] = [await open(), await open(), await open()];
  await watching.subscribe(target);
  await chatting.ask({ type: 'open_chat', chat_id: chat });
  const targets = await connect(server, target);
  await targets.ask({ type: 'open_chat', chat_id: chat });
  for (const command of ['typing_start', 'typing_stop']) {
    targets.send({ type: command, chat_id: chat });
    await targets.settle();
    await sleep(QUIET_MS / 2);
  }
  targets.send({ type: 'heartbeat', active: false });
  await targets.settle();
  await sleep(QUIET_MS / 4); // so that the next change does not replace this one in a queue
  await targets.close();
  await sleep(QUIET_MS);
  const clients = { plain, watching, chatting };
  for (const client of Object.values(clients)) await client.settle();
  const changes = Object.fromEntries(
    Object.entries(clients).map(([name, client]) => [
      name,
      takePushes(client, 'presence_changed')
        .filter(({ user_id }) => user_id === target)
        .map((message) => JSON.stringify(message)),
    ]),
  );
  const typing = takePushes(chatting, 'typing_changed').map((message) => JSON.stringify(message));
  watching.terminate();
  chatting.terminate();
  return { viewer, target, chat, token, plain, changes, typing };
}

/** The texts of every output, by name. */
async function readAll(scene) {
  const texts = {};
  const rows = Object.entries(OUTPUTS).sort(([, a], [, b]) => (a.last ?? 0) - (b.last ?? 0));
  for (const [name, { read }] of rows) texts[name] = await read(scene);
  return texts;
}

const cases = Object.keys(RELATIONS).flatMap((relation) =>
  SETTINGS.flatMap((presence) =>
    SETTINGS.map((lastSeen) => ({ relation, presence, lastSeen })),
  ),
);

const describeCase = ({ relation, presence, lastSeen }) =>
  `${relation}, presence for ${presence}, last seen for ${lastSeen}`;

/** For a blocked relation, the relation that must look the same when the target is visible to nobody. */
const ALIKE = { blocked: 'no_contact', blocked_contact: 'no_contact', blocked_requested: 'requested' };

describe('every output shows what privacy allows', { concurrency: 4 }, () => {
  /** By relation, the texts of a target who is visible to nobody. */
  const hidden = {};
  before(async () => {
    for (const relation of new Set(Object.values(ALIKE))) {
      const scene = await play({ relation, presence: 'nobody', lastSeen: 'nobody' });
      hidden[relation] = await readAll(scene);
      for (const texts of Object.values(hidden[relation]))
        for (const [at, text] of texts.entries()) texts[at] = anonymous(text, scene);
    }
  });

  for (const one of cases)
    test(describeCase(one), async () => {
      const scene = await play(one);
      const expected = allowed(one.relation, one.presence, one.lastSeen);
      const texts = await readAll(scene);
      for (const [name, { expect }] of Object.entries(OUTPUTS)) {
        try {
          expect(texts[name], expected, scene);
        } catch (error) {
          error.message = `${name}: ${error.message}\n${texts[name].join('\n')}`;
          throw error;
        }
      }
      scene.plain.terminate();
      const alike = hidden[ALIKE[one.relation]];
      for (const [name, found] of Object.entries(alike ? texts : {}))
        assert.deepEqual(
          found.map((text) => anonymous(text, scene)),
          alike[name],
          `${name} reveals a block`,
        );
    });
});

test('a blocked contact receives the same as when the other user hides and removes the contact', async () => {
  const ends = {
    blocked: (viewer, target) => block(server, target, viewer),
    hidden: async (viewer, target) => {
      await setVisibility(server, target, 'nobody');
      await removeContact(server, target, viewer);
    },
  };
  const received = {};
  for (const [name, end] of Object.entries(ends)) {
    const [viewer, target] = uniqueUsers('viewer', 'target');
    await befriend(server, viewer, target);
    await connect(server, target);
    const clients = [await connect(server, viewer), await connect(server, viewer)];
    await clients[1].subscribe(target);
    for (const client of clients) await client.settle();
    for (const client of clients) client.messages = [];
    await end(viewer, target);
    await sleep(QUIET_MS);
    received[name] = clients.map(({ messages }) =>
      messages.map((message) =>
        anonymous(JSON.stringify(message), { viewer, target, chat: 'none' }),
      ),
    );
  }
  assert.deepEqual(received.blocked, received.hidden);
  assert.equal(received.blocked[0].length, 2);
});
