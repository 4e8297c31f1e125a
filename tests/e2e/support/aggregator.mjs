/**
 * Runs `rollcall aggregate` for a test, with free loopback ports. A restart keeps them. The process is ended by its id.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { eventually, SOON_MS, within } from './client.mjs';
import { PEER_SECRET } from './ledger_server.mjs';
import { freePorts } from './redis.mjs';
import { ROLLCALL_BIN } from './server.mjs';

const START_LINE = /^rollcall: aggregator on \S+:(\d+)$/;

/** Prepares an aggregator of this Redis; `start()` starts it. */
export async function makeAggregator(redis, settings = {}) {
  const [port, pagesPort] = await freePorts(2);
  let child;
  let log = '';
  const aggregator = {
    address: `127.0.0.1:${port}`,
    /** The HTTP address of health, readiness and metrics. */
    pages: { url: `http://127.0.0.1:${pagesPort}/`, port: pagesPort },
    log: () => log,
    get pid() {
      return child.pid;
    },

    async start() {
      const { ROLLCALL_BIN: _ours, ...env } = process.env;
      const all = { 'peer.secret': PEER_SECRET, 'ops.listen': `127.0.0.1:${pagesPort}`, ...settings };
      const set = Object.entries(all).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
      child = spawn(ROLLCALL_BIN, ['aggregate', '--state', redis.url, '--peer-listen', aggregator.address, ...set], {
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      child.stderr.setEncoding('utf8').on('data', (text) => {
        log += text;
      });
      const lines = createInterface({ input: child.stdout });
      const [line] = await within(SOON_MS, once(lines, 'line'), () => `start line; log: ${log}`);
      if (Number(START_LINE.exec(line)?.[1]) !== port) throw new Error(`unexpected start line: ${line}`);
      await eventually(async () => (await fetch(new URL('/readyz', aggregator.pages.url))).status === 200, 'it is ready');
    },

    pause: () => process.kill(child.pid, 'SIGSTOP'),
    resume: () => process.kill(child.pid, 'SIGCONT'),

    /** Ends it; returns its exit code, or the signal that ended it. */
    async stop(signal = 'SIGTERM') {
      if (!child || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? child?.signalCode;
      const exited = once(child, 'exit');
      child.kill('SIGCONT');
      child.kill(signal);
      const [code, endSignal] = await within(SOON_MS, exited, () => `its end; log: ${log}`);
      return code ?? endSignal;
    },
  };
  return aggregator;
}
