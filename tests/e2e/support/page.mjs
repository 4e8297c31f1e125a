/** Helpers for the page at `/`: open it as a user, wait for what it shows, find its elements. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Time limit, on a busy machine, until a page shows a change. */
export const LIVE_MS = 15000;

export const PHONE = { width: 360, height: 740 };
const DESK = { width: 1200, height: 800 };

/** Set SCREENSHOTS to a directory to keep screenshots of the pages. */
const { SCREENSHOTS } = process.env;

/** Opens a browser context that collects the errors of its pages in `pageErrors`. */
export async function openContext(browser, options = {}) {
  const context = await browser.newContext({ viewport: DESK, ...options });
  context.pageErrors = [];
  context.on('weberror', (error) => context.pageErrors.push(String(error.error())));
  context.on('console', (message) => {
    if (message.type() === 'error') context.pageErrors.push(message.text());
  });
  return context;
}

/** Opens a tab as a user and waits until it is connected; `more` is added to the query. */
export async function openAs(context, server, name, more = '') {
  const tab = await context.newPage();
  await tab.goto(`${server.url}?name=${encodeURIComponent(name)}${more}`);
  await waitForText(tab.locator('#connection-text'), 'connected');
  return tab;
}

export const friendRow = (tab, name) => tab.locator(`#friends [data-user="${name}"]`);

export const personRow = (tab, name) => tab.locator(`#people [data-user="${name}"]`);

export const button = (tab, name) => tab.getByRole('button', { name, exact: true });

/** Waits until the text of an element is as expected; the failure names the last text. */
export async function waitForText(locator, expected) {
  const pattern = expected instanceof RegExp ? expected : new RegExp(`^${expected}$`);
  const deadlineMs = Date.now() + LIVE_MS;
  let text = '';
  while (Date.now() < deadlineMs) {
    text = (await locator.textContent({ timeout: LIVE_MS })).trim();
    if (pattern.test(text)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.match(text, pattern);
}

export const waitForStatus = (row, expected) => waitForText(row.locator('.person-status'), expected);

export const appears = (locator) => locator.waitFor({ state: 'visible', timeout: LIVE_MS });

export const disappears = (locator) => locator.waitFor({ state: 'hidden', timeout: LIVE_MS });

export async function screenshot(tab, name) {
  if (SCREENSHOTS === undefined) return;
  await mkdir(SCREENSHOTS, { recursive: true });
  const before = tab.viewportSize();
  for (const [scheme, viewport, label] of [
    ['light', PHONE, 'phone'],
    ['dark', PHONE, 'phone-dark'],
    ['light', DESK, 'desk'],
    ['dark', DESK, 'desk-dark'],
  ]) {
    await tab.emulateMedia({ colorScheme: scheme });
    await tab.setViewportSize(viewport);
    await tab.screenshot({ path: join(SCREENSHOTS, `${name}-${label}.png`) });
  }
  await tab.setViewportSize(before);
}

/** How many pixels the page is wider than the window. */
export const overflow = (tab) =>
  tab.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** The controls of a part of the page that are not completely inside the window, or are covered. */
export const clipped = (tab, screen) =>
  tab.locator(`${screen} :is(button, input, textarea, a)`).evaluateAll((controls) => {
    const isReachable = (control) => {
      const { left, top, right, bottom } = control.getBoundingClientRect();
      const inside = left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
      const hit = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
      return inside && control.contains(hit);
    };
    const isScrolled = (control) => control.closest('.messages, .list, fieldset') !== null;
    return controls
      .filter((control) => control.checkVisibility() && !isScrolled(control) && !isReachable(control))
      .map((control) => control.id || control.textContent);
  });
