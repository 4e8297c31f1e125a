/** Checks a page with axe-core. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

const source = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The violations that axe finds in the page as it is now, each as one line. */
export async function violations(tab) {
  await tab.evaluate(source);
  const found = await tab.evaluate(() => globalThis.axe.run());
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary}`),
  );
}
