/** Cuts Socket.IO clients off for a while, and reads what they receive when they are back. */
import { eventually, sleep } from './client.mjs';
import { expectRest } from './contacts.mjs';

/** Takes the next delivery; returns its text. */
export const nextText = async (client) => (await client.next('delivery')).data.text;

export const waitUntilOffline = (server, user) =>
  eventually(async () => {
    const presence = await expectRest(server, 200, 'GET', `/v1/presence/${user}`, user);
    return presence.status === 'offline';
  }, `${user} is offline`);

/** Time between two cuts. They are repeated because a client between two polls does not notice one. */
const CUT_AGAIN_MS = 200;

/** Waits until the client has finished its upgrade, if it makes one. */
export async function waitUntilSettled(client) {
  if (client.socket.io.opts.transports.includes('websocket')) await client.upgraded();
  await sleep(100);
}

/**
 * Calls `cut` until the client is disconnected, runs `meanwhile`, and waits until the client has reconnected, which
 * takes at least `awayMs`.
 */
export async function cutOff(client, user, { server, awayMs, cut, meanwhile }) {
  await waitUntilSettled(client);
  client.socket.io.reconnectionDelay(awayMs);
  client.socket.io.reconnectionDelayMax(awayMs);
  const [disconnected, reconnected] = [client.disconnected(), client.connected()];
  const cutting = setInterval(cut, CUT_AGAIN_MS);
  cut();
  await disconnected.finally(() => clearInterval(cutting));
  await waitUntilOffline(server, user);
  await meanwhile();
  await reconnected;
}
