/**
 * An HTTP proxy in front of DynamoDB Local that does what DynamoDB does and DynamoDB Local does not: it verifies the
 * signature of every request, counts requests, and answers with throttling, conflicts, errors, resets, and slow or cut
 * answers when a test says so.
 *
 *     const proxy = await startDynamodbProxy(dynamodb.endpoint);
 *     proxy.inject('TransactWriteItems', faults.throttled, 2); // the next two
 *     …
 *     proxy.count('TransactWriteItems');
 */
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { reset } from '../../e2e/support/proxy.mjs';
import { isSignedWith, parseAuthorization } from './aws_signature.mjs';

export const REGION = 'eu-central-1';
/** DynamoDB Local takes letters and digits only. */
export const KEYS = { accessKeyId: 'AKIDROLLCALLTEST', secretAccessKey: 'secret/of+the+tests' };

/** Environment variables that make a server sign with these keys. */
export const keyEnvironment = ({ accessKeyId, secretAccessKey, sessionToken } = KEYS) => ({
  AWS_ACCESS_KEY_ID: accessKeyId,
  AWS_SECRET_ACCESS_KEY: secretAccessKey,
  ...(sessionToken === undefined ? {} : { AWS_SESSION_TOKEN: sessionToken }),
});

const SKEW_MAX_MS = 5 * 60 * 1000;
/** As DynamoDB Local: a kept connection ends after half a minute of silence. */
const KEEP_ALIVE_MS = 30000;

/* ---- faults ---- */

const DYNAMODB = 'com.amazonaws.dynamodb.v20120810#';
const CORAL = 'com.amazon.coral.service#';
const AVAILABILITY = 'com.amazon.coral.availability#';

/** Answers without forwarding: nothing is written. */
const refuse = (status, type, message) => ({
  kind: 'answer', status, body: () => JSON.stringify({ __type: type, message }),
});

/** The cancellation of a transaction: `code` for its first item, None for the others. */
const cancel = (code) => ({
  kind: 'answer',
  status: 400,
  body: ({ TransactItems: items = [{}] }) => JSON.stringify({
    __type: `${DYNAMODB}TransactionCanceledException`,
    Message: `Transaction cancelled, please refer cancellation reasons for specific reasons [${code}]`,
    CancellationReasons: items.map((_, index) => (index === 0 ? { Code: code, Message: code } : { Code: 'None' })),
  }),
});

export const faults = {
  throttled: refuse(400, `${DYNAMODB}ProvisionedThroughputExceededException`, 'The level of configured provisioned throughput for the table was exceeded.'),
  throttling: refuse(400, `${CORAL}ThrottlingException`, 'Rate of requests exceeds the allowed throughput.'),
  requestLimit: refuse(400, `${DYNAMODB}RequestLimitExceeded`, 'Throughput exceeds the current throughput limit for your account.'),
  throttledItem: cancel('ProvisionedThroughputExceeded'),
  throttledTransaction: cancel('ThrottlingError'),
  conflict: cancel('TransactionConflict'),
  itemConflict: refuse(400, `${DYNAMODB}TransactionConflictException`, 'Transaction is ongoing for the item'),
  inProgress: refuse(400, `${DYNAMODB}TransactionInProgressException`, 'The transaction with the given request token is already in progress'),
  internal: refuse(500, `${DYNAMODB}InternalServerError`, 'Internal server error'),
  unavailable: refuse(503, `${AVAILABILITY}ServiceUnavailableException`, 'Service is unavailable.'),
  validation: refuse(400, `${CORAL}ValidationException`, 'One or more parameter values were invalid'),
  /** The connection is reset before the request is forwarded. */
  resetBefore: { kind: 'reset-before' },
  /** The request is executed; the answer is lost. */
  resetAfter: { kind: 'reset-after' },
  /** The request is executed; half of the answer arrives. */
  cutAnswer: { kind: 'cut' },
  /** The request is executed; DynamoDB says that it failed. */
  internalAfter: { kind: 'internal-after' },
  /** The request is executed and never answered. */
  silence: { kind: 'silence' },
  /** The answer comes later. */
  slow: (delayMs) => ({ kind: 'slow', delayMs }),
};

/* ---- what DynamoDB checks ---- */

function refusalOf(request, keys) {
  const authorization = parseAuthorization(request.headers.authorization);
  if (request.headers.authorization === undefined)
    return refuse(400, `${CORAL}MissingAuthenticationTokenException`, 'Request is missing Authentication Token');
  if (authorization === undefined)
    return refuse(400, `${CORAL}IncompleteSignatureException`, 'The Authorization header is malformed');
  const key = keys.get(authorization.accessKeyId);
  const token = request.headers['x-amz-security-token'];
  if (key === undefined || key.sessionToken !== token)
    return refuse(400, `${CORAL}UnrecognizedClientException`, 'The security token included in the request is invalid.');
  if (key.endsAtMs !== undefined && Date.now() >= key.endsAtMs)
    return refuse(400, `${CORAL}ExpiredTokenException`, 'The security token included in the request is expired');
  const required = ['host', 'x-amz-date', 'x-amz-target', ...(token === undefined ? [] : ['x-amz-security-token'])];
  const date = request.headers['x-amz-date'] ?? '';
  const signedMs = Date.parse(date.replace(/^(....)(..)(..T..)(..)(..)Z$/, '$1-$2-$3:$4:$5Z'));
  const isFresh = Math.abs(Date.now() - signedMs) <= SKEW_MAX_MS && date.startsWith(authorization.day);
  const isScoped = authorization.region === REGION && authorization.service === 'dynamodb';
  const isWhole = required.every((name) => authorization.signedHeaders.includes(name));
  if (isFresh && isScoped && isWhole && isSignedWith(request, authorization, key.secretAccessKey)) return undefined;
  return refuse(400, `${CORAL}InvalidSignatureException`,
    'The request signature we calculated does not match the signature you provided.');
}

/* ---- the proxy ---- */

async function readAll(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}

class DynamodbProxy {
  #upstream;
  #agent = new http.Agent({ keepAlive: true });
  #rules = [];
  #listener;
  #sockets = new Set();
  #isDown = false;

  /** What arrived, in order: `{ target, atMs, body, accessKeyId, refused }`; `refused` names a wrong signature. */
  requests = [];
  /** Those of all of them that DynamoDB would not have accepted: forget() does not forget these. */
  refusals = [];
  keys = new Map();

  constructor(upstream, keys) {
    this.#upstream = new URL(upstream);
    this.addKey(keys);
  }

  async listen(tls, port = 0) {
    const serve = (request, response) => this.#serve(request, response).catch(() => reset(request.socket));
    this.#listener = tls === undefined ? http.createServer(serve) : https.createServer(tls, serve);
    this.#listener.keepAliveTimeout = KEEP_ALIVE_MS;
    this.#listener.on(tls === undefined ? 'connection' : 'secureConnection', (socket) => {
      this.connections += 1;
      if (this.#isDown) reset(socket);
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    this.#listener.listen(port, '127.0.0.1');
    await once(this.#listener, 'listening');
    this.port = this.#listener.address().port;
    this.endpoint = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${this.port}`;
  }

  connections = 0;

  /** For --ledger. */
  ledgerUrl(prefix, more = '') {
    return `dynamodb://${REGION}?endpoint=${this.endpoint}&prefix=${prefix}${more}`;
  }

  addKey({ accessKeyId, ...key }) {
    this.keys.set(accessKeyId, key);
  }

  /** Applies the fault to the next `times` requests of a target (a name, a pattern, or a function of the request). */
  inject(target, fault, times = Infinity) {
    this.#rules.push({ target, fault, left: times });
  }

  /** Refuses connections as a server that is gone. */
  down() {
    this.#isDown = true;
    for (const socket of this.#sockets) reset(socket);
  }

  /** Ends every fault. */
  restore() {
    this.#isDown = false;
    this.#rules = [];
  }

  /** Forgets what was counted. */
  forget() {
    this.requests = [];
  }

  /** How many requests of this target arrived. */
  count(target) {
    return this.requests.filter((request) => request.target === target).length;
  }

  async close() {
    this.down();
    this.#agent.destroy();
    this.#listener.close();
    await once(this.#listener, 'close');
  }

  #faultOf(request) {
    const matches = ({ target }) =>
      typeof target === 'function' ? target(request)
        : target instanceof RegExp ? target.test(request.target) : target === request.target;
    const rule = this.#rules.find((each) => each.left > 0 && matches(each));
    if (rule !== undefined) rule.left -= 1;
    return rule?.fault;
  }

  async #serve(message, response) {
    const body = await readAll(message);
    const { pathname: path, search } = new URL(message.url, 'http://proxy');
    const request = { method: message.method, path, query: search.slice(1), headers: message.headers, body };
    const target = message.headers['x-amz-target']?.replace(/^DynamoDB_20120810\./, '');
    const refusal = refusalOf(request, this.keys);
    const seen = {
      target,
      atMs: performance.now(),
      body: refusal === undefined ? JSON.parse(body) : undefined,
      accessKeyId: parseAuthorization(message.headers.authorization)?.accessKeyId,
      refused: refusal === undefined ? undefined : JSON.parse(refusal.body({})).__type.replace(/^.*#/, ''),
    };
    this.requests.push(seen);
    if (seen.refused !== undefined) this.refusals.push(seen);
    await this.#answer(refusal ?? this.#faultOf(seen), message, seen, body, response);
  }

  async #answer(fault, message, seen, body, response) {
    const socket = message.socket;
    if (fault?.kind === 'answer') {
      send(response, fault.status, fault.body(seen.body ?? {}));
      return;
    }
    if (fault?.kind === 'reset-before') {
      reset(socket);
      return;
    }
    const answer = await this.#forward(message, body);
    seen.status = answer.status;
    if (fault === undefined) send(response, answer.status, answer.body);
    else if (fault.kind === 'slow') setTimeout(() => send(response, answer.status, answer.body), fault.delayMs);
    else if (fault.kind === 'reset-after') reset(socket);
    else if (fault.kind === 'internal-after') send(response, 500, faults.internal.body({}));
    else if (fault.kind === 'cut') {
      response.writeHead(answer.status, { 'Content-Type': 'application/x-amz-json-1.0', 'Content-Length': answer.body.length + 10 });
      response.write(answer.body);
      setTimeout(() => reset(socket), 50);
    }
  }

  #forward(message, body) {
    const { hostname, port } = this.#upstream;
    const headers = { ...message.headers, host: `${hostname}:${port}` };
    const options = { hostname, port, path: message.url, method: message.method, agent: this.#agent, headers };
    return new Promise((resolve, reject) => {
      const forwarded = http.request(options, async (answer) => {
        resolve({ status: answer.statusCode, body: await readAll(answer) });
      });
      forwarded.on('error', reject);
      forwarded.end(body);
    });
  }
}

function send(response, status, body) {
  const bytes = Buffer.from(body);
  response.writeHead(status, { 'Content-Type': 'application/x-amz-json-1.0', 'Content-Length': bytes.length });
  response.end(bytes);
}

/** Starts a proxy in front of the DynamoDB at this URL. `tls` are options of https.createServer(). */
export async function startDynamodbProxy(upstream, { keys = KEYS, tls, port } = {}) {
  const proxy = new DynamodbProxy(upstream, keys);
  await proxy.listen(tls, port);
  return proxy;
}
