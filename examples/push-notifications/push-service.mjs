/** Stands in for a push service such as FCM or APNs: prints what it would show on the user's phone. */
import { createServer } from 'node:http';

const seen = new Set(); // a webhook comes at least once, so the same notification may come twice
const server = createServer(async (request, response) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const { id, user, title, text } = JSON.parse(Buffer.concat(pieces));
  if (!seen.has(id)) console.log(`to ${user}: ${title}: ${text}`);
  seen.add(id);
  response.end();
});
server.listen(process.env.PORT ?? 3001, '127.0.0.1', () => console.log(`push service on port ${server.address().port}`));
