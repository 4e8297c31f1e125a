/**
 * Real DynamoDB Local and Kafka servers for a test (tools/cloud-servers). Every server has free loopback ports and a
 * folder of its own, and is ended by its process id. A server that was killed and is started again keeps its ports; a
 * broker keeps its data too, and so does a DynamoDB Local that is `durable`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '../../e2e/support/client.mjs';
import { freePorts } from '../../e2e/support/redis.mjs';

const CLOUD_SERVERS = fileURLToPath(new URL('../../../tools/cloud-servers', import.meta.url));
/** A server in Java takes long to start on a busy machine, and longer when its jars must be fetched first. */
const START_MS = 180000;

const accepts = (port) =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });

/** A process of tools/cloud-servers, with its output in a file. */
class CloudServer {
  #args;
  #log;
  #child;

  constructor(args, log) {
    this.#args = args.map(String);
    this.#log = log;
    this.port = args[1];
  }

  get pid() {
    return this.#child.pid;
  }

  get #isOver() {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async start() {
    const output = createWriteStream(this.#log, { flags: 'a' });
    await once(output, 'open');
    this.#child = spawn(CLOUD_SERVERS, this.#args, { stdio: ['ignore', output, output] });
    output.close();
    await eventually(async () => this.#isOver || (await accepts(this.port)), `${this.#args[0]} listens`, START_MS);
    if (this.#isOver) throw new Error(`cloud-servers ${this.#args.join(' ')}:\n${await readFile(this.#log, 'utf8')}`);
  }

  pause() {
    this.#child.kill('SIGSTOP');
  }

  resume() {
    this.#child.kill('SIGCONT');
  }

  async kill(signal = 'SIGKILL') {
    if (this.#child === undefined || this.#isOver) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill(signal);
    await exited;
  }
}

/** Starts DynamoDB Local; `endpoint` is its URL. */
export async function startDynamodb({ durable = false } = {}) {
  const [port] = await freePorts(1);
  const folder = await mkdtemp(join(tmpdir(), 'rollcall-dynamodb-'));
  const storage = durable ? [join(folder, 'data')] : [];
  const server = new CloudServer(['dynamodb', port, ...storage], join(folder, 'log'));
  server.endpoint = `http://127.0.0.1:${port}`;
  server.stop = async () => {
    await server.kill();
    await rm(folder, { recursive: true, force: true });
  };
  await server.start();
  return server;
}

/** Starts `count` brokers, each a controller too, with more lines of `properties`; `url` is for --feed. */
export async function startKafka({ count = 1, properties = '' } = {}) {
  const ports = await freePorts(2 * count);
  const controllers = ports.splice(count).join(',');
  const folder = await mkdtemp(join(tmpdir(), 'rollcall-kafka-'));
  const addresses = ports.map((port) => `127.0.0.1:${port}`).join(',');
  const brokers = ports.map((port, index) =>
    new CloudServer(['kafka', port, controllers, join(folder, String(index + 1)), index + 1], join(folder, `log-${index + 1}`)));
  for (const index of brokers.keys()) {
    await mkdir(join(folder, String(index + 1)));
    await writeFile(join(folder, String(index + 1), 'more.properties'), properties);
  }
  const each = (method, ...args) => Promise.all(brokers.map((broker) => broker[method](...args)));
  await each('start');
  return {
    brokers,
    addresses,
    url: `kafka://${addresses}`,
    each,

    /** The broker that is the active controller, as the brokers have last written. */
    async controller() {
      const states = await Promise.all(brokers.map(async (_, index) =>
        JSON.parse(await readFile(join(folder, String(index + 1), 'data/__cluster_metadata-0/quorum-state'), 'utf8'))));
      const newest = states.reduce((a, b) => (b.leaderEpoch > a.leaderEpoch ? b : a));
      return brokers[newest.leaderId - 1];
    },

    async stop() {
      await each('kill');
      await rm(folder, { recursive: true, force: true });
    },
  };
}
