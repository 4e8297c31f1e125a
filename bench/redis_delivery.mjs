#!/usr/bin/env node
/**
 * Measures what deliveries cost Redis and the gateways, on one Redis and on a cluster of three masters:
 *
 *     node bench/redis_delivery.mjs [standalone|cluster] [--seconds S]
 *
 * Two gateways with one worker each. `delivery`: POST /v1/users/{user}/deliver on one gateway, for a device on the other.
 * `chat of N`: messages to a chat whose online members are spread over both gateways. `idle`: nothing happens. Prints one
 * JSON line for each: the processor time of all Redis servers and of both gateways for each delivery or message, less
 * what they take when idle, how often Redis read and wrote, and how often it executed which command. Needs the npm packages of tests/e2e
 * (tools/npm-install tests/e2e). docs/CAPACITY.md has the figures of one run.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { AMPLE_RATES, makeChat } from '../tests/e2e/support/chats.mjs';
import { closeAll, eventually, sleep } from '../tests/e2e/support/client.mjs';
import { BACKENDS, joinFleet, startFleet } from '../tests/e2e/support/fleet.mjs';

const TICKS_PER_SECOND = Number(execFileSync('getconf', ['CLK_TCK']));
const IN_FLIGHT = 32;
const CHAT_IN_FLIGHT = 8;
const HEARTBEAT_MS = 20000;
const CHATS = [
  { members: 10, online: 10 },
  { members: 50, online: 50 },
  { members: 5000, online: 50 },
];
const SETTINGS = { ...AMPLE_RATES, 'timing.profile': 'relaxed', 'limits.connections_per_address': 0 };
const secondsAt = process.argv.indexOf('--seconds');
const SECONDS = secondsAt > 0 ? Number(process.argv[secondsAt + 1]) : 4;
const KINDS = Object.keys(BACKENDS).filter((kind) => process.argv.includes(kind));

const fields = (text) => Object.fromEntries([...text.matchAll(/^([^:\n]+):(.*)\r?$/gm)].map(([, name, value]) => [name, value.trim()]));

/** Processor seconds of a Redis, and the calls of its commands. */
async function redisUse(node) {
  const cpu = fields(await node.command('INFO', 'cpu'));
  const calls = fields(await node.command('INFO', 'commandstats'));
  const stats = fields(await node.command('INFO', 'stats'));
  return {
    reads: Number(stats.total_reads_processed),
    writes: Number(stats.total_writes_processed),
    cpu: Number(cpu.used_cpu_user) + Number(cpu.used_cpu_sys),
    calls: Object.entries(calls).map(([name, value]) => [name.slice('cmdstat_'.length), Number(/calls=(\d+)/.exec(value)[1])]),
  };
}

function processSeconds(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(stat[11]) + Number(stat[12])) / TICKS_PER_SECOND;
}

async function sample(redis, fleet) {
  const calls = {};
  let [cpu, reads, writes] = [0, 0, 0];
  for (const node of redis.masters ? await redis.masters() : [redis]) {
    const use = await redisUse(node);
    cpu += use.cpu;
    reads += use.reads;
    writes += use.writes;
    for (const [name, count] of use.calls) calls[name] = (calls[name] ?? 0) + count;
  }
  const gateways = fleet.gateways.reduce((sum, { pid }) => sum + processSeconds(pid), 0);
  return { at: performance.now() / 1000, cpu, reads, writes, gateways, calls };
}

/** Runs `step` with IN_FLIGHT at a time for SECONDS; returns the use of a second, and how many steps were made. */
async function measure(redis, fleet, step, inFlight = IN_FLIGHT) {
  let count = 0;
  let stopped = false;
  const before = await sample(redis, fleet);
  const runner = async () => {
    while (!stopped) {
      await step();
      count += 1;
    }
  };
  const runners = Array.from({ length: step ? inFlight : 0 }, runner);
  await sleep(SECONDS * 1000);
  stopped = true;
  await Promise.all(runners);
  const after = await sample(redis, fleet);
  const seconds = after.at - before.at;
  const calls = Object.entries(after.calls).map(([name, total]) => [name, total - (before.calls[name] ?? 0)]);
  const [cpu, reads, writes, gatewaysCpu] = ['cpu', 'reads', 'writes', 'gateways'].map((name) => after[name] - before[name]);
  return { count, seconds, cpu, reads, writes, gateways: gatewaysCpu, calls };
}

const perStep = (used, idle, count) => Math.round(1e7 * (used - idle) / count) / 10;

function report(kind, name, use, idle) {
  const scale = use.seconds / idle.seconds;
  const calls = use.calls
    .map(([command, count]) => [command, Math.round((100 * count) / use.count) / 100])
    .filter(([, count]) => count >= 0.01);
  console.log(JSON.stringify({
    kind,
    name,
    count: use.count,
    redis_us: perStep(use.cpu, idle.cpu * scale, use.count),
    gateways_us: perStep(use.gateways, idle.gateways * scale, use.count),
    redis_reads: Math.round((100 * use.reads) / use.count) / 100,
    redis_writes: Math.round((100 * use.writes) / use.count) / 100,
    calls: Object.fromEntries(calls),
  }));
}

function reportIdle(kind, idle, gateways) {
  const total = idle.calls.reduce((sum, [name, count]) => sum + (name === 'info' ? 0 : count), 0);
  console.log(JSON.stringify({
    kind,
    name: 'idle',
    commands_per_second_and_gateway: Math.round((10 * total) / idle.seconds / gateways) / 10,
    calls: Object.fromEntries(idle.calls.filter(([, count]) => count > 0)),
  }));
}

const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT });

function post(server, path, token, body) {
  const bytes = Buffer.from(JSON.stringify(body));
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'content-length': bytes.length };
  return new Promise((resolve, reject) => {
    const sent = request(new URL(path, server.url), { method: 'POST', agent, headers }, (response) => {
      if (response.statusCode >= 300) reject(new Error(`${path}: ${response.statusCode}`));
      response.resume();
      response.on('end', resolve);
    });
    sent.on('error', reject);
    sent.end(bytes);
  });
}

/** Counts the messages instead of keeping them. */
function nobodyReads(client) {
  client.socket.removeAllListeners('message');
  client.received = 0;
  client.socket.on('message', () => {
    client.received += 1;
  });
  return client;
}

async function measureDelivery(kind, redis, fleet, idle) {
  const [one, two] = fleet.gateways;
  const token = await one.token('backend', { scope: 'deliver' });
  nobodyReads(await joinFleet(two, 'reader', { heartbeatMs: HEARTBEAT_MS }));
  const use = await measure(redis, fleet, () => post(one, '/v1/users/reader/deliver', token, { data: { hello: 1 } }));
  report(kind, 'delivery', use, idle);
}

async function measureChat(kind, redis, fleet, idle, { members, online }) {
  const [one] = fleet.gateways;
  const names = Array.from({ length: members }, (_, i) => `c${members}-${i}`);
  const clients = [];
  for (const [i, name] of names.slice(0, online).entries())
    clients.push(nobodyReads(await joinFleet(fleet.gateways[i % 2], name, { heartbeatMs: HEARTBEAT_MS })));
  await makeChat(one, `chat-${members}-${online}`, ...names);
  const token = await one.token(names[0]);
  const witness = clients[1];
  const before = witness.received;
  let last = 0;
  /** Sends a message, and waits until a member on the other gateway has received as many as were sent. */
  const send = async () => {
    last += 1;
    const until = before + last;
    await post(one, `/v1/chats/chat-${members}-${online}/messages`, token, { client_message_id: `m-${last}`, body: 'hello' });
    await new Promise((resolve) => {
      const check = () => {
        if (witness.received < until) return;
        witness.socket.off('message', check);
        resolve();
      };
      witness.socket.on('message', check);
      check();
    });
  };
  await sleep(500); // so that the events about the chat are over
  await send();
  report(kind, `chat of ${members}, ${online} online`, await measure(redis, fleet, send, CHAT_IN_FLIGHT), idle);
}

async function run(kind) {
  const redis = await BACKENDS[kind].start();
  const fleet = await startFleet({ redis, settings: SETTINGS });
  try {
    await sleep(2000);
    const idle = await measure(redis, fleet);
    reportIdle(kind, idle, fleet.gateways.length);
    await measureDelivery(kind, redis, fleet, idle);
    for (const chat of CHATS) await measureChat(kind, redis, fleet, idle, chat);
  } finally {
    closeAll();
    agent.destroy();
    await fleet.stop();
    await redis.stop();
  }
}

for (const kind of KINDS.length ? KINDS : Object.keys(BACKENDS)) await run(kind);
