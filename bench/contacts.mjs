#!/usr/bin/env node
/**
 * Measures the server's cost of a presence change, from the user's command to the contacts' sockets:
 *
 *     node bench/contacts.mjs [path of rollcall]
 *
 * One user has 10, 500 or 5,000 contacts, of whom 1 % or 50 % are connected, and goes away and comes back
 * many times; each change waits for the last delivery of the previous one. Prints a table in Markdown: the
 * server's processor time (all threads) for a change and for a delivery, and the time until the last
 * delivery has arrived. Needs the npm packages of tests/e2e (tools/npm-install tests/e2e).
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const { WebSocket } = createRequire(new URL('../tests/e2e/', import.meta.url))('ws');
const BIN = process.argv[2] ?? fileURLToPath(new URL('../build/rollcall', import.meta.url));
const CONTACTS = [10, 500, 5000];
const SHARES = [1, 50];
const DELIVERIES_MIN = 100000;
const CHANGES_MIN = 500;
const CHANGES_MAX = 5000;
const TICKS_PER_SECOND = Number(execFileSync('getconf', ['CLK_TCK']));
const PARALLEL = 32;

const dataDir = mkdtempSync(join(tmpdir(), 'rollcall-bench-'));
const settings = [
  'gateway.backpressure.inbound.command_rate_per_second=1000000',
  'limits.rest_per_second_per_user=0',
  'limits.contact_requests_per_hour=0',
  'limits.settings_per_minute=0',
  'limits.chats_per_hour=0',
  'gateway.backpressure.inbound.command_rate_burst=1000000',
  'timing.profile=relaxed',
  'presence.offline_grace_seconds=0',
];
const child = spawn(
  BIN,
  ['serve', '--dev', '--workers', '1', '--listen', '127.0.0.1:0', '--data-dir', dataDir].concat(
    settings.flatMap((setting) => ['--set', setting]),
  ),
  { stdio: ['ignore', 'pipe', 'ignore'] },
);
process.on('exit', () => {
  child.kill('SIGKILL');
  rmSync(dataDir, { recursive: true, force: true });
});
const url = await new Promise((resolve) => {
  child.stdout.on('data', (text) => {
    const match = /open (http:\S+)/.exec(text);
    if (match) resolve(match[1]);
  });
});

const tokens = (user, count) =>
  execFileSync(BIN, ['token', user, '--count', String(count), '--data-dir', dataDir], {
    maxBuffer: 1 << 28,
  })
    .toString()
    .trim()
    .split('\n');

async function request(token, method, path, body) {
  const response = await fetch(new URL(path, url), {
    method,
    headers: { Authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`);
  return response.text();
}

function connect(token, onMessage) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}v1/ws`, {
    headers: { Authorization: `Bearer ${token}` },
    perMessageDeflate: false,
  });
  socket.on('message', onMessage);
  return new Promise((resolve, reject) => {
    socket.once('message', () => resolve(socket));
    socket.once('error', reject);
  });
}

/** Runs `job` for each item, some at a time. */
async function each(items, job) {
  const queue = items.entries();
  const work = async () => {
    for (const [at, item] of queue) await job(item, at);
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
}

/** Processor seconds of the server so far. */
function processorSeconds() {
  const fields = readFileSync(`/proc/${child.pid}/stat`, 'latin1').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

async function measure(name, contacts, share) {
  const online = Math.max(share === 0 ? 0 : 1, Math.round((contacts * share) / 100));
  const [owner] = tokens(`${name}-owner`, 1);
  const peers = tokens(`${name}-peer`, Math.max(contacts, 1)).slice(0, contacts);
  await each(peers, async (peer, at) => {
    await request(owner, 'POST', '/v1/contact-requests', { to: `${name}-peer${at}` });
    await request(peer, 'POST', '/v1/contact-requests', { to: `${name}-owner0` });
  });
  let received = 0;
  let wake = () => {};
  const sockets = [];
  await each(peers.slice(0, online), async (peer) => {
    sockets.push(
      await connect(peer, () => {
        received += 1;
        wake();
      }),
    );
  });
  const user = await connect(owner, () => {});
  await new Promise((resolve) => setTimeout(resolve, 500));
  const changes = Math.min(
    CHANGES_MAX,
    Math.max(CHANGES_MIN, Math.ceil(DELIVERIES_MIN / Math.max(online, 1))),
  );
  const started = { cpu: processorSeconds(), ms: performance.now() };
  for (let change = 0; change < changes; change += 1) {
    received = 0;
    let acknowledged = false;
    await new Promise((resolve) => {
      wake = () => acknowledged && received >= online && resolve();
      user.once('message', () => {
        acknowledged = true;
        wake();
      });
      user.send(JSON.stringify({ type: 'heartbeat', active: change % 2 === 1 }));
    });
  }
  const cpu = (processorSeconds() - started.cpu) / changes;
  const ms = (performance.now() - started.ms) / changes;
  for (const socket of [...sockets, user]) socket.terminate();
  return { online, changes, cpu, ms };
}

const alone = await measure('alone', 0, 0);
console.log('| contacts | online | a change | a delivery | until the last delivery |');
console.log('|---|---|---|---|---|');
const show = (contacts, { online, cpu, ms }) => {
  const delivery = online ? `${(((cpu - alone.cpu) * 1e6) / online).toFixed(2)} µs` : '';
  console.log(
    `| ${contacts} | ${online} | ${(cpu * 1e6).toFixed(1)} µs | ${delivery} | ${ms.toFixed(2)} ms |`,
  );
};
show(0, alone);
for (const contacts of CONTACTS)
  for (const share of SHARES)
    show(contacts, await measure(`c${contacts}-${share}`, contacts, share));
process.exit(0);
