/**
 * docs/PROTOCOL.md is correct: its examples are valid messages, the server answers its exchanges as written,
 * and it names every command, error code and reason.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { closeAll, connect, rest } from '../support/client.mjs';
import { startServer } from '../support/server.mjs';

const read = (path) => readFile(new URL(`../../../${path}`, import.meta.url), 'utf8');
const page = await read('docs/PROTOCOL.md');

/** Fenced blocks of messages: the block's mark, and each message with its direction. */
const blocks = [...page.matchAll(/^```(\w*)\n([→←][^]*?)^```$/gm)].map(([, mark, text]) => ({
  mark,
  lines: text
    .trimEnd()
    .split('\n')
    .map((line) => ({ isSent: line.startsWith('→ '), message: JSON.parse(line.slice(2)) })),
}));
const exchanges = blocks.filter(({ mark }) => mark === 'exchange');

let server;
let alice;

before(async () => {
  server = await startServer({ args: ['--workers', '1'] });
  alice = await connect(server, 'alice');
  await rest(server, 'POST', '/v1/chats', {
    user: 'alice',
    body: { chat_id: 'team', members: ['bob'] },
  });
});
after(async () => {
  closeAll();
  await server.stop();
});

/** The structure of a value, with types instead of values. */
function shape(value) {
  if (Array.isArray(value)) return value.map(shape);
  if (value === null || typeof value !== 'object') return typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, shape(member)]));
}

for (const { lines } of exchanges) {
  const [{ message: command }, { message: reply }] = lines;
  test(`${command.type} is answered as documented`, async () => {
    if (command.token) command.token = await server.token('alice');
    alice.send(command);
    const answer = await alice.next(({ id }) => id === command.id);
    assert.deepEqual(shape(answer), shape(reply));
    assert.equal(answer.type, reply.type);
    assert.equal(answer.code, reply.code);
    const summary = ({ user_id: user, status, reason }) => ({ user, status, reason });
    assert.deepEqual(answer.presences?.map(summary), reply.presences?.map(summary));
  });
}

test('connection_established is as documented', () => {
  const [{ message }] = blocks[0].lines;
  assert.deepEqual(shape(alice.established), shape(message));
});

/** The rows and names of a C table, `[ROW] = "name"`, whose rows begin with `key`. */
const namesOf = (source, key) =>
  [...source.matchAll(new RegExp(`\\[(${key}\\w+)\\] = "(\\w+)"`, 'g'))].map(([, row, name]) => ({
    row,
    name,
  }));

test('every command of the server is documented, with an example', async () => {
  const dispatch = await read('src/session/dispatch.c');
  const handled = [...dispatch.matchAll(/\[(MESSAGE_\w+)\] = \{/g)].map(([, row]) => row);
  const names = namesOf(await read('src/protocol/message.c'), 'MESSAGE_');
  const commands = names.filter(({ row }) => handled.includes(row)).map(({ name }) => name);
  assert.ok(commands.length >= 5, 'the table is found');
  for (const name of commands) assert.ok(page.includes(`\n#### ${name}\n`), name);
  const shown = new Set(blocks.flatMap(({ lines }) => lines.map(({ message }) => message.type)));
  for (const name of commands) assert.ok(shown.has(name), `${name} has an example`);
});

test('every error code, reason and close code is documented', async () => {
  const source = await read('src/protocol/message.c');
  const codes = namesOf(source, 'ERROR_');
  const reasons = namesOf(source, 'CLOSING_');
  assert.ok(codes.length >= 13 && reasons.length >= 8, 'the tables are found');
  for (const { name } of [...codes, ...reasons]) assert.ok(page.includes(`\n| \`${name}\` |`), name);
  const connection = await read('src/connection/connection_end.c');
  const closeCodes = [...connection.matchAll(/CLOSE_\w+ = (4\d\d\d)/g)].map(([, code]) => code);
  assert.ok(closeCodes.length >= 5, 'the codes are found');
  for (const code of closeCodes) assert.ok(page.includes(`| ${code} |`), code);
});

test('every link within the page has a target', () => {
  const anchors = [...page.matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
    title.toLowerCase().replaceAll(/[^\w -]/g, '').replaceAll(' ', '-'),
  );
  for (const [, anchor] of page.matchAll(/\]\(#([^)]+)\)/g))
    assert.ok(anchors.includes(anchor), `#${anchor}`);
});
