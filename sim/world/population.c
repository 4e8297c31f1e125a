#include "world/population.h"

#include "base/buffer.h"
#include "text/base64url.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Devices are in 10.8.0.0/13. */
enum { FIRST_DEVICE_ADDRESS = 10 << 24 | 8 << 16 | 1, DEVICE_LATENCY_US = 40000 };

/* In 2099. */
static const char CLAIMS[] = "{\"sub\":\"%s\",\"exp\":4080000000}";

static void user_write_token(struct user *user, struct slice secret)
{
    static const char HEADER[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";
    struct buffer token = BUFFER_INIT;
    char claims[96];
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned mac_len = 0;
    int len = snprintf(claims, sizeof(claims), CLAIMS, user->name);
    base64url_encode(&token, HEADER, sizeof(HEADER) - 1);
    buffer_append_byte(&token, '.');
    base64url_encode(&token, claims, (size_t)len);
    HMAC(EVP_sha256(), secret.data, (int)secret.len, (unsigned char *)token.data, token.len, mac,
         &mac_len);
    buffer_append_byte(&token, '.');
    base64url_encode(&token, mac, mac_len);
    snprintf(user->token, sizeof(user->token), "%.*s", (int)token.len, token.data);
    buffer_free(&token);
}

static void population_add_contacts(struct population *population, size_t at)
{
    struct user *user = &population->users[at];
    size_t count = population->user_count;
    for (size_t by = 1; by <= POPULATION_REACH; by++) {
        if (count > 2 * by - 1)
            user->contacts[user->contact_count++] = (at + by) % count;
        if (count > 2 * by)
            user->contacts[user->contact_count++] = (at + count - by) % count;
    }
}

static int population_find_place(const struct user *user, size_t contact)
{
    for (size_t i = 0; i < user->contact_count; i++)
        if (user->contacts[i] == contact)
            return (int)i;
    return -1;
}

void population_set_tie(struct population *population, struct user *user, size_t contact,
                        struct tie tie)
{
    size_t at = (size_t)(user - population->users);
    struct user *other = &population->users[user->contacts[contact]];
    int place = population_find_place(other, at);
    user->ties[contact] = tie;
    tie.is_blocked_by_us = false;
    if (place >= 0)
        other->ties[place] = tie;
}

/* After all have their contacts. */
static void population_add_privacy(struct population *population, size_t at)
{
    struct user *user = &population->users[at];
    if (at % POPULATION_HIDING_EVERY == 3)
        user->hides = user->keeps_settings = true;
    if (at % POPULATION_BLOCKING_EVERY != 5)
        return;
    population_set_tie(population, user, 0, (struct tie){true, true, 0});
    user->keeps_settings = population->users[user->contacts[0]].keeps_settings = true;
}

static void population_add_device(struct population *population, struct user *user, unsigned number)
{
    struct device *device = &population->devices[population->device_count];
    *device = (struct device){.user = user};
    snprintf(device->name, sizeof(device->name), "%.12s-%u", user->name, number);
    device->machine =
        machine_make(device->name, (uint32_t)(FIRST_DEVICE_ADDRESS + population->device_count));
    device->machine->latency_us = 1000 + (int64_t)random_below(kernel_random(), DEVICE_LATENCY_US);
    device->machine->jitter_us = device->machine->latency_us / 2;
    random_init_seeded(&device->random, random_u64(kernel_random()));
    population->device_count++;
}

void population_make(struct population *population, size_t users, struct slice token_secret)
{
    *population = (struct population){
        .users = calloc(users, sizeof(struct user)),
        .user_count = users,
        .devices = calloc(2 * users, sizeof(struct device)),
        .chats = calloc(users / POPULATION_CHAT_MEMBERS + 1, sizeof(struct chat)),
        .chat_count = (users + POPULATION_CHAT_MEMBERS - 1) / POPULATION_CHAT_MEMBERS,
    };
    for (size_t i = 0; i < population->chat_count; i++)
        snprintf(population->chats[i].id, POPULATION_ID_BYTES, "chat-%zu", i);
    for (size_t i = 0; i < users; i++) {
        struct user *user = &population->users[i];
        snprintf(user->name, sizeof(user->name), "user-%zu", i);
        user_write_token(user, token_secret);
        user->chat = &population->chats[i / POPULATION_CHAT_MEMBERS];
        population_add_contacts(population, i);
        population_add_device(population, user, 1);
        if (random_below(kernel_random(), 10) == 0)
            population_add_device(population, user, 2);
    }
    for (size_t i = 0; i < users; i++)
        population_add_privacy(population, i);
}

void population_free(struct population *population)
{
    for (size_t i = 0; i < population->chat_count; i++) {
        free(population->chats[i].ids);
        free(population->chats[i].acknowledged);
    }
    free(population->users);
    free(population->devices);
    free(population->chats);
    *population = (struct population){0};
}

int population_find_contact(const struct population *population, const struct user *user,
                            const char *name)
{
    for (size_t i = 0; i < user->contact_count; i++)
        if (strcmp(population->users[user->contacts[i]].name, name) == 0)
            return (int)i;
    return -1;
}

struct user *population_find_user(const struct population *population, const char *name)
{
    static const char PREFIX[] = "user-";
    size_t at = strncmp(name, PREFIX, sizeof(PREFIX) - 1) == 0
                    ? strtoul(name + sizeof(PREFIX) - 1, NULL, 10)
                    : SIZE_MAX;
    return at < population->user_count ? &population->users[at] : NULL;
}

const struct user *population_other_person(const struct population *population,
                                           const struct user *user)
{
    size_t at = (size_t)(user - population->users);
    return &population->users[(at + population->user_count / 2) % population->user_count];
}

bool population_may_see(const struct population *population, const struct user *viewer,
                        const struct user *user, int64_t *since_us)
{
    int at = population_find_place(viewer, (size_t)(user - population->users));
    *since_us = 0;
    if (viewer == user)
        return true;
    if (at < 0)
        return false;
    *since_us =
        user->hides_us > viewer->ties[at].changed_us ? user->hides_us : viewer->ties[at].changed_us;
    return !user->hides && !viewer->ties[at].is_severed;
}

void device_set_call(struct device *device, enum call_phase phase, const char *call_id)
{
    bool talked = device->call >= CALL_TALKING, talks = phase >= CALL_TALKING;
    if (device->call_id != call_id)
        snprintf(device->call_id, sizeof(device->call_id), "%s", call_id);
    device->call = phase;
    if (talks == talked)
        return;
    device->user->devices_talking += talks ? 1 : -1U;
    device->user->talked_us = kernel_now_us();
}

void device_set_connected(struct device *device, bool connected)
{
    struct user *user = device->user;
    if (device->is_connected == connected)
        return;
    device->is_connected = connected;
    device->changed_us = user->changed_us = kernel_now_us();
    user->devices_connected += connected ? 1 : -1U;
}
