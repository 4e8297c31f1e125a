/**
 * A stock Socket.IO client of another language against the real server: $STOCK_CLIENT is its command line.
 *
 * The program gets the server's address and a token, connects, sends "hello" to the chat `team` and prints what it sees,
 * one line each: `connected`, `ack SEQUENCE`, `friend_online USER`, `message BODY`. After the message "bye" it ends.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { after, test } from 'node:test';
import { makeChat, sendMessage } from '../e2e/support/chats.mjs';
import { closeAll, connect, devToken, eventually } from '../e2e/support/client.mjs';
import { befriend } from '../e2e/support/contacts.mjs';
import { startServer } from '../e2e/support/server.mjs';

const [program, ...args] = (process.env.STOCK_CLIENT ?? 'python3 tests/stock/python/stock.py').split(' ');

test('a stock client connects, sees presence, sends, gets its acknowledgement and a message', async () => {
  const server = await startServer();
  after(() => server.stop());
  after(() => closeAll());
  await makeChat(server, 'team', 'alice', 'bob');
  await befriend(server, 'alice', 'bob');

  const child = spawn(program, [...args, server.url, await devToken(server, 'alice')], { stdio: ['ignore', 'pipe', 'inherit'] });
  after(() => child.kill());
  const lines = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  const exited = new Promise((resolve) => {
    child.on('exit', (code, signal) => resolve(code ?? signal));
    child.on('error', (error) => resolve(error.message));
  });
  const prints = (line) => eventually(() => lines.includes(line), `the line '${line}' among ${lines.join(', ')}`);

  await prints('connected');
  await prints('ack 1');
  const bob = await connect(server, 'bob');
  await prints('friend_online bob');
  await sendMessage(bob, 'team', 'how are you?');
  await prints('message how are you?');
  await sendMessage(bob, 'team', 'bye');
  assert.equal(await exited, 0);
});
