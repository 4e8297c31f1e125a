/**
 * The id of the chat between two people, the same from both sides.
 *
 * Names are encoded so that the colon between them is the only one. Where the result would be longer
 * than the server takes, a hash stands for the names; should two pairs ever share one, the server
 * refuses the second, since the chat has other members.
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
