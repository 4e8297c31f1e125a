/**
 * The C client, tested through its example programs: a terminal chat, and a storm of messages over
 * connections that are cut at random. $CUTS is the number of cuts (300).
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { AMPLE_RATES, BODY_BYTES_MAX, fillChat, makeChat } from '../support/chats.mjs';
import { certificateSettings, makeCertificate } from '../support/certificate.mjs';
import { connect, devToken, eventually, rest, sleep } from '../support/client.mjs';
import { startProxy } from '../support/proxy.mjs';
import { ROLLCALL_BIN, startServer } from '../support/server.mjs';

const CUTS = Number(process.env.CUTS ?? 300);
const programs = join(dirname(ROLLCALL_BIN), 'clients', 'c');

const SETTINGS = { ...AMPLE_RATES, 'gateway.workers': 2 };

/** Starts a program; `lines` are those it has printed. */
function run(name, ...args) {
  const child = spawn(join(programs, name), args.map(String), { stdio: ['pipe', 'pipe', 'pipe'] });
  const lines = [];
  let errors = '';
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  child.stderr.on('data', (text) => {
    errors += text;
  });
  const exited = new Promise((resolve) => child.on('exit', (code) => resolve(code)));
  return { child, lines, exited, errors: () => errors };
}

test('the terminal chat shows new and earlier messages', async () => {
  const server = await startServer();
  after(() => server.stop());
  await makeChat(server, 'c', 'alice', 'bob');
  const alice = run('example', '127.0.0.1', server.port, await devToken(server, 'alice'), 'c');
  alice.child.stdin.write('hello\nis "anybody" here?\n');
  await eventually(() => alice.lines.includes('2 (sent)'), 'both messages are acknowledged');
  const bob = run('example', '127.0.0.1', server.port, await devToken(server, 'bob'), 'c');
  await eventually(() => bob.lines.includes('2 alice: is "anybody" here?'), 'bob has the earlier messages');
  bob.child.stdin.write('yes\n');
  await eventually(() => alice.lines.includes('3 bob: yes'), 'alice has bob’s message');
  alice.child.stdin.end();
  bob.child.stdin.end();
  assert.equal(await alice.exited, 0);
  assert.equal(await bob.exited, 0);
});

test('the terminal chat sends its whole input before it exits', async () => {
  const server = await startServer();
  after(() => server.stop());
  await makeChat(server, 'c', 'alice', 'bob');
  const alice = run('example', '127.0.0.1', server.port, await devToken(server, 'alice'), 'c');
  alice.child.stdin.end('one\ntwo\n');
  assert.equal(await alice.exited, 0);
  const { body } = await rest(server, 'GET', '/v1/chats/c', { user: 'alice' });
  assert.equal(body.latest_sequence, 2);
});

/** Compiles a program of the README, for the port of a server, and returns its path. */
async function compileReadme(directory, header, port) {
  const page = await readFile(new URL('../../../clients/c/README.md', import.meta.url), 'utf8');
  const block = [...page.matchAll(/```c\n([^]*?)```/g)].map(([, text]) => text).find((text) => text.includes(`#include <${header}>`));
  const [source, program] = [join(directory, `${header}.c`), join(directory, header)];
  await writeFile(source, block.replace('8080', port));
  const sanitizers = programs.includes('build-asan') ? ['-fsanitize=address,undefined'] : [];
  const library = join(programs, 'librollcall-client.a');
  const include = fileURLToPath(new URL('../../../clients/c', import.meta.url));
  await promisify(execFile)('cc', ['-std=c11', '-Wall', '-Wextra', '-Werror', ...sanitizers, '-I', include, '-o', program, source, library, '-lssl', '-lcrypto']);
  return program;
}

test('the programs of the README compile, and do what it says', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-c-readme-'));
  after(() => rm(directory, { recursive: true, force: true }));
  const server = await startServer();
  after(() => server.stop());
  await makeChat(server, 'team', 'alice', 'bob');
  const token = await devToken(server, 'alice');

  const chat = spawn(await compileReadme(directory, 'rollcall.h', server.port), [token], { stdio: ['ignore', 'pipe', 'inherit'] });
  after(() => chat.kill());
  const stored = async () => (await rest(server, 'GET', '/v1/chats/team', { user: 'bob' })).body.latest_sequence === 1;
  await eventually(stored, 'the program sends its message');

  const friends = await compileReadme(directory, 'rollcall_api.h', server.port);
  assert.match((await promisify(execFile)(friends, [token])).stdout, /^\{"friends":\[\]/);
  assert.match((await promisify(execFile)(friends, ['x'])).stderr, /^UNAUTHENTICATED: /);
});

test('a refused token stops the client', async () => {
  const server = await startServer();
  after(() => server.stop());
  const program = run('example', '127.0.0.1', server.port, 'not.a.token', 'c');
  assert.equal(await program.exited, 0);
  assert.match(program.errors(), /-- stopped/);
});

/** Posts JSON over TLS, with these certificates trusted. */
async function postTls(server, path, token, ca, body) {
  const options = { method: 'POST', ca: await readFile(ca), headers: { Authorization: `Bearer ${token}` } };
  const response = await new Promise((resolve, reject) => {
    request(new URL(path, server.url), options, resolve).on('error', reject).end(JSON.stringify(body));
  });
  response.resume();
  assert.equal(response.statusCode, 201);
}

test('over TLS the terminal chat works with a trusted certificate only, and for its host only', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-c-tls-'));
  after(() => rm(directory, { recursive: true, force: true }));
  await makeCertificate(directory, 'rollcall');
  const ca = join(directory, 'certificate.pem');
  const server = await startServer({ settings: certificateSettings(directory) });
  after(() => server.stop());
  const token = await server.token('alice');
  const long = 'x'.repeat(4000);
  await postTls(server, 'v1/chats', token, ca, { chat_id: 'c', members: ['bob'] });
  const alice = run('example', '--tls', '--ca', ca, '127.0.0.1', server.port, token, 'c');
  await eventually(() => /-- ready/.test(alice.errors()), 'ready over TLS');
  alice.child.stdin.end(`${long}\n`);
  await eventually(() => alice.lines.includes('1 (sent)'), 'the message is acknowledged');
  assert.equal(await alice.exited, 0);

  for (const [why, ...args] of [
    ['certificate is not accepted', '--tls', '127.0.0.1'], // the system does not know it
    ['certificate is not accepted', '--tls', '--ca', ca, 'localhost'], // it is for an address
    ['cannot be read', '--tls', '--ca', '/nonexistent', '127.0.0.1'],
    ['backoff', '127.0.0.1'], // plain to a TLS port
  ]) {
    const refused = run('example', ...args, server.port, token, 'c');
    await eventually(() => refused.errors().includes(why), `${why} with ${args}`);
    assert.doesNotMatch(refused.errors(), /-- (ready|syncing)/);
    refused.child.kill();
    await refused.exited;
  }
});

test('the client accepts a page of messages of maximum length in which every byte is escaped', async () => {
  const settings = { ...SETTINGS, 'gateway.backpressure.outbound.max_buffer_bytes': 1 << 26 };
  const server = await startServer({ settings });
  after(() => server.stop());
  await makeChat(server, 'c', 'alice', 'bob');
  const bob = await connect(server, 'bob');
  await fillChat(bob, 'c', 200, () => '\u0001'.repeat(BODY_BYTES_MAX));
  bob.close();
  const alice = run('example', '127.0.0.1', server.port, await devToken(server, 'alice'), 'c');
  await eventually(() => alice.lines.some((line) => line.startsWith('200 bob: ')), 'alice has all messages');
  assert.doesNotMatch(alice.errors(), /backoff/);
  alice.child.stdin.end();
  assert.equal(await alice.exited, 0);
});

test(`every member has every message once and in order after ${CUTS} cuts`, { timeout: 600000 + CUTS * 100 }, async () => {
  const server = await startServer({ settings: SETTINGS });
  const proxy = await startProxy(server.port);
  const port = Number(new URL(proxy.url).port);
  const names = ['alice', 'bob', 'carol'];
  await makeChat(server, 'c', ...names);
  const storms = [];
  for (const name of names)
    storms.push(run('storm', '127.0.0.1', port, await devToken(server, name), 'c', name));
  after(async () => {
    for (const { child } of storms) child.kill();
    proxy.close();
    await server.stop();
  });

  while (proxy.cuts < CUTS) {
    await sleep(5 + Math.random() * 40);
    proxy.cut(0.5);
  }
  for (const { child } of storms) child.stdin.write('stop\n');
  const count = (lines, kind) => lines.filter((line) => line.startsWith(kind)).length;
  await sleep(500);
  const latest = (await rest(server, 'GET', '/v1/chats/c', { user: 'alice' })).body.latest_sequence;
  assert.ok(latest > 50, `only ${latest} messages were sent`);
  for (const [index, { lines, child }] of storms.entries()) {
    await eventually(() => count(lines, 'M ') >= latest, `${names[index]} has all ${latest} messages`, 60000);
    const received = lines.filter((line) => line.startsWith('M ')).map((line) => line.split(' '));
    assert.deepEqual(
      received.map(([, sequence]) => Number(sequence)),
      Array.from({ length: received.length }, (_, i) => i + 1),
      `${names[index]} has each message once, in order`,
    );
    const bodies = received.map(([, , sender, ...body]) => `${sender}: ${body.join(' ')}`);
    assert.equal(new Set(bodies).size, bodies.length, 'no message is stored twice');
    for (const name of names) {
      const numbers = bodies.filter((body) => body.startsWith(`${name}: `)).map((body) => Number(body.split(' ')[2]));
      assert.deepEqual(numbers, Array.from({ length: numbers.length }, (_, i) => i), `messages of ${name} are in the order sent`);
    }
    const acknowledged = lines.filter((line) => line.startsWith('A ')).map((line) => Number(line.slice(2)));
    for (const sequence of acknowledged) assert.equal(received[sequence - 1][2], names[index]);
    child.stdin.end();
  }
  for (const { exited } of storms) assert.equal(await exited, 0);
});
