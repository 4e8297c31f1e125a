/** The endpoint of a container's credentials: each request gets new keys, which last for a while. */
import { once } from 'node:events';
import http from 'node:http';

const TOKEN = 'Basic token-of-the-tests';

let endpoints = 0;

/** Starts the endpoint; the proxy learns each pair of keys with its end. */
export async function startContainerCredentials(proxy, lastingMs) {
  endpoints += 1;
  const prefix = `ASIA${endpoints}X`;
  let issued = 0;
  let refuses = false;
  const listener = http.createServer((request, response) => {
    if (refuses || request.headers.authorization !== TOKEN) {
      response.writeHead(403).end();
      return;
    }
    issued += 1;
    const keys = { accessKeyId: `${prefix}${issued}`, secretAccessKey: `secret-${issued}`, sessionToken: `session-${issued}` };
    const endsAtMs = Date.now() + lastingMs;
    proxy.addKey({ ...keys, endsAtMs });
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({
      AccessKeyId: keys.accessKeyId,
      SecretAccessKey: keys.secretAccessKey,
      Token: keys.sessionToken,
      Expiration: new Date(endsAtMs).toISOString(),
    }));
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    issued: () => issued,

    /** Whether a request was signed with keys of this endpoint. */
    hasSigned: ({ accessKeyId }) => accessKeyId.startsWith(prefix),

    /** Whether to give no more keys. */
    refuse(isRefusing) {
      refuses = isRefusing;
    },
    env: {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://127.0.0.1:${listener.address().port}/keys`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN: TOKEN,
    },
    async close() {
      listener.closeAllConnections?.();
      listener.close();
      await once(listener, 'close');
    },
  };
}
