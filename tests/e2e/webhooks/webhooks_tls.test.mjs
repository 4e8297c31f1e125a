/** Webhooks and hooks over HTTPS: certificates are verified, also with an authority of one's own, and redirects are not followed. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer as createPlainServer } from 'node:http';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { makeCertificate } from '../support/certificate.mjs';
import { closeAll, connect, eventually, refusal, rest } from '../support/client.mjs';
import { startServer } from '../support/server.mjs';

let directory, own, foreign, server;

/** An application that takes everything, with a certificate of its own for 127.0.0.1; `asked` are the bodies. */
async function startHttps(name, answer = () => ({ status: 200, body: '' })) {
  const folder = await mkdtemp(join(directory, `${name}-`));
  await makeCertificate(folder, name);
  const files = { certificate: join(folder, 'certificate.pem'), key: join(folder, 'key.pem') };
  const application = { ...files, asked: [], answer };
  const https = createServer({ key: await readFile(files.key), cert: await readFile(files.certificate) }, async (request, response) => {
    let text = '';
    for await (const piece of request) text += piece;
    application.asked.push({ path: request.url, text });
    const { status, body, headers } = application.answer(text);
    response.writeHead(status, headers ?? {}).end(body);
  });
  https.on('tlsClientError', () => {});
  https.listen(0, '127.0.0.1');
  await once(https, 'listening');
  application.port = https.address().port;
  application.url = `https://127.0.0.1:${application.port}/hook`;
  application.stop = () => {
    https.closeAllConnections();
    https.close();
  };
  return application;
}

const start = (settings) => startServer({ settings: { 'hooks.circuit_breaker.failure_threshold': 1000, ...settings } });

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'rollcall-tls-'));
  own = await startHttps('own');
  foreign = await startHttps('foreign');
});
after(async () => {
  own.stop();
  foreign.stop();
  await rm(directory, { recursive: true, force: true });
});
afterEach(async () => {
  closeAll();
  await server?.stop();
  own.asked.length = 0;
  foreign.asked.length = 0;
});

const logged = (pattern) => eventually(() => pattern.test(server.log()), `the log says ${pattern}`);

test('an endpoint whose certificate the configured authority signed gets its events', async () => {
  server = await start({ 'webhooks.url': own.url, 'webhooks.ca_file': own.certificate });
  await rest(server, 'POST', '/v1/chats', { user: 'alice', body: { chat_id: 'c', members: ['bob'] } });
  await eventually(() => own.asked.some(({ text }) => text.includes('chat.created')), 'the event');
});

test('an endpoint with another certificate gets nothing, and the log says why', async () => {
  server = await start({ 'webhooks.url': foreign.url, 'webhooks.ca_file': own.certificate });
  await rest(server, 'POST', '/v1/chats', { user: 'alice', body: { chat_id: 'c', members: ['bob'] } });
  await logged(/event=webhook_failed .*certificate/);
  assert.deepEqual(foreign.asked, []);
});

test('without an authority of one’s own a self-signed certificate is refused, and so is one for another name', async () => {
  server = await start({ 'webhooks.url': own.url });
  await rest(server, 'POST', '/v1/chats', { user: 'alice', body: { chat_id: 'c', members: ['bob'] } });
  await logged(/event=webhook_failed .*certificate/);
  await server.stop();
  const url = own.url.replace('127.0.0.1', 'localhost'); // the certificate is for the address only
  server = await start({ 'webhooks.url': url, 'webhooks.ca_file': own.certificate });
  await rest(server, 'POST', '/v1/chats', { user: 'alice', body: { chat_id: 'c', members: ['bob'] } });
  await logged(/event=webhook_failed /);
  assert.deepEqual(own.asked, []);
});

test('hooks ask over HTTPS, and an application with another certificate is not asked', async () => {
  own.answer = (text) => ({ status: 200, body: text.includes('"name"') ? '{"price":1}' : '{"allow":true}' });
  server = await start({ 'hooks.connect_url': own.url, 'hooks.event_url': own.url, 'hooks.ca_file': own.certificate });
  const alice = await connect(server, 'alice');
  assert.deepEqual((await alice.ask({ type: 'event', name: 'quote' })).data, { price: 1 });
  closeAll();
  await server.stop();
  server = await start({ 'hooks.connect_url': foreign.url, 'hooks.ca_file': own.certificate });
  const { status } = await refusal(`${server.url.replace('http', 'ws')}v1/ws?access_token=${await server.token('alice')}`);
  assert.equal(status, 503);
  await logged(/event=hook_failed hook=connect status=0 error=.*certificate/);
  assert.deepEqual(foreign.asked, []);
});

test('a redirect of either hook is not followed', async () => {
  const elsewhere = createPlainServer((request, response) => {
    elsewhere.asked = true;
    response.end('{"allow":true}');
  });
  elsewhere.listen(0, '127.0.0.1');
  await once(elsewhere, 'listening');
  const headers = { location: `http://127.0.0.1:${elsewhere.address().port}/` };
  own.answer = (text) => (text.includes('"name"') ? { status: 307, headers } : { status: 200, body: '' });
  server = await start({ 'hooks.connect_url': own.url, 'hooks.event_url': own.url, 'hooks.ca_file': own.certificate });
  const alice = await connect(server, 'alice');
  assert.equal((await alice.ask({ type: 'event', name: 'quote' })).code, 'SERVICE_UNAVAILABLE');
  own.answer = () => ({ status: 302, headers });
  const { status } = await refusal(`${server.url.replace('http', 'ws')}v1/ws?access_token=${await server.token('bob')}`);
  assert.equal(status, 503);
  assert.equal(elsewhere.asked, undefined);
  elsewhere.close();
});

test('a file of authorities that cannot be read stops the start', async () => {
  server = undefined;
  for (const [url, file] of [['webhooks.url', 'webhooks.ca_file'], ['hooks.event_url', 'hooks.ca_file']])
    await assert.rejects(start({ [url]: own.url, [file]: '/nonexistent/ca.pem' }), ({ message }) =>
      message.includes(file) && message.includes('cannot read the file'));
});
