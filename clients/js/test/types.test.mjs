import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { Calls, TabMemory } from '../call.js';
import { MessageList, Rollcall, RollcallApi } from '../rollcall.js';

/** The public members that a file of types declares for a class. */
function declaredMembers(file, name) {
  const types = readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
  const start = types.indexOf(`export class ${name} {`);
  const declaration = types.slice(start, types.indexOf('\n}', start));
  const found = declaration.matchAll(/^ {2}(?:readonly |private )?(\w+)[(<:]/gm);
  return [...new Set([...found].map(([, member]) => member))].sort();
}

for (const [file, type, fields] of [
  ['rollcall.d.ts', Rollcall, ['deviceId', 'api']],
  ['rollcall.d.ts', RollcallApi, []],
  ['rollcall.d.ts', MessageList, ['chatId']],
  ['call.d.ts', Calls, []],
  ['call.d.ts', TabMemory, []],
]) {
  test(`every public member of ${type.name} is declared, and nothing else`, () => {
    const actual = [...Object.getOwnPropertyNames(type.prototype), ...fields];
    assert.deepEqual(declaredMembers(file, type.name), actual.sort());
  });
}
