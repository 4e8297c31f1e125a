/** Signing in with a name alone, which only a server in dev mode allows. */
import { devToken, RollcallError } from '/client/rollcall.js';

const REFUSALS = {
  404: 'This server does not issue tokens by name. Start it with --dev to use this page.',
  400: 'This name cannot be used.',
};

const DEFAULT_VISIBILITY = 'contacts_only';

/** Promises a token for the name. */
export async function signIn(name) {
  try {
    return await devToken(name);
  } catch (error) {
    const refusal = REFUSALS[error.status];
    throw refusal === undefined ? error : new RollcallError('UNAUTHENTICATED', refusal);
  }
}

/**
 * By default only contacts see each other, but the users of this page have no contacts at first.
 * So it shows a user to everyone, unless the user has changed the settings. Promises the settings.
 */
export async function showToEveryone(api) {
  const settings = await api.me();
  const { presence_visibility: presence, last_seen_visibility: lastSeen } = settings;
  if (presence !== DEFAULT_VISIBILITY || lastSeen !== DEFAULT_VISIBILITY) return settings;
  return api.updateMe({ presence_visibility: 'everyone', last_seen_visibility: 'everyone' });
}
