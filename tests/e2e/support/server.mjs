/**
 * Starts and stops the real server for a test.
 *
 * The program is $ROLLCALL_BIN, by default build/rollcall. Every server gets a free loopback port, and
 * a data directory that is removed when it stops.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const execute = promisify(execFile);

export const ROLLCALL_BIN =
  process.env.ROLLCALL_BIN ?? fileURLToPath(new URL('../../../build/rollcall', import.meta.url));

const START_TIMEOUT_MS = 60000;
const STOP_TIMEOUT_MS = 60000;
/** By default a drain spreads its closings over half a minute. */
const QUICK_DRAIN = ['--set', 'gateway.shutdown.drain_timeout_seconds=1'];
/** Tests look at each change of presence by itself; a test of the dwell sets it. */
const NO_DWELL = ['--set', 'presence.min_dwell_ms=0'];
/** With --dev a user who leaves is offline to others some seconds later, which most tests do not wait for. */
const NO_GRACE = ['--set', 'presence.offline_grace_seconds=0'];

/** Turns the budgets of users off, for tests that do more in a moment than a person in an hour. */
export const NO_BUDGETS = {
  'limits.messages_per_second_per_user': 0,
  'limits.rest_per_second_per_user': 0,
  'limits.contact_requests_per_hour': 0,
  'limits.chats_per_hour': 0,
  'limits.settings_per_minute': 0,
  'limits.reads_per_second_per_user': 0,
  'limits.signals_per_second_per_user': 0,
  'limits.calls_per_minute': 0,
  'limits.service_per_second_per_key': 0,
  'limits.events_per_second_per_user': 0,
};

const LOG_BYTES_MAX = 1000000;
const START_LINE = /^rollcall: open (https?:\/\/[^:]+:(\d+)\/)(?: when Redis answers)?$/;

/** Without ROLLCALL_BIN: the server refuses to start with a ROLLCALL_ variable that is not a setting. */
const { ROLLCALL_BIN: _ours, ...environment } = process.env;

/** Runs the program until it exits; returns its exit code and output. */
export const rollcall = (...args) => rollcallWith({}, ...args);

/** Runs the program as `rollcall()` does, with these environment variables. */
export function rollcallWith(env, ...args) {
  const options = { env: { ...environment, ...env }, timeout: START_TIMEOUT_MS };
  return execute(ROLLCALL_BIN, args, options).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  );
}

/**
 * Runs `serve --dev` (`serve` if `dev` is false) with `args`, and each of `settings` as a `--set`. `port`
 * and `dataDir` let a test restart a server in the same place; the test then removes the directory.
 *
 * @param {{args?: string[], settings?: Record<string, unknown>, env?: Record<string, string>,
 *          port?: number, dataDir?: string, dev?: boolean}} [options]
 */
export async function startServer(options = {}) {
  const { args = [], settings = {}, env = {}, port = 0, dataDir, dev = true } = options;
  const directory = dataDir ?? (await mkdtemp(join(tmpdir(), 'rollcall-e2e-')));
  const location = ['--listen', `127.0.0.1:${port}`, '--data-dir', directory];
  const mode = dev ? ['serve', '--dev'] : ['serve'];
  const set = Object.entries(settings).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
  const child = spawn(ROLLCALL_BIN, [...mode, ...location, ...QUICK_DRAIN, ...NO_DWELL, ...NO_GRACE, ...set, ...args], {
    env: { ...environment, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const log = collectLog(child);
  const exited = once(child, 'exit');
  exited.catch(() => {}); // startAddress() reports it
  const address = await startAddress(child, log).catch(async (error) => {
    child.kill('SIGKILL');
    if (dataDir === undefined) await rm(directory, { recursive: true, force: true });
    throw error;
  });
  return {
    ...address,
    pid: child.pid,
    dataDir: directory,
    child,

    /** The server's log so far. */
    log: () => log.text,

    /** A signed token, as `rollcall token` prints it. */
    async token(user, { ttlSeconds, scope } = {}) {
      const options = ['--data-dir', directory];
      if (ttlSeconds !== undefined) options.push('--ttl', String(ttlSeconds));
      if (scope !== undefined) options.push('--scope', scope);
      return (await rollcall('token', user, ...options)).stdout.trim();
    },

    /** Ends the server; returns its exit code, or the signal that ended it. */
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      const killTimer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
      const [code, endSignal] = await exited;
      clearTimeout(killTimer);
      if (dataDir === undefined) await rm(directory, { recursive: true, force: true });
      return code ?? endSignal;
    },
  };
}

/** How much physical memory a process uses. */
export async function residentBytes({ pid }) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return 1024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)[1]);
}

function collectLog(child) {
  const log = { text: '' };
  child.stderr.setEncoding('utf8');
  child.stderr.on('data', (text) => {
    log.text = (log.text + text).slice(-LOG_BYTES_MAX);
  });
  return log;
}

/** Waits for the start line and returns its address; rejects with the log if the server does not start. */
function startAddress(child, log) {
  let timeout;
  const started = new Promise((resolve, reject) => {
    const fail = (why) => reject(new Error(`${ROLLCALL_BIN} ${why}\n${log.text}`));
    timeout = setTimeout(
      () => fail(`printed no start line within ${START_TIMEOUT_MS} ms`),
      START_TIMEOUT_MS,
    );
    child.once('error', (error) => fail(error.message));
    child.once('close', (code, signal) => fail(`ended at once with ${code ?? signal}`));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const match = START_LINE.exec(line);
      if (match !== null) resolve({ url: match[1], port: Number(match[2]) });
    });
  });
  return started.finally(() => clearTimeout(timeout));
}
