/** Key pairs and tokens made at test time, valid and invalid. */
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';

const KINDS = {
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: () => generateKeyPairSync('ed25519'),
};

const encode = (value) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

export const nowSeconds = () => Math.floor(Date.now() / 1000);

/** Makes a key pair for one algorithm. */
export function makeKey(alg, kid) {
  const { publicKey, privateKey } = KINDS[alg]();
  return {
    alg,
    kid,
    privateKey,
    pem: publicKey.export({ type: 'spki', format: 'pem' }),
    privatePem: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    jwk: { ...publicKey.export({ format: 'jwk' }), alg, use: 'sig', ...(kid && { kid }) },
  };
}

export const jwks = (...keys) => JSON.stringify({ keys: keys.map(({ jwk }) => jwk) });

/** Makes a token for `user`; `claims` and `header` override the defaults. */
export function makeToken(key, user, claims = {}, header = {}) {
  const head = { alg: key.alg, typ: 'JWT', ...(key.kid && { kid: key.kid }), ...header };
  const body = { sub: user, exp: nowSeconds() + 600, ...claims };
  const text = `${encode(head)}.${encode(body)}`;
  const digest = key.alg === 'EdDSA' ? null : 'sha256';
  const signature = sign(digest, Buffer.from(text), {
    key: key.privateKey,
    dsaEncoding: 'ieee-p1363',
  });
  return `${text}.${signature.toString('base64url')}`;
}

/** Makes a token of the classic attack: an HMAC with the public key as its secret. */
export function makeConfusedToken(key, user) {
  const head = { alg: 'HS256', typ: 'JWT', ...(key.kid && { kid: key.kid }) };
  const text = `${encode(head)}.${encode({ sub: user, exp: nowSeconds() + 600 })}`;
  return `${text}.${createHmac('sha256', key.pem).update(text).digest('base64url')}`;
}

/** Makes a token without a signature. */
export function makeUnsignedToken(user, alg = 'none') {
  return `${encode({ alg, typ: 'JWT' })}.${encode({ sub: user, exp: nowSeconds() + 600 })}.`;
}
