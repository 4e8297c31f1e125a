/** What one scenario runs on: a server, its users' networks and tokens, and the clients of the driver. */
import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AMPLE_RATES, makeChat } from '../../tests/e2e/support/chats.mjs';
import { eventually, rest, setVisibility, SOON_MS } from '../../tests/e2e/support/client.mjs';
import { befriend } from '../../tests/e2e/support/contacts.mjs';
import { startApplication } from '../../tests/e2e/support/application.mjs';
import { startServer } from '../../tests/e2e/support/server.mjs';
import { startNetwork } from './network.mjs';

const TOKEN_TTL_SECONDS = 3600;
const userOf = (actor) => actor.split('@')[0];

export class Stage {
  #driver;
  #prefix;
  #scenario;
  #folder;
  #server;
  #application;
  #secret;
  #actors = new Map();
  #variables = new Map();

  constructor(driver, prefix, scenario) {
    this.#driver = driver;
    this.#prefix = prefix;
    this.#scenario = scenario;
  }

  async start() {
    this.#folder = await mkdtemp(join(tmpdir(), 'rollcall-scenario-'));
    if (this.#scenario.answers) this.#application = await startApplication((question) => this.#answer(question));
    await this.#startServer();
    for (const [chat, members] of Object.entries(this.#scenario.chats ?? {})) await makeChat(this.#server, chat, ...members);
    for (const user of this.#scenario.visible ?? []) await setVisibility(this.#server, user, 'everyone');
    for (const [user, other] of this.#scenario.contacts ?? []) await befriend(this.#server, user, other);
  }

  async end() {
    for (const actor of this.#actors.values()) {
      clearInterval(actor.renewal);
      if (!actor.closed) await this.#driver.call(actor.id, 'close').catch(() => {});
      actor.network.close();
    }
    await this.#server?.stop('SIGKILL');
    await this.#application?.stop();
    if (this.#folder) await rm(this.#folder, { recursive: true, force: true, maxRetries: 10 }); // a token may just be written
  }

  /** Runs one row of the table. */
  async run([subject, verb, ...args]) {
    if (subject === 'server') return this.#runServer(verb, args);
    if (subject === 'network') return this.#runNetwork(verb, args);
    const given = args.map((arg) => this.#resolve(arg));
    const own = this.#verbs[verb];
    return own ? own(await this.#actor(subject), ...given) : this.#operate(await this.#actor(subject), verb, args);
  }

  // --- Server and network -----------------------------------------------------------------------

  async #startServer() {
    const settings = { ...AMPLE_RATES, ...this.#scenario.settings };
    if (this.#application) settings['hooks.event_url'] = this.#application.url;
    if (this.#scenario.secret) settings['auth.hmac_secret_file'] = await this.#writeSecret();
    this.#server = await startServer({ dataDir: this.#folder, settings });
  }

  /** The application's answer to an event; 404 for names that the scenario does not know. */
  #answer({ name, data }) {
    const answer = this.#scenario.answers[name];
    return answer === undefined ? { status: 404, body: { message: 'no such event' } } : { body: { ...answer, asked: data } };
  }

  /** A new secret, with which later tokens are signed; the server reads it when it is told to. */
  async #writeSecret() {
    const file = join(this.#folder, 'secret');
    this.#secret = randomBytes(32).toString('hex');
    await writeFile(file, this.#secret);
    return file;
  }

  async #runServer(verb, args) {
    const server = this.#server;
    const steps = {
      start: () => this.#startServer(),
      kill: () => server.stop('SIGKILL'),
      change_secret: () => this.#writeSecret(),
      reload: async () => process.kill(server.pid, 'SIGHUP'),
      drain: () => server.stop('SIGTERM'),
      revoke: async (user) => this.#admin('POST', `/admin/v1/users/${user}/revoke`),
      disconnect: async (user) => {
        const { connections } = await this.#admin('GET', `/admin/v1/connections?user=${user}`);
        for (const { conn_id: id } of connections) await this.#admin('DELETE', `/admin/v1/connections/${id}`);
      },
      stores: async (chat, bodies) => {
        const [user] = this.#scenario.chats[chat];
        const { body } = await rest(server, 'GET', `/v1/chats/${chat}/messages?after_sequence=0&limit=500`, { user });
        assert.deepEqual(body.messages.map((message) => message.body), expandBodies(bodies), `stored in ${chat}`);
      },
      deletes: (chat, sequence) => this.#request('service', 'DELETE', `/v1/service/chats/${chat}/messages/${sequence}`),
      delivers: (user, event, data) => this.#request('service', 'POST', '/v1/service/deliver', { to: { users: [user] }, event, data }),
      receives: async (user, chat, body) => {
        const { status } = await rest(server, 'POST', `/v1/chats/${chat}/messages`, {
          user,
          body: { client_message_id: `rest-${body}`, body },
        });
        assert.equal(status, 201);
      },
    };
    await steps[verb](...args);
  }

  #admin(method, path) {
    return this.#request('admin', method, path);
  }

  async #request(scope, method, path, content) {
    const token = await this.#server.token('root', { scope });
    const body = content === undefined ? undefined : JSON.stringify(content);
    const response = await fetch(new URL(path, this.#server.url), { method, headers: { Authorization: `Bearer ${token}` }, body });
    assert.ok(response.ok, `${method} ${path}: ${response.status}`);
    return response.status === 204 ? null : response.json();
  }

  async #runNetwork(verb, [name, ...args]) {
    (await this.#actor(name)).network[verb](...args);
  }

  // --- Clients ----------------------------------------------------------------------------------

  async #actor(name) {
    const known = this.#actors.get(name);
    if (known) return known;
    const network = await startNetwork(() => this.#server.port);
    const tokenFile = join(this.#folder, `token-${name}`);
    const actor = { name, id: `${this.#prefix}.${name}`, network, tokenFile, events: [], begun: [], acks: new Map() };
    this.#actors.set(name, actor);
    this.#driver.listen(actor.id, (event, data) => actor.events.push({ event, data }));
    return actor;
  }

  async #writeToken(actor) {
    const ttlSeconds = this.#scenario.token_ttl_seconds ?? TOKEN_TTL_SECONDS;
    let written = 0;
    const write = async () => {
      const next = `${actor.tokenFile}.${(written += 1)}`; // on a slow machine two writes overlap
      await writeFile(next, await this.#sign(userOf(actor.name), ttlSeconds));
      await rename(next, actor.tokenFile); // at once, so that no client reads half of it
    };
    await write();
    if (this.#scenario.token_ttl_seconds) actor.renewal = setInterval(() => write().catch(() => {}), 500);
  }

  #sign(user, ttlSeconds) {
    if (this.#secret === undefined) return this.#server.token(user, { ttlSeconds });
    const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const nowSeconds = Math.floor(Date.now() / 1000);
    const text = `${encode({ alg: 'HS256' })}.${encode({ sub: user, iat: nowSeconds, exp: nowSeconds + ttlSeconds })}`;
    return `${text}.${createHmac('sha256', this.#secret).update(text).digest('base64url')}`;
  }

  #verbs = {
    /** Connects with a token that the server signed, and waits until the client is ready. */
    connect: async (actor) => {
      await this.#verbs.start(actor);
      await this.#verbs.is(actor, 'READY');
    },
    start: async (actor) => {
      await this.#writeToken(actor);
      await this.#open(actor);
    },
    /** Connects with a token that no server signed. */
    start_with_bad_token: async (actor) => {
      await writeFile(actor.tokenFile, 'not.a.token');
      await this.#open(actor);
    },
    get_new_token: (actor) => this.#writeToken(actor),
    close: async (actor) => {
      await this.#driver.call(actor.id, 'close');
      actor.closed = true;
    },

    send: async (actor, chat, ...bodies) => {
      await this.#verbs.begin_send(actor, chat, ...bodies);
      await this.#verbs.finish(actor);
    },
    begin_send: async (actor, chat, ...bodies) => {
      for (const body of expandBodies(bodies)) {
        const args = { chat_id: chat, body, client_message_id: `${actor.name}-${body}` };
        actor.begun.push(this.#driver.call(actor.id, 'send_message', args).then((ack) => actor.acks.set(body, ack)));
      }
    },
    /** Waits until all that was begun is acknowledged. */
    finish: async (actor) => {
      await Promise.all(actor.begun.splice(0));
    },
    acked: (actor, body, fields) => assertFields(actor.acks.get(body), fields, `acknowledgement of '${body}'`),

    /** The bodies of all messages of a chat that the client has delivered so far, in order. */
    receives: async (actor, chat, bodies) => {
      const wanted = expandBodies(bodies);
      const got = () => messagesOf(actor, chat);
      await eventually(() => got().length >= wanted.length, `${wanted.length} messages`).catch(() => {});
      assert.deepEqual(got(), wanted, `messages of ${chat} at ${actor.name}`);
    },
    sees: (actor, user, fields) =>
      this.#waitFor(actor, `${user} is ${JSON.stringify(fields)}`, () => {
        const last = actor.events.filter(({ event, data }) => event === 'presence' && data.user_id === user).at(-1);
        return last !== undefined && hasFields(last.data, fields);
      }),
    /** Waits for an event; a value "=name" keeps what it finds there. */
    gets: async (actor, event, fields = {}) => {
      const found = await this.#waitFor(actor, `${event} ${JSON.stringify(fields)}`, () =>
        actor.events.find((each) => each.event === event && !each.taken && hasFields(each.data, fields)),
      );
      found.taken = true;
      this.#keep(found.data, fields);
    },
    is: (actor, state) => this.#waitFor(actor, `state ${state}`, () => stateOf(actor)?.state === state),
    leaves: (actor, state) => this.#waitFor(actor, `not ${state}`, () => stateOf(actor)?.state !== state),
    /** Waits until the client has given up for good. */
    stops: (actor, code) =>
      this.#waitFor(actor, `stops with ${code}`, () => {
        const last = stateOf(actor);
        return last?.final === true && last.reason === code;
      }),
    /** How often the server has accepted this client's WebSocket. */
    connected: async (actor, times) => {
      await eventually(() => actor.network.upgrades >= times, `${times} connections of ${actor.name}`);
      assert.equal(actor.network.upgrades, times, `connections of ${actor.name}`);
    },
    waits: (_actor, seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000)),
  };

  #open(actor) {
    const args = { url: actor.network.url, token_file: actor.tokenFile, device_id: `device-of-${actor.name}` };
    return this.#driver.call(actor.id, 'open', args);
  }

  /** Any operation of the driver: [user, operation, {arguments}, {fields of the result} or "ERROR_CODE"]. */
  async #operate(actor, op, [args = {}, expected]) {
    const call = this.#driver.call(actor.id, op, this.#resolve(args));
    if (typeof expected === 'string') {
      await assert.rejects(call, { code: expected }, `${actor.name} ${op}`);
      return;
    }
    const result = await call;
    if (expected === undefined) return;
    assertFields(result, this.#resolve(expected), `${actor.name} ${op}`);
    this.#keep(result, expected);
  }

  async #waitFor(actor, what, check) {
    return eventually(check, `${actor.name}: ${what}; the last events: ${summary(actor.events)}`, SOON_MS).catch((error) => {
      throw new Error(`${error.message.split('; the last')[0]}; the last events: ${summary(actor.events)}`);
    });
  }

  /** "$name" stands for a value that was kept. */
  #resolve(value) {
    if (typeof value === 'string' && value.startsWith('$')) return this.#variables.get(value.slice(1));
    if (Array.isArray(value)) return value.map((each) => this.#resolve(each));
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, this.#resolve(each)]));
  }

  #keep(found, fields) {
    for (const [name, value] of Object.entries(fields)) {
      if (isBinding(value)) this.#variables.set(value.slice(1), found[name]);
      else if (value !== null && typeof value === 'object') this.#keep(found[name], value);
    }
  }
}

const isBinding = (value) => typeof value === 'string' && value.startsWith('=');
const stateOf = (actor) => actor.events.filter(({ event }) => event === 'state').at(-1)?.data;
const messagesOf = (actor, chat) =>
  actor.events.filter(({ event, data }) => event === 'message' && data.chat_id === chat).map(({ data }) => (data.deleted ? null : data.body));
const summary = (events) => events.slice(-12).map((each) => JSON.stringify(each).slice(0, 200)).join(' ');

/** ["#1-30"] stands for the bodies #1 … #30. */
function expandBodies(bodies) {
  return bodies.flatMap((body) => {
    const range = /^#(\d+)-(\d+)$/.exec(body ?? '');
    if (range === null) return [body];
    const [first, last] = [Number(range[1]), Number(range[2])];
    return Array.from({ length: last - first + 1 }, (_, index) => `#${first + index}`);
  });
}

/** Whether `found` has all `fields`, at any depth; of an array, the given items at their places. */
function hasFields(found, fields) {
  if (isBinding(fields)) return found !== undefined && found !== null;
  if (fields === null || typeof fields !== 'object') return found === fields;
  if (found === null || typeof found !== 'object') return false;
  if (Array.isArray(fields) && found.length !== fields.length) return false;
  return Object.entries(fields).every(([name, value]) => hasFields(found[name], value));
}

function assertFields(found, fields, what) {
  assert.ok(hasFields(found, fields), `${what}: ${JSON.stringify(found)} has not ${JSON.stringify(fields)}`);
}
