/** Clients of Socket.IO that are cut off for a while, and what they are told when they are back. */
import { eventually, sleep } from './client.mjs';
import { expectRest } from './people.mjs';

export const hear = async (client) => (await client.next('delivery')).data.text;

export const isOffline = (server, user) =>
  eventually(async () => {
    const presence = await expectRest(server, 200, 'GET', `/v1/presence/${user}`, user);
    return presence.status === 'offline';
  }, 'offline');

/** How often a client is cut off until it notices: one that is just between two polls does not. */
const CUT_AGAIN_MS = 200;

/** Waits until the connection is what it will be. */
export async function isSettled(client) {
  if (client.socket.io.opts.transports.includes('websocket')) await client.upgraded();
  await sleep(100);
}

/** `cut` cuts the client off; it is away while `meanwhile` goes on, at least `awayMs`, then back by itself. */
export async function cutOff(client, user, { server, awayMs, cut, meanwhile }) {
  await isSettled(client);
  client.socket.io.reconnectionDelay(awayMs);
  client.socket.io.reconnectionDelayMax(awayMs);
  const [gone, back] = [client.disconnected(), client.connected()];
  const cutting = setInterval(cut, CUT_AGAIN_MS);
  cut();
  await gone.finally(() => clearInterval(cutting));
  await isOffline(server, user);
  await meanwhile();
  await back;
}
