/** Turns Rollcall's webhooks into push notifications: for messages that reached no device, and calls that nobody answered. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const key = Buffer.from(readFileSync(process.env.SECRET_FILE, 'utf8').trim().slice('whsec_'.length), 'base64');

/** Is this request from our Rollcall server? As Standard Webhooks says. */
function isGenuine(headers, body) {
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
  const expected = createHmac('sha256', key).update(signed).digest();
  const given = Buffer.from(String(headers['webhook-signature']).replace(/^v1,/, ''), 'base64');
  const isFresh = Math.abs(Date.now() / 1000 - headers['webhook-timestamp']) < 300;
  return isFresh && given.length === expected.length && timingSafeEqual(given, expected);
}

/** The ten lines that your application has, too. */
async function notify({ id, type, data }) {
  const push = (user, title, text) =>
    fetch(process.env.PUSH_URL, { method: 'POST', body: JSON.stringify({ id: `${id}:${user}`, user, title, text }) });
  if (type === 'message.undelivered' && !data.deleted)
    await Promise.all(data.user_ids.map((user) => push(user, data.sender_id, data.body)));
  else if (type === 'call.missed')
    await push(data.to, 'Missed call', `${data.from} called`);
}

const server = createServer(async (request, response) => {
  try {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const body = Buffer.concat(pieces).toString();
    if (!isGenuine(request.headers, body)) return response.writeHead(401).end();
    for (const event of JSON.parse(body).events) await notify(event);
    response.writeHead(204).end(); // taken; any other answer, and Rollcall tries again
  } catch (error) {
    console.error(error);
    response.writeHead(500).end();
  }
});
server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => console.log(`webhooks on port ${server.address().port}`));
