/**
 * The last known presence of users, and the subscriptions of the application.
 *
 * Snapshots and changes may overtake one another on their way; `version` orders them. Version 0
 * means that this client may no longer see the user; it is always applied.
 */

/** Users cached. Beyond it, the one updated longest ago that is not subscribed to is dropped. */
export const PRESENCE_CACHE_MAX = 1000;

export class PresenceCache {
  #known = new Map();
  #subscribed = new Set();

  get(userId) {
    return this.#known.get(userId);
  }

  /** Applies a presence from the server. Returns false if it is outdated or changes nothing. */
  apply(presence) {
    const known = this.#known.get(presence.user_id);
    const outdated = presence.version > 0 && presence.version < known?.version;
    if (outdated) return false;
    this.#known.delete(presence.user_id);
    this.#known.set(presence.user_id, presence);
    this.#dropSurplus();
    return known === undefined || !samePresence(known, presence);
  }

  /** A new connection subscribes to all of `subscribed` again. Returns the ids that are new. */
  subscribe(userIds) {
    const added = userIds.filter((userId) => !this.#subscribed.has(userId));
    for (const userId of added) this.#subscribed.add(userId);
    return added;
  }

  unsubscribe(userIds) {
    for (const userId of userIds) this.#subscribed.delete(userId);
  }

  get subscribed() {
    return [...this.#subscribed];
  }

  #dropSurplus() {
    if (this.#known.size <= PRESENCE_CACHE_MAX) return;
    for (const userId of this.#known.keys()) {
      if (this.#subscribed.has(userId)) continue;
      this.#known.delete(userId);
      return;
    }
  }
}

function samePresence(left, right) {
  return ['status', 'in_call', 'last_seen', 'stale', 'reason'].every(
    (field) => left[field] === right[field],
  );
}
