/** The few HTTP calls the page makes besides its connection. */
import { RollcallError } from '/client/rollcall.js';

/** A token for a name, which only a server in dev mode hands out. */
export async function fetchToken(user) {
  const response = await send('POST', '/dev/token', { user });
  if (response.status === 404) {
    throw new RollcallError(
      'UNAUTHENTICATED',
      'This server hands out no tokens by name. Start it with --dev to use this page.',
    );
  }
  if (response.status === 400)
    throw new RollcallError('UNAUTHENTICATED', 'This name cannot be used.');
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  return (await response.json()).token;
}

/** People on this page are strangers, and by default only contacts see each other. */
export async function showMyself(token) {
  const response = await send(
    'PATCH',
    '/v1/me',
    { presence_visibility: 'everyone', last_seen_visibility: 'everyone' },
    token,
  );
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
}

function send(method, path, body, token) {
  const headers = { 'Content-Type': 'application/json' };
  if (token !== undefined) headers.Authorization = `Bearer ${token}`;
  return fetch(path, { method, headers, body: JSON.stringify(body) });
}
