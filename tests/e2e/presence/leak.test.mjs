/**
 * Who may see what, on every way out of the server: every relation between two people × every setting.
 *
 * A viewer and a target are brought into a relation; the target comes, types, goes away and leaves; and
 * everything the viewer can get is compared with what privacy allows. What a blocked viewer gets must be,
 * to the byte, what a stranger gets from a target who shows nobody.
 *
 * A new output is a new row of OUTPUTS; a new relation a new entry of RELATIONS.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { closeAll, connect, devToken, setVisibility, sleep } from '../support/client.mjs';
import {
  requestContact,
  befriend,
  block,
  expectRest,
  uniqueUsers,
  removeContact,
} from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';

/** Long enough for what must not come to have come. */
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

/** How each relation comes about. */
const RELATIONS = {
  stranger: async () => {},
  contact: (viewer, target) => befriend(server, viewer, target),
  asked: (viewer, target) => requestContact(server, viewer, target),
  wanted: (viewer, target) => requestContact(server, target, viewer),
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
  blocked_asked: async (viewer, target) => {
    await requestContact(server, viewer, target);
    await block(server, target, viewer);
  },
};

/** What privacy allows: the truth that every output is held against. */
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
    reason: isBlocked || presence === 'nobody' ? 'privacy' : 'not_contacts',
  };
}

/** An answer's text with what differs between any two people taken out. */
function anonymous(text, { viewer, target, chat }) {
  return text
    .replaceAll(viewer, 'VIEWER')
    .replaceAll(target, 'TARGET')
    .replaceAll(chat, 'CHAT')
    .replace(/"(id|request_id|call_id)":"[^"]*"/g, '"$1":"ID"')
    .replace(/"version":[1-9]\d*/g, '"version":"GREATER THAN 0"')
    .replace(/"(timestamp|created_at|server_time)":"[^"]*"/g, '"$1":"TIME"');
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

/** What the server pushed to a client of a kind, since it was last asked. */
function pushed(client, ...types) {
  const found = client.messages.filter(({ type }) => types.includes(type));
  client.messages = client.messages.filter(({ type }) => !types.includes(type));
  return found;
}

const expectPresence = (presence, truth, status) => {
  if (!truth.visible) {
    assert.equal(presence.status, 'unknown');
    assert.equal(presence.reason, truth.reason);
    assert.deepEqual([presence.version, presence.in_call, presence.last_seen], [0, false, null]);
  } else {
    assert.equal(presence.status, status);
    assert.equal('reason' in presence, false);
    assert.equal(presence.last_seen !== null, truth.lastSeen && status === 'offline');
  }
};

/** Changes of the target that one connection heard, each judged; none at all where none may come. */
const expectChanges = (texts, truth, mayHear) => {
  const heard = texts.map((text) => JSON.parse(text));
  assert.deepEqual(
    heard.map(({ status }) => status),
    mayHear ? ['online', 'away', 'offline'] : [],
  );
  for (const change of heard) expectPresence(change, truth, change.status);
};

/**
 * The ways out. `read` gives texts, of which those of a hidden target are compared byte for byte;
 * `expect` judges them. All are read when the target has come and gone.
 */
const OUTPUTS = {
  'GET /v1/presence/{user}': {
    read: async (scene) => [await restText(scene, 'GET', `/v1/presence/${scene.target}`)],
    expect: ([text], truth) => expectPresence(restJson(text), truth, 'offline'),
  },
  'GET /v1/presence?users=': {
    read: async (scene) => [
      await restText(scene, 'GET', `/v1/presence?users=${scene.target},${scene.target}`),
    ],
    expect: ([text], truth) => {
      const { presences } = restJson(text);
      assert.equal(presences.length, 2);
      for (const presence of presences) expectPresence(presence, truth, 'offline');
    },
  },
  'GET /v1/friends': {
    read: async (scene) => [await restText(scene, 'GET', '/v1/friends')],
    expect: ([text], truth) => {
      const { friends } = restJson(text);
      assert.equal(friends.length, truth.isContact ? 1 : 0);
      for (const friend of friends) expectPresence(friend, truth, 'offline');
    },
  },
  'GET /v1/friends?status=': {
    read: async (scene) => [
      await restText(scene, 'GET', '/v1/friends?status=online'),
      await restText(scene, 'GET', '/v1/friends?status=offline'),
    ],
    expect: ([online, offline], truth) => {
      assert.equal(restJson(online).friends.length, 0);
      assert.equal(restJson(offline).friends.length, truth.isContact && truth.visible ? 1 : 0);
    },
  },
  'POST /v1/contact-requests': {
    read: async (scene) => [
      await restText(scene, 'POST', '/v1/contact-requests', { to: scene.target }),
      await restText(scene, 'GET', '/v1/contact-requests'),
    ],
    expect: () => {},
    last: true, // it changes the relation
  },
  query_presence: {
    read: async ({ plain, target }) => [JSON.stringify(await plain.query(target))],
    expect: ([text], truth) => expectPresence(JSON.parse(text)[0], truth, 'offline'),
  },
  subscribe_presence: {
    read: async ({ plain, target }) => [JSON.stringify(await plain.subscribe(target))],
    expect: ([text], truth) => expectPresence(JSON.parse(text)[0], truth, 'offline'),
  },
  chat_snapshot: {
    read: async ({ plain, chat }) => [JSON.stringify(await plain.ask({ type: 'open_chat', chat_id: chat }))],
    expect: ([text], truth, { target }) => {
      const { presences, typing } = JSON.parse(text);
      expectPresence(
        presences.find(({ user_id }) => user_id === target),
        truth,
        'offline',
      );
      assert.deepEqual(typing, []);
    },
  },
  'changes without a subscription': {
    read: async ({ heard }) => heard.plain,
    expect: (texts, truth) => expectChanges(texts, truth, truth.visible && truth.isContact),
  },
  'changes with a subscription': {
    read: async ({ heard }) => heard.watching,
    expect: (texts, truth) => expectChanges(texts, truth, truth.visible),
  },
  'changes in an open chat': {
    read: async ({ heard }) => heard.chatting,
    expect: (texts, truth) => expectChanges(texts, truth, truth.visible),
  },
  'typing in an open chat': {
    read: async ({ typing }) => typing,
    expect: (texts, truth) =>
      assert.deepEqual(
        texts.map((text) => JSON.parse(text).typing),
        truth.visible ? [true, false] : [],
      ),
  },
  call_request: {
    read: async ({ plain, target }) => [
      JSON.stringify(await plain.ask({ type: 'call_request', to: target })),
    ],
    expect: ([text], truth) =>
      truth.isContact || assert.equal(JSON.parse(text).type, 'error'),
  },
};

/** The target comes, types, goes away and leaves, while the viewer watches in every way. */
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
  await sleep(QUIET_MS / 4); // so that no change overtakes another in a queue
  await targets.close();
  await sleep(QUIET_MS);
  const clients = { plain, watching, chatting };
  for (const client of Object.values(clients)) await client.settle();
  const heard = Object.fromEntries(
    Object.entries(clients).map(([name, client]) => [
      name,
      pushed(client, 'presence_changed')
        .filter(({ user_id }) => user_id === target)
        .map((message) => JSON.stringify(message)),
    ]),
  );
  const typing = pushed(chatting, 'typing_changed').map((message) => JSON.stringify(message));
  watching.terminate();
  chatting.terminate();
  return { viewer, target, chat, token, plain, heard, typing };
}

/** The texts of every output, by its name. */
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

/** Whom the blocked must not be able to tell themselves from, if these show nobody. */
const ALIKE = { blocked: 'stranger', blocked_contact: 'stranger', blocked_asked: 'asked' };

describe('every output shows what privacy allows', { concurrency: 4 }, () => {
  /** What others get of one who shows nobody, by relation. */
  const nobody = {};
  before(async () => {
    for (const relation of new Set(Object.values(ALIKE))) {
      const scene = await play({ relation, presence: 'nobody', lastSeen: 'nobody' });
      nobody[relation] = await readAll(scene);
      for (const texts of Object.values(nobody[relation]))
        for (const [at, text] of texts.entries()) texts[at] = anonymous(text, scene);
    }
  });

  for (const one of cases)
    test(describeCase(one), async () => {
      const scene = await play(one);
      const truth = allowed(one.relation, one.presence, one.lastSeen);
      const texts = await readAll(scene);
      for (const [name, { expect }] of Object.entries(OUTPUTS)) {
        try {
          expect(texts[name], truth, scene);
        } catch (error) {
          error.message = `${name}: ${error.message}\n${texts[name].join('\n')}`;
          throw error;
        }
      }
      scene.plain.terminate();
      const alike = nobody[ALIKE[one.relation]];
      for (const [name, found] of Object.entries(alike ? texts : {}))
        assert.deepEqual(
          found.map((text) => anonymous(text, scene)),
          alike[name],
          `${name} tells a block from nobody`,
        );
    });
});

test('a contact who is blocked hears what one hears of a contact who hides and then leaves', async () => {
  const ends = {
    blocked: (viewer, target) => block(server, target, viewer),
    hidden: async (viewer, target) => {
      await setVisibility(server, target, 'nobody');
      await removeContact(server, target, viewer);
    },
  };
  const heard = {};
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
    heard[name] = clients.map(({ messages }) =>
      messages.map((message) =>
        anonymous(JSON.stringify(message), { viewer, target, chat: 'none' }),
      ),
    );
  }
  assert.deepEqual(heard.blocked, heard.hidden);
  assert.equal(heard.blocked[0].length, 2);
});
