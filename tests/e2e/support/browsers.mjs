/**
 * One server and one browser for a test file, with a browser context of its own for each user. Everything is
 * closed after the tests. A test fails if a page reports an error.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before } from 'node:test';
import { launchBrowser } from './browser.mjs';
import { openAs, openContext } from './page.mjs';
import { befriend } from './contacts.mjs';
import { startServer } from './server.mjs';

/** Registers the hooks of a test file. `server` runs with these settings before the first test starts. */
export function useBrowsers({ settings } = {}) {
  let browser;
  let contexts = [];
  let mayPagesFail = false;
  const browsers = {
    server: undefined,

    /** Opens the page as a user, in a new context; `prepare` may change the context first. */
    async open(name, { prepare = () => {}, at = browsers.server, more = '' } = {}) {
      const context = await openContext(browser);
      contexts.push(context);
      await prepare(context);
      return openAs(context, at, name, more);
    },

    /** Opens an address in a new context, without joining. */
    async openTab(url) {
      const context = await openContext(browser);
      contexts.push(context);
      const tab = await context.newPage();
      await tab.goto(url);
      return tab;
    },

    /** Makes two users contacts and opens the page of each. */
    async openFriends(one, other, { at = browsers.server } = {}) {
      await befriend(at, one, other);
      return Promise.all([one, other].map((name) => browsers.open(name, { at })));
    },

    /** Accepts errors of the pages until the current test ends. */
    allowPageErrors() {
      mayPagesFail = true;
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
    const pageErrors = mayPagesFail ? [] : contexts.flatMap((context) => context.pageErrors);
    await Promise.all(contexts.map((context) => context.close()));
    contexts = [];
    mayPagesFail = false;
    assert.deepEqual(pageErrors, []);
  });
  return browsers;
}
