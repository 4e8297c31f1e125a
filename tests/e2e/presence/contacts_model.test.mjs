/**
 * Compares the server with a model while a few users act at random: they request contact, accept, decline,
 * withdraw, remove, block, unblock, change their settings, go away and come back. After each step, lists,
 * queries and pushed presence must agree with the model.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { closeAll, connect, devToken, eventually, rest } from '../support/client.mjs';
import { seededRandom } from '../support/random.mjs';
import { NO_BUDGETS, startServer } from '../support/server.mjs';

const USERS = ['ann', 'ben', 'cat', 'dan'];
const SETTINGS = ['everyone', 'contacts_only', 'nobody'];
const STEPS = Number(process.env.CONTACTS_MODEL_STEPS ?? 150);
const SEED = Number(process.env.CONTACTS_MODEL_SEED ?? 1);

let server;
before(async () => {
  server = await startServer({
    args: ['--workers', '2'],
    settings: { ...NO_BUDGETS, 'gateway.backpressure.inbound.command_rate_burst': 100000 },
  });
});
after(async () => {
  closeAll();
  await server.stop();
});

const pair = (a, b) => [a, b].sort().join(' ');
const arrow = (from, to) => `${from} ${to}`;

/** The expected relations, settings and status of all users. */
class Model {
  contacts = new Set(); // pairs
  requests = new Map(); // arrow → id, as the sender sees it
  hidden = new Set(); // arrows of requests hidden from their receiver
  blocks = new Set(); // arrows
  settings = Object.fromEntries(USERS.map((user) => [user, 'contacts_only']));
  status = Object.fromEntries(USERS.map((user) => [user, 'online']));

  request(from, to, answer) {
    if (this.blocks.has(arrow(from, to))) return assert.equal(answer.status, 403);
    if (this.contacts.has(pair(from, to))) {
      assert.deepEqual([answer.status, answer.body.status], [200, 'accepted']);
    } else if (this.requests.has(arrow(to, from))) {
      assert.deepEqual([answer.status, answer.body.status], [201, 'accepted']);
      this.#addContact(from, to);
    } else {
      const knownId = this.requests.get(arrow(from, to));
      assert.equal(answer.body.status, 'pending');
      assert.equal(answer.status, knownId === undefined ? 201 : 200);
      if (knownId !== undefined) assert.equal(answer.body.id, knownId);
      this.requests.set(arrow(from, to), answer.body.id);
      if (this.blocks.has(arrow(to, from))) this.hidden.add(arrow(from, to));
      else this.hidden.delete(arrow(from, to));
    }
    return undefined;
  }

  #addContact(a, b) {
    this.contacts.add(pair(a, b));
    this.#removeRequest(a, b);
    this.#removeRequest(b, a);
  }

  #removeRequest(from, to) {
    this.requests.delete(arrow(from, to));
    this.hidden.delete(arrow(from, to));
  }

  /** The receiver of a request accepts or declines it. */
  settle(from, to, accepts, answer) {
    const isThere = this.requests.has(arrow(from, to)) && !this.hidden.has(arrow(from, to));
    assert.equal(answer.status, isThere ? 200 : 404);
    if (isThere && accepts) this.#addContact(from, to);
    else if (isThere) this.#removeRequest(from, to);
  }

  withdraw(from, to, answer) {
    assert.equal(answer.status, 204);
    this.#removeRequest(from, to);
  }

  remove(a, b) {
    this.contacts.delete(pair(a, b));
  }

  block(user, peer) {
    if (this.blocks.has(arrow(user, peer))) return;
    this.blocks.add(arrow(user, peer));
    this.contacts.delete(pair(user, peer));
    this.#removeRequest(user, peer);
    if (this.requests.has(arrow(peer, user))) this.hidden.add(arrow(peer, user));
  }

  unblock(user, peer) {
    this.blocks.delete(arrow(user, peer));
  }

  /** What `viewer` may see of `target`. */
  view(viewer, target) {
    if (this.blocks.has(arrow(target, viewer)) || this.settings[target] === 'nobody')
      return 'unknown privacy';
    if (this.settings[target] === 'everyone' || this.contacts.has(pair(viewer, target)))
      return `${this.status[target]} `;
    return 'unknown not_contacts';
  }
}

const viewOf = ({ status, reason = '' }) => `${status} ${reason}`;

class World {
  model = new Model();
  clients = {};
  tokens = {};
  pushed = {}; // viewer → target → the view of the last push

  async open() {
    for (const user of USERS) {
      this.tokens[user] = await devToken(server, user);
      this.pushed[user] = {};
      this.clients[user] = await connect(server, user, { token: this.tokens[user] });
    }
  }

  rest(user, method, path, body) {
    return rest(server, method, path, { token: this.tokens[user], body });
  }

  async step(random) {
    const user = USERS[random(USERS.length)];
    const others = USERS.filter((other) => other !== user);
    const peer = others[random(others.length)];
    const { model } = this;
    switch (random(11)) {
      case 0:
      case 1:
      case 2:
        model.request(user, peer, await this.rest(user, 'POST', '/v1/contact-requests', { to: peer }));
        return `${user} requests contact with ${peer}`;
      case 3:
      case 4:
      case 5: {
        const id = model.requests.get(arrow(peer, user)) ?? 'none';
        const accepts = random(4) > 0;
        const path = `/v1/contact-requests/${id}/${accepts ? 'accept' : 'decline'}`;
        model.settle(peer, user, accepts, await this.rest(user, 'POST', path));
        return `${user} settles ${peer}'s request`;
      }
      case 6: {
        const id = model.requests.get(arrow(user, peer));
        if (id !== undefined)
          model.withdraw(user, peer, await this.rest(user, 'DELETE', `/v1/contact-requests/${id}`));
        return `${user} withdraws from ${peer}`;
      }
      case 7: {
        const removes = random(3);
        await this.rest(user, removes ? 'DELETE' : 'PUT', `/v1/${removes ? 'contacts' : 'blocks'}/${peer}`);
        if (removes) model.remove(user, peer);
        else model.block(user, peer);
        return `${user} ${removes ? 'removes' : 'blocks'} ${peer}`;
      }
      case 8:
        await this.rest(user, 'DELETE', `/v1/blocks/${peer}`);
        model.unblock(user, peer);
        return `${user} unblocks ${peer}`;
      case 9: {
        const setting = SETTINGS[random(3)];
        await this.rest(user, 'PATCH', '/v1/me', { presence_visibility: setting });
        model.settings[user] = setting;
        return `${user} shows ${setting}`;
      }
      default: {
        const active = model.status[user] !== 'online';
        await this.clients[user].ask({ type: 'heartbeat', active });
        model.status[user] = active ? 'online' : 'away';
        return `${user} is ${model.status[user]}`;
      }
    }
  }

  /** Takes the pushes as a client does: it drops what it has about a removed contact. */
  takePushes() {
    for (const viewer of USERS)
      for (const message of this.clients[viewer].messages.splice(0)) {
        if (message.type === 'contact_removed') delete this.pushed[viewer][message.user_id];
        if (message.type !== 'presence_changed') continue;
        assert.notEqual(message.user_id, viewer);
        this.pushed[viewer][message.user_id] = viewOf(message);
      }
  }

  /** Whether a contact has the current view, and any other user has nothing that is now hidden. */
  isPushedRight(viewer, target) {
    const pushed = this.pushed[viewer][target];
    const expected = this.model.view(viewer, target);
    if (this.model.contacts.has(pair(viewer, target)))
      return pushed === expected || (pushed === undefined && expected.startsWith('unknown'));
    return expected.startsWith('unknown') ? pushed === undefined || pushed.startsWith('unknown') : true;
  }

  async check(what) {
    const pairs = USERS.flatMap((a) => USERS.filter((b) => b !== a).map((b) => [a, b]));
    await eventually(() => {
      this.takePushes();
      return pairs.every(([viewer, target]) => this.isPushedRight(viewer, target));
    }, `the right pushes after "${what}" (${JSON.stringify(this.pushed)})`);
    for (const viewer of USERS) await this.checkLists(viewer, what);
  }

  async checkLists(viewer, what) {
    const others = USERS.filter((other) => other !== viewer);
    const { model } = this;
    const friends = (await this.rest(viewer, 'GET', '/v1/friends')).body.friends;
    const contacts = others.filter((other) => model.contacts.has(pair(viewer, other)));
    assert.deepEqual(
      friends.map((friend) => [friend.user_id, viewOf(friend)]),
      contacts.map((contact) => [contact, model.view(viewer, contact)]),
      `friends of ${viewer} after ${what}`,
    );
    const { incoming, outgoing } = (await this.rest(viewer, 'GET', '/v1/contact-requests')).body;
    const visible = others.filter(
      (other) =>
        model.requests.has(arrow(other, viewer)) && !model.hidden.has(arrow(other, viewer)),
    );
    assert.deepEqual(incoming.map(({ from }) => from).sort(), visible, `incoming requests of ${viewer} after ${what}`);
    assert.deepEqual(
      outgoing.map(({ to }) => to).sort(),
      others.filter((other) => model.requests.has(arrow(viewer, other))),
      `outgoing requests of ${viewer} after ${what}`,
    );
    const presences = await this.clients[viewer].query(...others);
    assert.deepEqual(
      presences.map(viewOf),
      others.map((other) => model.view(viewer, other)),
      `presence query of ${viewer} after ${what}`,
    );
  }
}

test(`the server agrees with the model after each of ${STEPS} random steps (seed ${SEED})`, async () => {
  const world = new World();
  const fraction = seededRandom(SEED);
  const random = (below) => Math.floor(fraction() * below);
  await world.open();
  for (let step = 0; step < STEPS; step += 1) {
    const what = `${step}: ${await world.step(random)}`;
    await world.check(what);
  }
});
