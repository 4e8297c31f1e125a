#!/usr/bin/env node
/**
 * Counts the connections to Redis, and the commands that it executes, of four gateways alone and behind one aggregator:
 *
 *     node bench/redis_aggregate.mjs [standalone|cluster] [--seconds S]
 *
 * Each gateway has one worker and 100 users, whose leases last 15 s. Prints one JSON line for each: the clients of all Redis
 * servers, those that are gateways or aggregators, how many channels Redis has, and commands a second. Needs the npm
 * packages of tests/e2e (tools/npm-install tests/e2e). docs/CAPACITY.md has the figures of one run.
 */
import { makeAggregator } from '../tests/e2e/support/aggregator.mjs';
import { closeAll, sleep } from '../tests/e2e/support/client.mjs';
import { BACKENDS, joinFleet, REALTIME, startFleet } from '../tests/e2e/support/fleet.mjs';

const GATEWAYS = ['gw-001', 'gw-002', 'gw-003', 'gw-004'];
const USERS_PER_GATEWAY = 100;
const HEARTBEAT_MS = 5000;
const SETTLE_MS = 16000; // a window, so that the first renewals are over
const secondsAt = process.argv.indexOf('--seconds');
const SECONDS = secondsAt > 0 ? Number(process.argv[secondsAt + 1]) : 20;
const KINDS = Object.keys(BACKENDS).filter((kind) => process.argv.includes(kind));

const number = (text, name) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(text)[1]);

async function sample(redis) {
  const sum = { connections: 0, ours: 0, channels: 0, commands: 0 };
  for (const node of redis.masters ? await redis.masters() : [redis]) {
    const clients = await node.command('CLIENT', 'LIST');
    const stats = await node.command('INFO', 'stats');
    sum.connections += clients.trim().split('\n').length;
    sum.ours += (clients.match(/name=(gw-|aggregate:)/g) ?? []).length;
    sum.channels += number(stats, 'pubsub_channels') + (/^pubsubshard_channels:/m.test(stats) ? number(stats, 'pubsubshard_channels') : 0);
    sum.commands += number(stats, 'total_commands_processed');
  }
  return sum;
}

async function measure(kind, aggregated) {
  const redis = await BACKENDS[kind].start();
  const settings = { ...REALTIME, 'limits.connections_per_address': 0 };
  const aggregator = aggregated ? await makeAggregator(redis, settings) : undefined;
  await aggregator?.start();
  const aggregators = aggregator ? [aggregator.address] : undefined;
  const fleet = await startFleet({ redis, gateways: GATEWAYS, settings, aggregators });
  for (const gateway of fleet.gateways)
    for (let n = 0; n < USERS_PER_GATEWAY; n += 1)
      await joinFleet(gateway, `user-${gateway.port}-${n}`, { heartbeatMs: HEARTBEAT_MS });
  await sleep(SETTLE_MS);
  const before = await sample(redis);
  await sleep(1000 * SECONDS);
  const after = await sample(redis);
  console.log(JSON.stringify({
    kind,
    aggregators: aggregated ? 1 : 0,
    connections: after.connections,
    ours: after.ours,
    channels: after.channels,
    commands_per_second: Math.round((after.commands - before.commands) / SECONDS),
  }));
  closeAll();
  await fleet.stop();
  await aggregator?.stop();
  await redis.stop();
}

for (const kind of KINDS.length ? KINDS : Object.keys(BACKENDS))
  for (const aggregated of [false, true]) await measure(kind, aggregated);
process.exit(0);
