/**
 * An application's own HTTP server, for the questions that Rollcall asks it. It keeps every question in order, checks
 * its signature, and answers as the test says.
 */
import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from './client.mjs';

/** Whether a request is signed as Standard Webhooks says. */
export function isSigned(key, headers, body) {
  const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature } = headers;
  const wanted = createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64');
  return signature === `v1,${wanted}` && Math.abs(Date.now() / 1000 - Number(time)) < 60;
}

/**
 * Starts an application. `answer(question, response)` may return `{status, body}` (an object becomes JSON), a promise of
 * it, or nothing if it uses the response itself.
 */
export async function startApplication(answer = () => ({ status: 204 })) {
  const key = randomBytes(32);
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-application-'));
  const secretFile = join(directory, 'secret');
  await writeFile(secretFile, `whsec_${key.toString('base64')}\n`);
  const application = { questions: [], answer, secretFile, inFlight: 0, inFlightMost: 0, sockets: 0 };
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const piece of request) text += piece;
    application.inFlight += 1;
    application.inFlightMost = Math.max(application.inFlightMost, application.inFlight);
    const question = JSON.parse(text);
    application.questions.push(question);
    application.lastHeaders = request.headers;
    assert.equal(request.method, 'POST');
    application.signed = isSigned(key, request.headers, text);
    const given = await application.answer(question, response);
    application.inFlight -= 1;
    if (!given) return;
    const { status = 200, body, headers = {} } = given;
    response.writeHead(status, headers);
    response.end(body === undefined || typeof body === 'string' ? body : JSON.stringify(body));
  });
  server.on('connection', () => (application.sockets += 1));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  application.url = `http://127.0.0.1:${server.address().port}/hook`;

  /** Waits for the question that matches. */
  application.asked = (matches = () => true) =>
    eventually(() => application.questions.find(matches), 'a question to the application');
  application.stop = async () => {
    server.closeAllConnections();
    server.close();
    await rm(directory, { recursive: true, force: true });
  };
  return application;
}
