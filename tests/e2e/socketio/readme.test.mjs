/** The README's commands and its Socket.IO snippet show what they say. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, test } from 'node:test';
import { io } from 'socket.io-client';
import { eventually, rest } from '../support/client.mjs';
import { startServer } from '../support/server.mjs';

const README = await readFile(new URL('../../../README.md', import.meta.url), 'utf8');
const snippet = /```js\n([^`]*\bio\(.*?)```/s.exec(README)[1];

const server = await startServer();
after(() => server.stop());

test('the Socket.IO snippet shows an answer, and messages of others', async () => {
  const [, chat] = /\/v1\/chats" -d '([^']+)'/.exec(README);
  assert.equal((await rest(server, 'POST', '/v1/chats', { user: 'alice', body: JSON.parse(chat) })).status, 201);
  const lines = [];
  const sockets = [];
  const connectHere = (url, options) => {
    assert.equal(url, 'http://127.0.0.1:8080');
    sockets.push(io(server.url, { ...options, transports: ['websocket'] }));
    return sockets[0];
  };
  const run = new Function('io', 'token', 'console', snippet);
  run(connectHere, await server.token('alice'), { log: (...words) => lines.push(words.join(' ')) });
  await eventually(() => lines.length === 1, 'the answer is shown');
  assert.deepEqual(lines, ['message_ack 1']);
  await rest(server, 'POST', '/v1/chats/team/messages', {
    user: 'bob',
    body: { client_message_id: 'reply', body: 'hello alice' },
  });
  await eventually(() => lines.length === 2, 'the message is shown');
  assert.equal(lines[1], 'bob: hello alice');
  for (const socket of sockets) socket.disconnect();
});
