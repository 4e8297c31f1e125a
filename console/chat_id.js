/**
 * The id of the chat between two users, the same for both of them.
 *
 * Names are encoded, so that the colon between them is the only one. If the id would be too long
 * for the server, it is a hash of the names. If two pairs had the same hash, the server would
 * refuse the second pair, because the chat has other members.
 */
const CHAT_ID_BYTES_MAX = 128;

const FNV_OFFSET = 0xcbf29ce484222325n;
const FNV_PRIME = 0x100000001b3n;

export function chatIdOf(me, other) {
  const names = [me, other].sort().map(encodeURIComponent).join(':');
  const id = `dm:${names}`;
  return id.length <= CHAT_ID_BYTES_MAX ? id : `dm#${hash(names)}`;
}

function hash(text) {
  let value = FNV_OFFSET;
  for (const character of text)
    value = BigInt.asUintN(64, (value ^ BigInt(character.charCodeAt(0))) * FNV_PRIME);
  return value.toString(16);
}
