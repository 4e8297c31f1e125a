/** The chat with the Rollcall client, which restores chats and fills gaps by itself. */
import { Rollcall } from 'rollcall-client';
import {
  chatId,
  getToken,
  onInput,
  peer,
  prepareChat,
  server,
  showMessage,
  showPeer,
  showState,
  showTyping,
} from '../shared/page.js';

const client = new Rollcall({ url: server.replace(/^http/, 'ws'), getToken });

client.on('state', ({ state }) => showState(state === 'READY' ? 'connected' : state.toLowerCase()));
client.on('presence', ({ user_id: user, status }) => user === peer && showPeer(status));
client.on('typing', ({ user_id: user, typing }) => user === peer && showTyping(typing));
client.on('message', (message) => message.chat_id === chatId && showMessage(message));

onInput({
  async send(body) {
    const { sequence } = await client.sendMessage(chatId, body);
    showMessage({ sequence, sender_id: client.userId, body });
  },
  typing(active) {
    client.typing(chatId, active);
  },
});

await prepareChat();
await client.connect();
await client.openChat(chatId, { afterSequence: 0 });
showPeer(client.presence(peer)?.status ?? 'unknown');
