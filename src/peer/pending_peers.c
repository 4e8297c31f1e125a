#include "peer/pending_peers.h"

#include "base/container.h"

void pending_peers_init(struct pending_peers *pending, size_t count_max)
{
    *pending = (struct pending_peers){.count_max = count_max};
    list_init(&pending->places);
}

void pending_peers_add(struct pending_peers *pending, struct pending_peer *peer,
                       struct peer_link *link)
{
    if (pending->count == pending->count_max) {
        struct pending_peer *oldest =
            CONTAINER_OF(pending->places.next, struct pending_peer, place);
        peer_link_close(oldest->link, "newer connections displaced it before it proved itself");
        pending_peers_remove(pending, oldest);
        pending->displaced++;
    }
    peer->link = link;
    list_append(&pending->places, &peer->place);
    pending->count++;
}

void pending_peers_remove(struct pending_peers *pending, struct pending_peer *peer)
{
    if (!peer->link)
        return;
    peer->link = NULL;
    list_remove(&peer->place);
    pending->count--;
}
