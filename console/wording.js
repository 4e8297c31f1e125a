/** Texts of the page. */

const JUST_NOW_SECONDS = 5;
const HUES = 6;
const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'short' });
const STEPS = [
  ['day', 86400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
];

export function ago(time, nowMs) {
  const seconds = Math.max(0, Math.round((nowMs - Date.parse(time)) / 1000));
  if (seconds < JUST_NOW_SECONDS) return 'just now';
  const [unit, length] = STEPS.find(([, unitSeconds]) => seconds >= unitSeconds);
  return RELATIVE.format(-Math.floor(seconds / length), unit);
}

/** One line about a user; `presence` may still be undefined. */
export function statusLine(presence, nowMs) {
  if (presence === undefined) return '…';
  const line = plainStatus(presence, nowMs);
  return presence.stale ? `${line} (as last known)` : line;
}

function plainStatus({ status, last_seen: lastSeen }, nowMs) {
  if (status === 'unknown') return 'not here yet, or hidden';
  if (status === 'offline')
    return lastSeen ? `offline · last seen ${ago(lastSeen, nowMs)}` : 'offline';
  return status;
}

/** Describes the change between two presences of a user; null if it is not interesting. */
export function describeChange(before, after) {
  const here = (status) => status === 'online' || status === 'away';
  if (before === undefined) return here(after.status) ? 'is here' : null;
  if (!here(before.status) && here(after.status)) return 'came online';
  if (here(before.status) && !here(after.status)) return 'left';
  if (before.status === 'online' && after.status === 'away') return 'went away';
  if (before.status === 'away' && after.status === 'online') return 'is back';
  if (!before.in_call && after.in_call) return 'is in a call';
  return null;
}

/** The time of day, as 14:05. */
export const timeOf = (time) =>
  new Date(time).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hour12: false });

/** The day as a reader would name it: Today, Yesterday, Monday 3 May; with the year if it is another. */
export function dayOf(time, now) {
  const day = new Date(time);
  const yesterday = new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1);
  if (day.toDateString() === now.toDateString()) return 'Today';
  if (day.toDateString() === yesterday.toDateString()) return 'Yesterday';
  const year = day.getFullYear() === now.getFullYear() ? {} : { year: 'numeric' };
  return day.toLocaleDateString([], { weekday: 'long', day: 'numeric', month: 'long', ...year });
}

/** "bob is typing", for one user, two or many. */
export function typingLine(names) {
  if (names.length === 0) return '';
  if (names.length === 1) return `${names[0]} is typing`;
  if (names.length === 2) return `${names[0]} and ${names[1]} are typing`;
  return `${names.length} people are typing`;
}

/**
 * How far a message of the user has come. It is delivered if the other user was connected after it
 * was sent, because the server sends it to every device that is connected.
 */
export function sentNote(message, chat, presence) {
  if (message.state === 'sending') return 'sending …';
  if (message.state === 'failed') return 'not sent';
  const readers = chat.readersOf(message);
  if (chat.isGroup) return readers === 0 ? 'sent' : `read by ${readers}`;
  if (readers > 0) return 'read';
  return wasConnectedAfter(presence, message.sent_at) ? 'delivered' : 'sent';
}

function wasConnectedAfter(presence, sentAt) {
  if (presence === undefined || sentAt === null) return false;
  const { status, last_seen: lastSeen } = presence;
  const isConnected = status === 'online' || status === 'away';
  return isConnected || (lastSeen !== null && Date.parse(lastSeen) >= Date.parse(sentAt));
}

/** Draws the initial on a colour that depends on the user only. */
export function drawAvatar(avatar, user, name = user) {
  avatar.textContent = [...name][0] ?? '';
  avatar.dataset.hue = hueOf(user);
}

/** Formats seconds as 1:05. */
export function clock(seconds) {
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;
}

function hueOf(name) {
  let sum = 0;
  for (const character of name) sum = (sum * 31 + character.codePointAt(0)) % 9973;
  return sum % HUES;
}
