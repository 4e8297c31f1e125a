/**
 * Runs `rollcall ledger` for a test, with free loopback ports and a directory of its own. A restart keeps both.
 * The process is ended by its id.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { SOON_MS, within } from './client.mjs';
import { freePorts } from './redis.mjs';
import { ROLLCALL_BIN } from './server.mjs';

export const PEER_SECRET = 'a secret of thirty-two bytes, say';

const START_LINE = /^rollcall: ledger on \S+:(\d+)$/;

/** Prepares a ledger; `start()` starts it. `settings` and `environment` are added to the defaults. */
export async function makeLedger(settings = {}, environment = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-ledger-e2e-'));
  const [port, pagesPort] = await freePorts(2);
  const path = join(directory, 'ledger.db');
  let child;
  let log = '';
  return {
    path,
    port,
    url: `remote://127.0.0.1:${port}`,
    /** The HTTP address of health, readiness and metrics. */
    pages: { url: `http://127.0.0.1:${pagesPort}/`, port: pagesPort },
    log: () => log,
    get pid() {
      return child.pid;
    },

    async start() {
      const { ROLLCALL_BIN: _ours, ...env } = process.env;
      const addresses = ['--peer-listen', `127.0.0.1:${port}`, '--ledger', `sqlite:${path}`];
      const all = {
        'peer.secret': PEER_SECRET,
        'ledger.http_listen': `127.0.0.1:${pagesPort}`,
        data_dir: directory,
        ...settings,
      };
      const set = Object.entries(all).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
      child = spawn(ROLLCALL_BIN, ['ledger', ...addresses, ...set], {
        env: { ...env, ...environment },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      child.stderr.setEncoding('utf8').on('data', (text) => {
        log += text;
      });
      const lines = createInterface({ input: child.stdout });
      const [line] = await within(SOON_MS, once(lines, 'line'), () => `start line; log: ${log}`);
      if (Number(START_LINE.exec(line)?.[1]) !== port) throw new Error(`unexpected start line: ${line}`);
    },

    /** Ends the ledger; returns its exit code, or the signal that ended it. */
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) {
        const exited = once(child, 'exit');
        child.kill(signal);
        await within(SOON_MS, exited, 'end of the ledger');
      }
      return child.exitCode ?? child.signalCode;
    },

    async remove() {
      if (child !== undefined) await this.stop('SIGKILL');
      await rm(directory, { recursive: true, force: true });
    },
  };
}
