/** The programs of docs/COMING_FROM.md do with Rollcall what they did before. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { WebSocket } from 'ws';
import { Rollcall } from '../../../clients/js/rollcall.js';
import { startApplication } from '../support/application.mjs';
import { devToken, eventually, rest } from '../support/client.mjs';
import { startServer } from '../support/server.mjs';

const page = await readFile(new URL('../../../docs/COMING_FROM.md', import.meta.url), 'utf8');
const [listening, asking] = [...page.matchAll(/```js\n([^]*?)```/g)].map(([, block]) => block);
const [delivery] = [...page.matchAll(/```json\n([^]*?)```/g)].map(([, block]) => JSON.parse(block));
const AsyncFunction = (async () => {}).constructor;

let application;
let server;
let client;

before(async () => {
  application = await startApplication(({ name, data }) => ({ body: { price: name === 'quote' && data.symbol === 'X' ? 12.5 : null } }));
  server = await startServer({ settings: { 'hooks.event_url': application.url } });
});
after(async () => {
  client?.close();
  await server.stop();
  await application.stop();
});

test('a page listens to news, and the backend publishes them', async () => {
  const shown = [];
  class Here extends Rollcall {
    constructor({ url, getToken }) {
      assert.equal(url, 'https://rollcall.example.org');
      super({ url: server.url, getToken, WebSocket });
      client = this;
    }
  }
  const getToken = () => devToken(server, 'alice');
  await new AsyncFunction('Rollcall', 'getToken', 'show', listening)(Here, getToken, (data) => shown.push(data));
  const token = await server.token('backend', { scope: 'service' });
  assert.ok((await rest(server, 'POST', '/v1/service/deliver', { token, body: delivery })).status < 300);
  await eventually(() => shown.length === 1, 'the news are shown');
  assert.deepEqual(shown, [delivery.data]);
});

test('a question gets the answer of the application', async () => {
  const shown = [];
  await new AsyncFunction('client', 'show', asking)(client, (price) => shown.push(price));
  assert.deepEqual(shown, [12.5]);
});
