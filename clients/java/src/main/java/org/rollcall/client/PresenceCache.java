package org.rollcall.client;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * The last known presence of users, and the subscriptions. Snapshots and changes may overtake one another; versions order
 * them. Version 0 means that this client may no longer see the user; it is always applied.
 */
final class PresenceCache {
    /** Beyond it, the user updated longest ago who is not subscribed to is dropped. */
    static final int KNOWN_MAX = 1000;
    private static final List<String> SHOWN = List.of("status", "in_call", "last_seen", "stale", "reason");

    private final Map<String, Presence> known = new LinkedHashMap<>();
    private final Set<String> subscribed = new LinkedHashSet<>();

    Presence get(String userId) {
        return known.get(userId);
    }

    /** Returns false if the presence is outdated or changes nothing. */
    boolean apply(Presence presence) {
        Presence before = known.get(presence.userId());
        if (before != null && presence.version() > 0 && presence.version() < before.version()) return false;
        known.remove(presence.userId());
        known.put(presence.userId(), presence);
        if (known.size() > KNOWN_MAX) dropOldest();
        return before == null
                || !SHOWN.stream().allMatch(name -> Objects.equals(before.fields().get(name), presence.fields().get(name)));
    }

    /** Returns those that are new. */
    List<String> subscribe(Collection<String> userIds) {
        List<String> added = new ArrayList<>();
        for (String userId : userIds) if (subscribed.add(userId)) added.add(userId);
        return added;
    }

    void unsubscribe(Collection<String> userIds) {
        subscribed.removeAll(userIds);
    }

    List<String> subscribed() {
        return new ArrayList<>(subscribed);
    }

    private void dropOldest() {
        for (String userId : known.keySet()) {
            if (subscribed.contains(userId)) continue;
            known.remove(userId);
            return;
        }
    }
}
