/** The page at `/` as its tests use it: open it as somebody, wait for what it shows, click. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

/** How long a change may take to be seen on a busy machine. */
export const LIVE_MS = 5000;

export const PHONE = { width: 360, height: 740 };
const DESK = { width: 1200, height: 800 };

/** Set SCREENSHOTS to a directory to see what the tests see. */
const { SCREENSHOTS } = process.env;

/** A browser context that keeps everything the page complains about. */
export async function openContext(browser, options = {}) {
  const context = await browser.newContext({ viewport: DESK, ...options });
  context.complaints = [];
  context.on('weberror', (error) => context.complaints.push(String(error.error())));
  context.on('console', (message) => {
    if (message.type() === 'error') context.complaints.push(message.text());
  });
  return context;
}

/** A tab of somebody, connected. */
export async function openAs(context, server, name, more = '') {
  const tab = await context.newPage();
  await tab.goto(`${server.url}?name=${encodeURIComponent(name)}${more}`);
  await sees(tab.locator('#connection-text'), 'connected');
  return tab;
}

export const friendRow = (tab, name) => tab.locator(`#friends [data-user="${name}"]`);

export const personRow = (tab, name) => tab.locator(`#people [data-user="${name}"]`);

export const button = (tab, name) => tab.getByRole('button', { name, exact: true });

/** Waits until an element reads as expected, and says what it read if it never does. */
export async function sees(locator, expected) {
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

export const seesStatus = (row, expected) => sees(row.locator('.person-status'), expected);

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

/** How many pixels stick out to the side. */
export const overflow = (tab) =>
  tab.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
