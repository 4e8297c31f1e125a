/** An application for bench/event_hook: parses each question and answers it. Prints its URL. */
import { createServer } from 'node:http';

const server = createServer(async (request, response) => {
  let text = '';
  for await (const piece of request) text += piece;
  const { data } = JSON.parse(text);
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ price: 1.5, symbol: data.symbol }));
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/hook`));
