#include "net/client_addresses.h"

#include "base/container.h"
#include "base/table.h"

#include <pthread.h>
#include <stdlib.h>

enum { DESCRIPTORS_MIN = 1024 };

struct client_address {
    struct table_node node;
    struct ip_address address;
    uint32_t connections;
};

struct client_descriptor {
    struct client_address *client; /* NULL: it has no address */
};

struct client_addresses {
    pthread_mutex_t lock;
    struct table table;
    struct client_descriptor *by_fd;
    size_t fd_capacity;
    uint32_t connections_max;
    size_t trusted_count;
    struct ip_network trusted[];
};

static struct slice client_address_key(const struct ip_address *address)
{
    return (struct slice){(const char *)address->bytes, sizeof(address->bytes)};
}

static bool client_address_matches(const struct table_node *node, struct slice key)
{
    const struct client_address *entry = CONTAINER_OF(node, struct client_address, node);
    return slice_equal(client_address_key(&entry->address), key);
}

struct client_addresses *client_addresses_make(uint32_t connections_max,
                                               const struct ip_network *trusted,
                                               size_t trusted_count, uint64_t hash_seed)
{
    struct client_addresses *addresses =
        calloc(1, sizeof(*addresses) + trusted_count * sizeof(*trusted));
    if (!addresses)
        return NULL;
    pthread_mutex_init(&addresses->lock, NULL);
    addresses->connections_max = connections_max;
    addresses->trusted_count = trusted_count;
    if (trusted_count)
        memcpy(addresses->trusted, trusted, trusted_count * sizeof(*trusted));
    if (!table_init(&addresses->table, hash_seed, client_address_matches))
        client_addresses_free(&addresses);
    return addresses;
}

static void free_client_address(struct table_node *node, void *arg)
{
    (void)arg;
    free(CONTAINER_OF(node, struct client_address, node));
}

void client_addresses_free(struct client_addresses **addresses)
{
    struct client_addresses *freed = *addresses;
    *addresses = NULL;
    if (!freed)
        return;
    table_each(&freed->table, free_client_address, NULL);
    table_free(&freed->table);
    pthread_mutex_destroy(&freed->lock);
    free(freed->by_fd);
    free(freed);
}

/* ---- proxies ---- */

bool client_addresses_is_trusted(const struct client_addresses *addresses,
                                 const struct ip_address *address)
{
    for (size_t i = 0; i < addresses->trusted_count; i++)
        if (ip_network_contains(&addresses->trusted[i], address))
            return true;
    return false;
}

static struct slice trim_forwarded(struct slice text)
{
    while (text.len && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = slice_after(text, 1);
    while (text.len && (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t'))
        text.len--;
    return text;
}

bool client_addresses_forwarded(const struct client_addresses *addresses, struct slice header,
                                struct ip_address *out)
{
    size_t end = header.len;
    while (end > 0) {
        size_t start = end;
        while (start > 0 && header.data[start - 1] != ',')
            start--;
        struct slice item = trim_forwarded((struct slice){header.data + start, end - start});
        if (!ip_address_parse_forwarded(item, out))
            return false;
        if (start == 0 || !client_addresses_is_trusted(addresses, out))
            return true;
        end = start - 1;
    }
    return false;
}

/* ---- counting ---- */

static bool reserve_descriptor(struct client_addresses *addresses, size_t fd)
{
    if (fd < addresses->fd_capacity)
        return true;
    size_t capacity = addresses->fd_capacity ? addresses->fd_capacity : DESCRIPTORS_MIN;
    while (capacity <= fd)
        capacity *= 2;
    struct client_descriptor *grown = realloc(addresses->by_fd, capacity * sizeof(*grown));
    if (!grown)
        return false;
    for (size_t i = addresses->fd_capacity; i < capacity; i++)
        grown[i].client = NULL;
    addresses->by_fd = grown;
    addresses->fd_capacity = capacity;
    return true;
}

static void release_descriptor(struct client_addresses *addresses, size_t fd)
{
    struct client_address *entry = addresses->by_fd[fd].client;
    addresses->by_fd[fd].client = NULL;
    if (!entry || --entry->connections > 0)
        return;
    table_remove(&addresses->table, &entry->node);
    free(entry);
}

/* Returns NULL when out of memory. */
static struct client_address *find_or_make_address(struct client_addresses *addresses,
                                                   const struct ip_address *address)
{
    struct slice key = client_address_key(address);
    struct table_node *node = table_find(&addresses->table, key);
    if (node)
        return CONTAINER_OF(node, struct client_address, node);
    struct client_address *made = malloc(sizeof(*made));
    if (!made)
        return NULL;
    *made = (struct client_address){.address = *address};
    table_insert(&addresses->table, &made->node, client_address_key(&made->address));
    return made;
}

static bool assign_descriptor(struct client_addresses *addresses, size_t fd,
                              const struct ip_address *client)
{
    if (!reserve_descriptor(addresses, fd))
        return false;
    struct client_address *before = addresses->by_fd[fd].client;
    if (before && ip_address_equal(&before->address, client))
        return true;
    release_descriptor(addresses, fd);
    struct client_address *entry = find_or_make_address(addresses, client);
    if (!entry || (addresses->connections_max && entry->connections >= addresses->connections_max))
        return false;
    entry->connections++;
    addresses->by_fd[fd].client = entry;
    return true;
}

bool client_addresses_assign(struct client_addresses *addresses, int fd,
                             const struct ip_address *address)
{
    struct ip_address client = ip_address_of_client(address);
    pthread_mutex_lock(&addresses->lock);
    bool assigned = assign_descriptor(addresses, (size_t)fd, &client);
    pthread_mutex_unlock(&addresses->lock);
    return assigned;
}

void client_addresses_release(struct client_addresses *addresses, int fd)
{
    pthread_mutex_lock(&addresses->lock);
    if (fd >= 0 && (size_t)fd < addresses->fd_capacity)
        release_descriptor(addresses, (size_t)fd);
    pthread_mutex_unlock(&addresses->lock);
}

size_t client_addresses_count(struct client_addresses *addresses)
{
    pthread_mutex_lock(&addresses->lock);
    size_t count = addresses->table.size;
    pthread_mutex_unlock(&addresses->lock);
    return count;
}
