/**
 * Runs the table scenarios.json with one client library against the real server.
 *
 *   SCENARIO_DRIVER="node clients/scenarios/driver.mjs" node --test clients/scenarios/scenarios.test.mjs
 *
 * Scenarios run side by side, because they mostly wait. What a driver says it cannot do is reported as skipped.
 */
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { Driver } from './driver_process.mjs';
import { Stage } from './stage.mjs';

const SIDE_BY_SIDE = 4;
const SCENARIO_TIMEOUT_MS = 120000;
const command = process.env.SCENARIO_DRIVER ?? 'node clients/scenarios/driver.mjs';
const only = process.env.SCENARIO_ONLY;
const table = JSON.parse(await readFile(new URL('scenarios.json', import.meta.url)));

async function perform(driver, number, scenario) {
  const stage = new Stage(driver, String(number), scenario);
  try {
    await stage.start();
    for (const [row, step] of scenario.steps.entries()) {
      await stage.run(step).catch((error) => {
        error.message = `step ${row + 1} ${JSON.stringify(step)}: ${error.message}`;
        throw error;
      });
    }
  } finally {
    await stage.end();
  }
}

test('scenarios', { concurrency: SIDE_BY_SIDE }, async (t) => {
  const driver = new Driver(command);
  const { name, without = [] } = await driver.hello;
  const chosen = table.filter((scenario) => !only || scenario.name.includes(only));
  await Promise.all(
    chosen.map((scenario, number) => {
      const missing = (scenario.needs ?? []).filter((need) => without.includes(need));
      const skip = missing.length > 0 ? `the client for ${name} has no ${missing.join(', ')}` : false;
      return t.test(`${name}: ${scenario.name}`, { skip, timeout: SCENARIO_TIMEOUT_MS }, () => perform(driver, number, scenario));
    }),
  );
  await t.test(`${name}: the driver ends when its input does`, async () => {
    const status = await driver.end();
    if (status !== 0) throw new Error(`it ended with ${status}`);
  });
});
