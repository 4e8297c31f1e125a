/** The chat with the Rollcall client, which restores chats and fills gaps by itself. */
import { Rollcall } from 'rollcall';
import * as page from '../shared/page.js';

const { peer, server } = page;
const chatId = await page.openChat();

const client = new Rollcall({ url: server.replace(/^http/, 'ws'), getToken: page.getToken });

client.on('state', ({ state }) => page.showState(state === 'READY' ? 'connected' : state.toLowerCase()));
client.on('presence', ({ user_id: user, status }) => user === peer && page.showPeer(status));
client.on('typing', ({ user_id: user, typing }) => user === peer && page.showTyping(typing));
client.on('message', (message) => message.chat_id === chatId && page.showMessage(message));

page.onInput({
  send(body) {
    client.sendMessage(chatId, body).catch(({ message }) => page.showState(message));
  },
  typing(active) {
    client.typing(chatId, active);
  },
});

await client.connect();
await client.openChat(chatId, { afterSequence: 0 });
page.showPeer(client.presence(peer)?.status ?? 'unknown');
