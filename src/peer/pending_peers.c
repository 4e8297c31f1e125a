#include "peer/pending_peers.h"

#include "base/container.h"

void pending_peers_init(struct pending_peers *strangers, size_t count_max)
{
    *strangers = (struct pending_peers){.count_max = count_max};
    list_init(&strangers->places);
}

static void displace_oldest(struct pending_peers *strangers)
{
    struct pending_peer *oldest = CONTAINER_OF(strangers->places.next, struct pending_peer, place);
    peer_link_refuse(oldest->link, "others came before it had proved itself");
    pending_peers_remove(strangers, oldest);
    strangers->displaced++;
}

void pending_peers_add(struct pending_peers *strangers, struct pending_peer *stranger,
                       struct peer_link *link)
{
    if (strangers->count == strangers->count_max)
        displace_oldest(strangers);
    stranger->link = link;
    list_append(&strangers->places, &stranger->place);
    strangers->count++;
}

void pending_peers_remove(struct pending_peers *strangers, struct pending_peer *stranger)
{
    if (!stranger->link)
        return;
    stranger->link = NULL;
    list_remove(&stranger->place);
    strangers->count--;
}
