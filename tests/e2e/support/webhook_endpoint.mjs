/** An endpoint of the application: a real HTTP server that keeps what it takes, and verifies signatures by an implementation of its own. */
import assert from 'node:assert/strict';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from './client.mjs';

export const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

export async function writeSecret(secret = SECRET) {
  const path = join(await mkdtemp(join(tmpdir(), 'rollcall-secret-')), 'secret');
  await writeFile(path, `${secret}\n`);
  return path;
}

/** As https://www.standardwebhooks.com says, without a line of the server's. */
export function verifySignature(headers, body, secret = SECRET) {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const text = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
  const expected = createHmac('sha256', key).update(text).digest();
  const [version, signature] = headers['webhook-signature'].split(',');
  assert.equal(version, 'v1');
  assert.ok(timingSafeEqual(Buffer.from(signature, 'base64'), expected), 'the signature is wrong');
  assert.ok(Math.abs(Date.now() / 1000 - Number(headers['webhook-timestamp'])) < 60);
}

/**
 * `answer(events, request)` returns the status of each request, or undefined to leave it without an answer. Taken events are in `events`, in the
 * order of their arrival; requests of any outcome in `requests`.
 */
export async function startEndpoint({ answer = () => 200, port = 0, secret = SECRET } = {}) {
  const endpoint = { events: [], requests: [], answer, problems: [] };
  const server = createServer((request, response) => {
    const pieces = [];
    request.on('data', (piece) => pieces.push(piece));
    request.on('end', () => {
      const body = Buffer.concat(pieces).toString();
      try {
        assert.equal(request.method, 'POST');
        assert.equal(request.headers['content-type'], 'application/json');
        if (secret) verifySignature(request.headers, body, secret);
      } catch (problem) {
        endpoint.problems.push(problem);
      }
      const { events } = JSON.parse(body);
      endpoint.requests.push({ events, headers: request.headers, atMs: Date.now() });
      const status = endpoint.answer(events, request);
      if (status === undefined) return;
      if (status >= 200 && status <= 299) endpoint.events.push(...events);
      response.writeHead(status, status >= 300 && status <= 399 ? { location: '/elsewhere' } : {}).end();
    });
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  endpoint.port = server.address().port;
  endpoint.url = `http://127.0.0.1:${endpoint.port}/hook`;
  endpoint.of = (type) => endpoint.events.filter((event) => event.type === type);
  endpoint.next = async (type, matches = () => true) => {
    const find = () => endpoint.events.find((event) => event.type === type && matches(event.data));
    await eventually(() => find() !== undefined, `event ${type}`);
    assert.deepEqual(endpoint.problems, []);
    return find();
  };
  endpoint.stop = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections?.();
    });
  return endpoint;
}
