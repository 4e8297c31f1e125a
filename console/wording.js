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

/** Draws the initial on a colour that depends on the name only. */
export function drawAvatar(avatar, name) {
  avatar.textContent = [...name][0] ?? '';
  avatar.dataset.hue = hueOf(name);
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
