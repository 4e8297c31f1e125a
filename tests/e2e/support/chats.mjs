/** Creates chats, and sends and reads messages over WebSocket and REST. */
import assert from 'node:assert/strict';
import { rest } from './client.mjs';
import { expectRest } from './contacts.mjs';
import { NO_BUDGETS } from './server.mjs';

/** Rate limits that no test reaches. */
export const AMPLE_RATES = {
  ...NO_BUDGETS,
  'gateway.backpressure.inbound.rate_limit_per_second': 100000,
  'gateway.backpressure.inbound.rate_limit_burst': 100000,
  'gateway.backpressure.inbound.command_rate_per_second': 100000,
  'gateway.backpressure.inbound.command_rate_burst': 100000,
};

/** The server's default. */
export const BODY_BYTES_MAX = 4096;

/** How many messages `fillChat` sends before it waits for the answers. */
const FILL_AT_ONCE = 50;

let lastChat = 0;
let lastMessage = 0;

/** Creates a chat with this id, on behalf of the first member. */
export const makeChat = (server, chatId, ...members) =>
  expectRest(server, 201, 'POST', '/v1/chats', members[0], { chat_id: chatId, members });

/** Promises the id of the direct chat of two users. */
export async function directChat(server, user, other) {
  const { body } = await rest(server, 'POST', '/v1/chats', { user, body: { direct_with: other } });
  return body.chat_id;
}

/** Creates a chat with an id that is unique in the test file; returns the id. */
export async function newChat(server, ...members) {
  lastChat += 1;
  const chatId = `chat-${lastChat}`;
  await makeChat(server, chatId, ...members);
  return chatId;
}

const uniqueId = () => {
  lastMessage += 1;
  return `m-${lastMessage}`;
};

/** Sends a message once; returns the answer, an acknowledgement or an error. */
export const sendMessage = (client, chatId, body, clientMessageId = uniqueId()) =>
  client.ask({
    type: 'send_message',
    chat_id: chatId,
    client_message_id: clientMessageId,
    body,
  });

const messagesPath = (chatId) => `/v1/chats/${encodeURIComponent(chatId)}/messages`;

export const postMessage = (server, user, chatId, body) =>
  rest(server, 'POST', messagesPath(chatId), { user, body });

export const history = (server, user, chatId, query = '') =>
  rest(server, 'GET', messagesPath(chatId) + query, { user });

/** Sends `count` messages, some at a time; each must be acknowledged. */
export async function fillChat(client, chatId, count, body = (n) => `text ${n}`) {
  for (let n = 1; n <= count; n += FILL_AT_ONCE) {
    const some = Array.from({ length: Math.min(FILL_AT_ONCE, count - n + 1) }, (_, i) => n + i);
    const acks = await Promise.all(some.map((m) => sendMessage(client, chatId, body(m))));
    for (const ack of acks) assert.equal(ack.type, 'message_ack', JSON.stringify(ack));
  }
}
