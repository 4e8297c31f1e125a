/**
 * A server, a browser, and for each test as many browser contexts as it has people. All of it ends by
 * itself; a test in which a page complains fails.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before } from 'node:test';
import { launchBrowser } from './browser.mjs';
import { openAs, openContext } from './page.mjs';
import { befriend } from './people.mjs';
import { startServer } from './server.mjs';

/** Call it at the top of a test file; `server`, with these settings, is there when the first test runs. */
export function useBrowsers({ settings } = {}) {
  let browser;
  let contexts = [];
  let isForgiven = false;
  const browsers = {
    server: undefined,

    /** The page of somebody in a context of its own, which `prepare` may change first. */
    async open(name, { prepare = () => {}, at = browsers.server, more = '' } = {}) {
      const context = await openContext(browser);
      contexts.push(context);
      await prepare(context);
      return openAs(context, at, name, more);
    },

    /** The pages of two who are contacts. */
    async friends(one, other, { at = browsers.server } = {}) {
      await befriend(at, one, other);
      return Promise.all([one, other].map((name) => browsers.open(name, { at })));
    },

    /** In this test pages may complain. */
    forgive() {
      isForgiven = true;
    },
  };

  before(async () => {
    browsers.server = await startServer({ settings });
    browser = await launchBrowser();
  });
  after(async () => {
    await browser?.close();
    await browsers.server?.stop();
  });
  afterEach(async () => {
    const complaints = isForgiven ? [] : contexts.flatMap((context) => context.complaints);
    await Promise.all(contexts.map((context) => context.close()));
    contexts = [];
    isForgiven = false;
    assert.deepEqual(complaints, []);
  });
  return browsers;
}
