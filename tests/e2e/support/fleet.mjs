/**
 * A fleet for a test: several `rollcall serve` on one Redis (standalone or a cluster) and one `rollcall ledger`,
 * with links between them. All are real processes on free loopback ports, ended by their process ids. The
 * gateways share a data directory and so the development key: a token of one is valid on all.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { connect, eventually, metric, refusal, SOON_MS } from './client.mjs';
import { makeLedger, PEER_SECRET } from './ledger_server.mjs';
import { freePorts, startCluster, startRedis } from './redis.mjs';
import { ROLLCALL_BIN, startServer } from './server.mjs';

const execute = promisify(execFile);

/** Both kinds of Redis, and the names of a user's keys there. */
export const BACKENDS = {
  standalone: {
    start: startRedis,
    key: (prefix, user) => `${prefix}:${user}`,
    connection: (user, id) => `connection:${id}`,
  },
  cluster: {
    start: startCluster,
    key: (prefix, user) => `${prefix}:{${user}}`,
    connection: (user, id) => `connection:{${user}}:${id}`,
  },
};

/** Heartbeats and leases at least three times as fast as in production. */
export const QUICK = {
  'gateway.timeouts.heartbeat_interval_seconds': 1,
  'gateway.timeouts.heartbeat_timeout_seconds': 2,
  'presence.expiry_window_seconds': 3,
};
export const QUICK_WINDOW_MS = 3000;

/** The default profile, set explicitly. */
export const REALTIME = { 'timing.profile': 'realtime' };
export const REALTIME_WINDOW_MS = 15000;

/**
 * Starts a gateway for each name. `stateOf(name)` may return another Redis URL for a gateway. With `operations`
 * each has a listener for operators, at `server.operations`. With `aggregators` (addresses) the gateways reach Redis through
 * them.
 *
 * @param {{redis: {url: string}, gateways?: string[], settings?: object, stateOf?: (name: string) => string,
 *          operations?: boolean, aggregators?: string[]}}
 *        options
 */
export async function startFleet(options) {
  const { redis, gateways = ['gw-001', 'gw-002'], settings = {}, stateOf, operations = false, aggregators } = options;
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-fleet-'));
  const ledger = await makeLedger();
  await ledger.start();
  const running = new Map();
  const fleet = {
    dataDir,
    ledger,

    /** Starts one more gateway; waits until it is ready unless `ready` is false. */
    async start(name, { settings: own = {}, env, state = stateOf?.(name) ?? redis.url, ready = true } = {}) {
      const [peerPort, operationsPort] = await freePorts(2);
      const ops = operations ? { 'ops.listen': `127.0.0.1:${operationsPort}` } : {};
      const server = await startServer({
        dataDir,
        env,
        args: [
          '--node-id', name, '--workers', '1', '--ledger', ledger.url,
          ...(aggregators ? ['--aggregators', aggregators.join(',')] : ['--state', state]),
          '--peer-listen', `127.0.0.1:${peerPort}`,
        ],
        settings: { 'peer.secret': PEER_SECRET, ...ops, ...settings, ...own },
      });
      server.operations = operations ? { url: `http://127.0.0.1:${operationsPort}/`, port: operationsPort } : server;
      server.peer = `127.0.0.1:${peerPort}`;
      running.set(name, server);
      if (ready) await eventually(() => isReady(server.operations), `${name} is ready`);
      return server;
    },

    /** All gateways, in the order of their start. */
    get gateways() {
      return [...running.values()];
    },

    /** Waits until every gateway has links to all others. */
    waitUntilLinked: () =>
      eventually(async () => {
        const links = await Promise.all(fleet.gateways.map(({ operations: at }) => metric(at, 'peer_links_open')));
        return links.every((count) => count >= running.size - 1);
      }, 'the gateways are linked'),

    /** Kills a gateway without warning, like a power cut. */
    async crash(server) {
      await server.stop('SIGKILL');
    },

    async stop() {
      for (const server of running.values()) if (server.paused) process.kill(server.pid, 'SIGCONT');
      await Promise.all([...running.values()].map((server) => server.stop()));
      await ledger.stop();
      await ledger.remove();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
  for (const name of gateways) await fleet.start(name);
  if (gateways.length > 1) await fleet.waitUntilLinked();
  return fleet;
}

const statusOf = async (server, path) => (await fetch(new URL(path, server.url))).status;
export const isReady = async (server) => (await statusOf(server, '/readyz')) === 200;
export const isHealthy = async (server) => (await statusOf(server, '/healthz')) === 200;

/** Opens a connection that must be refused; returns status and Retry-After. */
export async function refusedConnect(server, token) {
  const url = new URL('v1/ws', server.url).href.replace(/^http/, 'ws');
  const { status, headers } = await refusal(url, [], { headers: { Authorization: `Bearer ${token}` } });
  return { status, retryAfter: headers['retry-after'] };
}

/** Sends heartbeats until the connection ends. */
export function keepAlive(client, intervalMs) {
  const timer = setInterval(() => {
    if (client.socket.readyState === 1) client.send({ type: 'heartbeat' });
    else clearInterval(timer);
  }, intervalMs);
  client.socket.on('close', () => clearInterval(timer));
  return client;
}

/** Connects a client that sends heartbeats and keeps every message it receives in `record`. */
export async function joinFleet(server, user, { heartbeatMs = 1000, ...options } = {}) {
  const client = await connect(server, user, options);
  client.record = [...client.messages];
  client.socket.on('message', (data) => client.record.push(JSON.parse(data)));
  client.changes = () => client.record.filter(({ type }) => type === 'presence_changed');
  client.bodies = () => client.record.filter(({ type }) => type === 'message').map(({ body }) => body);
  return keepAlive(client, heartbeatMs);
}

let lastMessage = 0;
/** Sends a message until it is acknowledged, as clients do; returns the acknowledgement. */
export async function sendUntilAcked(client, chatId, body, limitMs = SOON_MS) {
  lastMessage += 1;
  const message = { type: 'send_message', chat_id: chatId, client_message_id: `m-${lastMessage}`, body };
  return eventually(async () => {
    const answer = await client.ask({ ...message }, limitMs);
    return answer.type === 'message_ack' && answer;
  }, `${body} is acknowledged`, limitMs);
}

/**
 * Fails unless `rollcall check` finds that the invariants hold. It waits a lease window for what a crash left
 * behind.
 */
export async function assertInvariants(redis, windowMs) {
  const args = ['check', '--state', redis.url, '--window', String(windowMs / 1000)];
  const { code = 0, stdout, stderr } = await execute(ROLLCALL_BIN, args, { timeout: 4 * windowMs + SOON_MS }).catch(
    (error) => error,
  );
  assert.equal(code, 0, stdout + stderr);
}
