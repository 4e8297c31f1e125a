/**
 * Real Redis servers for a test: a standalone one, or a cluster of three masters with a replica each. Every
 * server has free loopback ports and a folder of its own, and is ended by its process id.
 *
 * Both kinds have `url` (for --state), `command(...)` (on a cluster it follows redirections to the key's node),
 * `keys()` and `stop()`, so that one test runs on either.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from './client.mjs';
import { connectRedis, RedisError } from './resp.mjs';

const MASTERS = 3;
const SLOTS = 16384;
const NODE_TIMEOUT_MS = 1500;
const REDIRECTS_MAX = 5;
/**
 * Below the ports that the kernel gives to connections, so that no connection takes the port of a server that is
 * stopped and starts again. A cluster's bus port is 10,000 higher by default.
 */
const PORTS = { min: 10240, max: 22000 };

/** Listens on a random port; returns nothing if it is taken. */
async function listenOnRandomPort() {
  const server = createServer();
  const listening = once(server, 'listening');
  server.listen(PORTS.min + Math.floor(Math.random() * (PORTS.max - PORTS.min)), '127.0.0.1');
  return listening.then(() => server, () => undefined);
}

/** Distinct ports that were free a moment ago. */
export async function freePorts(count) {
  const servers = [];
  while (servers.length < count) {
    const server = await listenOnRandomPort();
    if (server) servers.push(server);
  }
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
}

/** Starts a server; `args` are options of redis-server, `file` is a configuration file, `env` adds to its environment. */
export async function startRedis({ args = [], port: wanted, file, env } = {}) {
  const [port] = wanted === undefined ? await freePorts(1) : [wanted];
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-redis-'));
  let child;
  let connection;

  const connectOnce = async () => {
    connection ??= await connectRedis(port);
    return connection;
  };
  const disconnect = () => {
    connection?.close();
    connection = undefined;
  };
  const start = async () => {
    const base = file === undefined ? ['--save', ''] : [];
    const options = [...base, '--port', port, '--bind', '127.0.0.1', '--dir', directory];
    child = spawn('redis-server', [...(file === undefined ? [] : [file]), ...options, ...args], {
      stdio: 'ignore',
      env: { ...process.env, ...env },
    });
    const alive = () => redis.command('PING').then(() => true, (error) => error instanceof RedisError);
    await eventually(alive, 'Redis answers');
  };
  const redis = {
    port,
    get pid() {
      return child.pid;
    },
    url: `redis://127.0.0.1:${port}`,

    async command(...args) {
      try {
        return await (await connectOnce()).command(...args);
      } catch (error) {
        if (!(error instanceof RedisError)) disconnect();
        throw error;
      }
    },
    keys: async (pattern = '*') => (await redis.command('KEYS', pattern)).sort(),

    /** Subscribes to a channel; `messages` are those published so far, `close()` ends the subscription. */
    async subscribe(channel, command = 'SUBSCRIBE') {
      const messages = [];
      const subscriber = await connectRedis(port, ([, , message]) => messages.push(message));
      await subscriber.command(command, channel);
      return { messages, close: subscriber.close };
    },
    info: async (section) => parseInfo(await redis.command('INFO', section)),

    pause: () => process.kill(child.pid, 'SIGSTOP'),
    resume: () => process.kill(child.pid, 'SIGCONT'),
    async kill() {
      disconnect();
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
    start,
    async stop() {
      await redis.kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
  await start();
  return redis;
}

function parseInfo(text) {
  const lines = text.split('\r\n').filter((line) => line.includes(':'));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}

async function startNode(env) {
  const [port, bus] = await freePorts(2);
  return startRedis({
    port,
    env,
    args: [
      '--cluster-enabled', 'yes',
      '--cluster-port', bus,
      '--cluster-node-timeout', NODE_TIMEOUT_MS,
      '--cluster-replica-validity-factor', 0,
      '--repl-diskless-sync-delay', 0,
      '--appendonly', 'no',
    ].map(String),
  }).then((node) => ({ ...node, bus, get pid() { return node.pid; } }));
}

/** Starts three masters, each with a third of the slots, and a replica of each; the masters are first in `nodes`. */
export async function startCluster({ env } = {}) {
  const nodes = await Promise.all(Array.from({ length: 2 * MASTERS }, () => startNode(env)));
  const [first] = nodes;
  for (const node of nodes.slice(1))
    await first.command('CLUSTER', 'MEET', '127.0.0.1', node.port, node.bus);
  for (let n = 0; n < MASTERS; n += 1) {
    const from = Math.ceil((n * SLOTS) / MASTERS);
    const to = Math.ceil(((n + 1) * SLOTS) / MASTERS) - 1;
    await nodes[n].command('CLUSTER', 'ADDSLOTSRANGE', from, to);
  }
  for (let n = 0; n < MASTERS; n += 1) {
    const id = await nodes[n].command('CLUSTER', 'MYID');
    await eventually(
      () => nodes[n + MASTERS].command('CLUSTER', 'REPLICATE', id).then(() => true, () => false),
      'the replica follows its master',
    );
  }
  await eventually(async () => {
    const infos = await Promise.all(nodes.map((node) => node.command('CLUSTER', 'INFO')));
    const replicas = await Promise.all(nodes.slice(MASTERS).map((node) => node.info('replication')));
    return (
      infos.every((text) => text.includes('cluster_state:ok')) &&
      replicas.every((info) => info.master_link_status === 'up')
    );
  }, 'all slots are served and all replicas are in sync', 30000);
  return clusterOf(nodes);
}

function clusterOf(nodes) {
  const alive = new Set(nodes);
  const byPort = (port) => nodes.find((node) => node.port === port);
  const masters = async () => {
    const roles = await Promise.all(
      [...alive].map(async (node) => [node, await node.command('ROLE').catch(() => ['unreachable'])]),
    );
    return roles.filter(([, [role]]) => role === 'master').map(([node]) => node);
  };
  const cluster = {
    nodes,
    url: `redis-cluster://${nodes.slice(0, MASTERS).map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    masters,

    async command(...args) {
      let [node] = alive;
      for (let tries = 0; ; tries += 1) {
        try {
          return await node.command(...args);
        } catch (error) {
          const [, port] = /^MOVED \d+ [^:]*:(\d+)/.exec(error.message) ?? [];
          if (port === undefined || tries === REDIRECTS_MAX) throw error;
          node = byPort(Number(port));
        }
      }
    },
    async keys(pattern = '*') {
      const lists = await Promise.all((await masters()).map((node) => node.keys(pattern)));
      return lists.flat().sort();
    },

    /** Runs a method of every live node. */
    each: (method) => Promise.all([...alive].map((node) => node[method]())),
    pause: () => cluster.each('pause'),
    resume: () => cluster.each('resume'),
    flush: async () => Promise.all((await masters()).map((node) => node.command('FLUSHALL'))),

    /** The master that serves a key. */
    async masterOf(key) {
      const slot = await cluster.command('CLUSTER', 'KEYSLOT', key);
      const ranges = await cluster.command('CLUSTER', 'SLOTS');
      const [, , [, port]] = ranges.find(([from, to]) => from <= slot && slot <= to);
      return byPort(port);
    },
    subscribe: async (channel) => (await cluster.masterOf(channel)).subscribe(channel, 'SSUBSCRIBE'),

    /** Kills the master that serves a key, and returns it. */
    killMasterOf: async (key) => cluster.killNode(await cluster.masterOf(key)),
    async killNode(node) {
      alive.delete(node);
      await node.kill();
      return node;
    },
    stop: () => Promise.all(nodes.map((node) => node.stop())),
  };
  return cluster;
}
