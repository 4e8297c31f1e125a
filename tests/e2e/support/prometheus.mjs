/**
 * A real Prometheus for a test: it scrapes the given servers and evaluates the shipped rules on a faster clock. It has a
 * free loopback port and a folder of its own, and is ended by its process id.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, SOON_MS, within } from './client.mjs';
import { freePorts } from './redis.mjs';

const RULES = new URL('../../../deploy/prometheus_rules.yaml', import.meta.url);
const UNIT_MS = { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000 };

/** How many times faster than in production the rules run: their durations, windows and intervals are that much shorter. */
export const SPEED = 10;

/** Divides every duration of the rules: `for:`, `interval:`, windows in brackets, offsets. */
export const accelerateRules = (text) =>
  text.replace(/(\bfor: |\binterval: |\[|\boffset )(\d+)(ms|s|m|h|d)\b/g, (_, before, count, unit) =>
    `${before}${(Number(count) * UNIT_MS[unit]) / SPEED}ms`);

const configuration = (targets) => `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs: [{job_name: rollcall, static_configs: [{targets: ${JSON.stringify(targets)}}]}]
`;

/** Starts Prometheus and waits until it has scraped each of `servers`, which have a `port` for /metrics. */
export async function startPrometheus(servers) {
  const targets = servers.map(({ port }) => `127.0.0.1:${port}`);
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-prometheus-'));
  await writeFile(join(directory, 'rules.yaml'), accelerateRules(await readFile(RULES, 'utf8')));
  await writeFile(join(directory, 'prometheus.yml'), configuration(targets));
  const [port] = await freePorts(1);
  const child = spawn('prometheus', [
    `--config.file=${join(directory, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(directory, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ], { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    log += text;
  });
  const exited = once(child, 'exit');
  exited.catch(() => {}); // the next question to it fails

  const ask = async (path) => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    const { status, data, error } = await response.json();
    if (status !== 'success') throw new Error(`${path}: ${error}`);
    return data;
  };
  const prometheus = {
    targets,

    /** The alerts in this state: their labels, sorted by name and instance. */
    async alerts(state = 'firing') {
      const { alerts } = await ask('alerts');
      const key = ({ alertname, instance }) => `${alertname} ${instance}`;
      return alerts.filter((alert) => alert.state === state).map(({ labels }) => labels).sort((a, b) => (key(a) < key(b) ? -1 : 1));
    },

    /** The instances for which this alert fires. */
    async instances(alert) {
      return (await prometheus.alerts()).filter(({ alertname }) => alertname === alert).map(({ instance }) => instance);
    },

    /** Waits until the alert fires for exactly these servers, or for none; returns after how many milliseconds. */
    async waitForAlert(alert, concerned, ms = SOON_MS) {
      const expected = concerned.map((server) => `127.0.0.1:${server.port}`).sort();
      const startedMs = Date.now();
      let found;
      const isSo = async () => {
        found = await prometheus.instances(alert);
        return found.join() === expected.join();
      };
      await eventually(isSo, `${alert} fires for [${expected}]`, ms).catch((error) => {
        throw new Error(`${error.message}, not for [${found}]`);
      });
      return Date.now() - startedMs;
    },

    /** The value of an expression with one result; undefined without a result. */
    async query(expression) {
      const { result } = await ask(`query?query=${encodeURIComponent(expression)}`);
      return result.length > 0 ? Number(result[0].value[1]) : undefined;
    },

    async stop() {
      child.kill('SIGTERM');
      await within(SOON_MS, exited, 'end of Prometheus').catch(() => child.kill('SIGKILL'));
      await rm(directory, { recursive: true, force: true });
    },
  };
  const isScraping = async () => (await prometheus.query('sum(up)').catch(() => 0)) === targets.length;
  await eventually(isScraping, 'Prometheus has scraped every server').catch(async (error) => {
    await prometheus.stop();
    throw new Error(`${error.message}\n${log}`);
  });
  return prometheus;
}
