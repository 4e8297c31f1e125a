import assert from 'node:assert/strict';
import { test } from 'node:test';
import { uniqueId } from '../util.js';

const countUnique = (count) => new Set(Array.from({ length: count }, uniqueId)).size;

test('ids are 32 hexadecimal digits, and no two are equal', () => {
  assert.match(uniqueId(), /^[0-9a-f]{32}$/);
  assert.equal(countUnique(1000), 1000);
});

test('ids are unique without the global crypto too, as in Node 18', (context) => {
  const own = Object.getOwnPropertyDescriptor(globalThis, 'crypto');
  context.after(() => own && Object.defineProperty(globalThis, 'crypto', own));
  Object.defineProperty(globalThis, 'crypto', { value: undefined, configurable: true });
  assert.match(uniqueId(), /^[0-9a-f]{32}$/);
  assert.equal(countUnique(1000), 1000);
});
