import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { MessageList } from '../message_list.js';
import { Rollcall, RollcallApi } from '../rollcall.js';

const types = readFileSync(new URL('../rollcall.d.ts', import.meta.url), 'utf8');

/** The public members that the types declare for a class. */
function declaredMembers(name) {
  const start = types.indexOf(`export class ${name} {`);
  const declaration = types.slice(start, types.indexOf('\n}', start));
  const found = declaration.matchAll(/^ {2}(?:readonly |private )?(\w+)[(<:]/gm);
  return [...new Set([...found].map(([, member]) => member))].sort();
}

for (const [type, fields] of [
  [Rollcall, ['deviceId', 'api']],
  [RollcallApi, []],
  [MessageList, ['chatId']],
]) {
  test(`every public member of ${type.name} is declared, and nothing else`, () => {
    const actual = [...Object.getOwnPropertyNames(type.prototype), ...fields];
    assert.deepEqual(declaredMembers(type.name), actual.sort());
  });
}
