/** The files of deploy/ for AWS: they say what the program says. */
import assert from 'node:assert/strict';
import { access, readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { rollcall } from '../support/server.mjs';

const path = (name) => fileURLToPath(new URL(`../../../${name}`, import.meta.url));
const read = (name) => readFile(path(name), 'utf8');

/** What a call needs to be allowed; a transaction needs what it is made of. */
const NEEDED = {
  TransactGetItems: ['GetItem'],
  TransactWriteItems: ['PutItem', 'UpdateItem', 'DeleteItem', 'ConditionCheckItem'],
};

async function targetsOf(isWanted) {
  const folder = 'src/ledger/dynamodb';
  const entries = await readdir(path(folder), { withFileTypes: true });
  const subfolders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const inside = await Promise.all(
    subfolders.map(async (name) => (await readdir(path(`${folder}/${name}`))).map((file) => `${name}/${file}`)),
  );
  const names = [...entries.map(({ name }) => name), ...inside.flat()].filter(
    (name) => /^(?!.*_test).*\.c$/.test(name) && isWanted(name),
  );
  const texts = await Promise.all(names.map((name) => read(`${folder}/${name}`)));
  const calls = texts.flatMap((text) => [...text.matchAll(/\b(?:\w*call\w*|read_table_part)\([^;"]*?"([A-Z][A-Za-z]+)"/g)]);
  return calls.map(([, target]) => target);
}

async function expectPolicy(file, targets) {
  const { Statement: statements } = JSON.parse(await read(file));
  const allowed = statements.flatMap(({ Action }) => Action.map((action) => action.replace('dynamodb:', '')));
  const needed = targets.flatMap((target) => NEEDED[target] ?? [target]);
  assert.deepEqual(allowed, [...new Set(needed)].sort());
  for (const { Resource } of statements) assert.match(Resource, /:table\/rollcall-\*$/);
}

test('dynamodb_tables.yaml is what `rollcall tables template` prints', async () => {
  const { code, stdout } = await rollcall('tables', 'template');
  assert.equal(code, 0);
  assert.equal(stdout, await read('deploy/dynamodb_tables.yaml'));
});

test('iam_policy.json allows what the ledger calls and nothing else', async () => {
  const targets = await targetsOf((name) => name !== 'dynamodb_admin.c');
  assert.ok(targets.includes('TransactWriteItems') && targets.includes('Query'), `${targets}`);
  await expectPolicy('deploy/iam_policy.json', targets);
});

test('iam_policy_tables.json allows what `rollcall tables` calls and nothing else', async () => {
  const targets = await targetsOf((name) => name === 'dynamodb_admin.c');
  assert.ok(targets.includes('CreateTable'), `${targets}`);
  await expectPolicy('deploy/iam_policy_tables.json', targets);
});

test('`rollcall tables` explains wrong arguments', async () => {
  for (const args of [[], ['create'], ['check'], ['template', '--ledger', 'dynamodb://x'], ['drop', '--ledger', 'dynamodb://x']]) {
    const { code, stderr } = await rollcall('tables', ...args);
    assert.equal(code, 2, args.join(' '));
    assert.match(stderr, /^usage: rollcall tables/);
  }
  const { code, stderr } = await rollcall('tables', 'check', '--ledger', 'sqlite:x');
  assert.equal(code, 1);
  assert.match(stderr, /expected dynamodb:\/\/REGION/);
});

test('every file that docs/AWS.md names exists', async () => {
  const names = [...(await read('docs/AWS.md')).matchAll(/`((?:src|tests|deploy)\/[\w/.]+)`/g)].map(([, name]) => name);
  assert.ok(names.length >= 10, `${names}`);
  await Promise.all(names.map((name) => access(path(name))));
});
