/** Small helpers that several files use. */

const ENDPOINT_PATH = '/v1/ws';
const ID_BYTES = 16;

const randomByte = () => Math.floor(Math.random() * 256);

/**
 * 128 random bits in hexadecimal. (Pages without TLS have no crypto.randomUUID, and Node 18 has no global crypto;
 * an id must be unique, it is no secret.)
 */
export function uniqueId() {
  const empty = new Uint8Array(ID_BYTES);
  const bytes = globalThis.crypto?.getRandomValues(empty) ?? empty.map(randomByte);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Accepts http or ws, with or without a path; the default is the page's origin. */
export function endpointUrl(url, deviceId) {
  const endpoint = new URL(url ?? '/', globalThis.location?.href);
  endpoint.protocol = endpoint.protocol.replace(/^http/, 'ws');
  if (endpoint.protocol !== 'ws:' && endpoint.protocol !== 'wss:')
    throw new TypeError(`not a WebSocket address: ${url}`);
  if (endpoint.pathname === '/') endpoint.pathname = ENDPOINT_PATH;
  endpoint.searchParams.set('device_id', deviceId);
  return endpoint.href;
}

/** Where the paths of the HTTP API start, for the same addresses; without a slash at the end. */
export function apiUrl(url) {
  const address = new URL(url ?? '/', globalThis.location?.href);
  const prefix = address.pathname.endsWith(ENDPOINT_PATH)
    ? address.pathname.slice(0, -ENDPOINT_PATH.length)
    : '';
  return address.protocol.replace(/^ws/, 'http') + '//' + address.host + prefix;
}

/** Runs `work` on every item, at most `limit` at a time. */
export async function inParallel(items, limit, work) {
  const queue = [...items];
  const worker = async () => {
    while (queue.length > 0) await work(queue.shift());
  };
  await Promise.all(Array.from({ length: limit }, worker));
}
