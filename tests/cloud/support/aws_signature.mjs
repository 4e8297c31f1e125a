/** Verifies AWS Signature Version 4 over a request as it arrived: nothing here is shared with the signer. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/, ]+)\/(\d{8})\/([^/, ]+)\/([^/, ]+)\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/;

const sha256 = (data) => createHash('sha256').update(data).digest('hex');
const hmac = (key, text) => createHmac('sha256', key).update(text, 'utf8').digest();

const encode = (text) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

function canonicalQuery(query) {
  const pairs = [...new URLSearchParams(query)].map(([name, value]) => `${encode(name)}=${encode(value)}`);
  return pairs.sort().join('&');
}

/** The parts of the header; undefined if it is missing or malformed. */
export function parseAuthorization(header) {
  const match = AUTHORIZATION.exec(header ?? '');
  if (match === null) return undefined;
  const [, accessKeyId, day, region, service, signedHeaders, signature] = match;
  return { accessKeyId, day, region, service, signedHeaders: signedHeaders.split(';'), signature };
}

/** The signature that a request of these parts must have. `headers` has lower-case names. */
export function computeSignature({ method, path, query = '', headers, body }, authorization, secret) {
  const { day, region, service, signedHeaders } = authorization;
  const lines = signedHeaders.map((name) => `${name}:${(headers[name] ?? '').trim().replace(/ +/g, ' ')}\n`);
  const canonical = [
    method, path, canonicalQuery(query), lines.join(''), signedHeaders.join(';'), sha256(body),
  ].join('\n');
  const scope = `${day}/${region}/${service}/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, sha256(canonical)].join('\n');
  const key = [day, region, service, 'aws4_request'].reduce(hmac, `AWS4${secret}`);
  return hmac(key, toSign).toString('hex');
}

export const isSignedWith = (request, authorization, secret) =>
  timingSafeEqual(Buffer.from(computeSignature(request, authorization, secret)), Buffer.from(authorization.signature));
