/**
 * A Redis master with a replica, watched by three real sentinels as "main". It has what startRedis() returns as far as
 * tests of fleets use it: `url` (for --state), `command(...)` (at the master), `keys()` and `stop()`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from './client.mjs';
import { freePorts, startRedis } from './redis.mjs';
import { connectRedis } from './resp.mjs';

const SENTINELS = 3;
const QUORUM = 2;
const FORMED_MS = 60000;

async function makeSentinel(masterPort) {
  const [port] = await freePorts(1);
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-sentinel-'));
  const file = join(directory, 'sentinel.conf');
  await writeFile(file, [
    `port ${port}`, 'bind 127.0.0.1', `dir ${directory}`,
    `sentinel monitor main 127.0.0.1 ${masterPort} ${QUORUM}`,
    'sentinel down-after-milliseconds main 1000', 'sentinel failover-timeout main 4000', '',
  ].join('\n'));
  let child;
  const sentinel = {
    port,
    async command(...args) {
      const connection = await connectRedis(port);
      try {
        return await connection.command(...args);
      } finally {
        connection.close();
      }
    },
    async start() {
      child = spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' });
      await eventually(() => sentinel.command('PING').then(() => true, () => false), 'the sentinel answers');
    },
    async kill() {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
    async stop() {
      await sentinel.kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
  return sentinel;
}

/** Fields of an answer such as that of SENTINEL MASTER. */
const fieldsOf = (list) => Object.fromEntries(list.flatMap((name, at) => (at % 2 ? [] : [[name, list[at + 1]]])));

export async function startSentinelRedis({ sentinels: started = true } = {}) {
  const servers = [await startRedis({ args: ['--repl-diskless-sync-delay', '0'] })];
  servers.push(await startRedis({ args: ['--repl-diskless-sync-delay', '0', '--replicaof', '127.0.0.1', String(servers[0].port)] }));
  const sentinels = [];
  for (let n = 0; n < SENTINELS; n += 1) sentinels.push(await makeSentinel(servers[0].port));
  const seeds = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',');
  const redis = {
    url: `redis-sentinel://${seeds}/main`,
    urlOf: (name) => `redis-sentinel://${seeds}/${name}`,
    servers,
    sentinels,

    /** Waits until the sentinels know the replica and each other, without which they do no failover. */
    async startSentinels() {
      await Promise.all(sentinels.map((sentinel) => sentinel.start()));
      await eventually(async () => {
        const answers = await Promise.all(sentinels.map((sentinel) => sentinel.command('SENTINEL', 'MASTER', 'main')));
        return answers.map(fieldsOf).every(
          (fields) => fields['num-slaves'] === '1' && fields['num-other-sentinels'] === String(SENTINELS - 1),
        );
      }, 'the sentinels know each other', FORMED_MS);
    },
    /** The server that says so of itself; undefined during a failover. */
    async master() {
      for (const server of servers) {
        const [role] = await server.command('ROLE').catch(() => ['down']);
        if (role === 'master') return server;
      }
      return undefined;
    },
    command: async (...args) => (await redis.master()).command(...args),
    keys: async (pattern) => (await redis.master()).keys(pattern),
    async stop() {
      await Promise.all([...sentinels, ...servers].map((server) => server.stop()));
    },
  };
  if (started) await redis.startSentinels();
  return redis;
}
