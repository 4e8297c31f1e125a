/**
 * Who is here, as far as this client was told, and whom it wants to hear about.
 *
 * Snapshots and changes may overtake one another on their way; `version` orders them. Version 0
 * says that the user may no longer be seen, and always counts.
 */

/** Users remembered. Beyond it the one longest not heard of, nor subscribed to, is forgotten. */
export const PRESENCE_CACHE_MAX = 1000;

export class PresenceCache {
  #known = new Map();
  #wanted = new Set();

  get(userId) {
    return this.#known.get(userId);
  }

  /** Takes in what the server said; false if it was older than what is known already. */
  apply(presence) {
    const known = this.#known.get(presence.user_id);
    const outdated = presence.version > 0 && presence.version < known?.version;
    if (outdated) return false;
    this.#known.delete(presence.user_id);
    this.#known.set(presence.user_id, presence);
    this.#forgetSurplus();
    return known === undefined || !samePresence(known, presence);
  }

  /** Subscriptions outlive connections: `wanted` is what a new one must ask for. */
  want(userIds) {
    const added = userIds.filter((userId) => !this.#wanted.has(userId));
    for (const userId of added) this.#wanted.add(userId);
    return added;
  }

  unwant(userIds) {
    for (const userId of userIds) this.#wanted.delete(userId);
  }

  get wanted() {
    return [...this.#wanted];
  }

  #forgetSurplus() {
    if (this.#known.size <= PRESENCE_CACHE_MAX) return;
    for (const userId of this.#known.keys()) {
      if (this.#wanted.has(userId)) continue;
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
