/** Chats and the messages in them, over WebSocket and over REST: what tests of sending and syncing share. */
import assert from 'node:assert/strict';
import { rest } from './client.mjs';
import { expectRest } from './people.mjs';

/** For tests that are about something else: more than they ever send. */
export const AMPLE_RATES = {
  'gateway.backpressure.inbound.rate_limit_per_second': 100000,
  'gateway.backpressure.inbound.rate_limit_burst': 100000,
  'gateway.backpressure.inbound.command_rate_per_second': 100000,
  'gateway.backpressure.inbound.command_rate_burst': 100000,
};

/** By default. */
export const BODY_BYTES_MAX = 4096;

/** How many a round trip of `fill` carries. */
const FILL_AT_ONCE = 50;

let lastChat = 0;
let lastMessage = 0;

/** Makes a chat of these; the first of them does it. */
export const makeChat = (server, chatId, ...members) =>
  expectRest(server, 201, 'POST', '/v1/chats', members[0], { chat_id: chatId, members });

/** The same under a name nobody else in the file uses, which is the answer. */
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

/** Sends once; what it was answered with, whether or not it was taken. */
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

/** Sends `count` messages, a few at a time. */
export async function fill(client, chatId, count, body = (n) => `text ${n}`) {
  for (let n = 1; n <= count; n += FILL_AT_ONCE) {
    const some = Array.from({ length: Math.min(FILL_AT_ONCE, count - n + 1) }, (_, i) => n + i);
    const acks = await Promise.all(some.map((m) => sendMessage(client, chatId, body(m))));
    for (const ack of acks) assert.equal(ack.type, 'message_ack', JSON.stringify(ack));
  }
}
