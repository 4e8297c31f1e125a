/** A server whose feed is a real Kafka, and what a test asks the brokers with kcat. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { AMPLE_RATES } from '../../e2e/support/chats.mjs';
import { eventually } from '../../e2e/support/client.mjs';
import { rollcall, startServer } from '../../e2e/support/server.mjs';

const execute = promisify(execFile);

export const EVENTS = 'messages.persisted';
export const DEAD_LETTERS = 'dead_letters.messages';

/** Makes the topics; a broker that has just started needs a moment before it can. */
export async function createTopics(kafka, settings = {}) {
  const set = Object.entries({ 'durability.kafka.partitions': 4, 'durability.kafka.replication': kafka.brokers.length, ...settings });
  const args = ['topics', 'create', '--feed', kafka.url, ...set.flatMap(([name, value]) => ['--set', `${name}=${value}`])];
  let last;
  await eventually(async () => {
    last = await rollcall(...args);
    return last.code === 0;
  }, 'the topics exist', 120000).catch((error) => { throw new Error(`${error.message}: ${last.stderr}`); });
}

export const startOnKafka = (kafka, { settings = {}, ...options } = {}) =>
  startServer({
    ...options,
    args: ['--feed', kafka.url],
    settings: { ...AMPLE_RATES, 'gateway.workers': 1, 'timing.profile': 'relaxed', 'fanout.kafka.consumer.session_timeout_ms': 6000, ...settings },
  });

/** All records of a topic, as { key, value, headers }. */
export async function records(kafka, topic) {
  const args = ['-b', kafka.addresses, '-C', '-t', topic, '-e', '-q', '-J'];
  const { stdout } = await execute('kcat', args, { maxBuffer: 1 << 28 });
  return stdout.split('\n').filter(Boolean).map((line) => {
    const { key, payload, headers = [] } = JSON.parse(line);
    const pairs = Array.from({ length: headers.length / 2 }, (_, n) => [headers[2 * n], headers[2 * n + 1]]);
    return { key, value: payload, headers: Object.fromEntries(pairs) };
  });
}

export async function produce(kafka, topic, key, value) {
  const child = spawn('kcat', ['-b', kafka.addresses, '-P', '-t', topic, '-k', key], { stdio: ['pipe', 'ignore', 'inherit'] });
  child.stdin.end(value);
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`kcat ended with ${code}`);
}
