import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { Rollcall } from '../rollcall.js';

const types = readFileSync(new URL('../rollcall.d.ts', import.meta.url), 'utf8');
const declaration = types.slice(types.indexOf('export class Rollcall {'));

test('every public member of the client is declared, and nothing else', () => {
  const declared = new Set(
    [...declaration.matchAll(/^ {2}(?:readonly )?(\w+)[(<:]/gm)].map(([, name]) => name),
  );
  const actual = new Set([...Object.getOwnPropertyNames(Rollcall.prototype), 'deviceId']);
  assert.deepEqual([...declared].sort(), [...actual].sort());
});
