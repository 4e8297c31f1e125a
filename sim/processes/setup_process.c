#include "processes/setup_process.h"

#include "base/buffer.h"
#include "processes/requester.h"

#include <stdio.h>

static bool setup_contacts(struct requester *requester, const struct population *population,
                           const struct user *user)
{
    char body[64];
    for (size_t i = 0; i < user->contact_count; i++) { /* two requests meet: they are contacts */
        snprintf(body, sizeof(body), "{\"to\":\"%s\"}", population->users[user->contacts[i]].name);
        if (!requester_ask(requester, user, "POST", "/v1/contact-requests", body))
            return false;
    }
    return true;
}

static bool setup_chat(struct requester *requester, const struct population *population,
                       const struct chat *chat)
{
    struct buffer body = BUFFER_INIT;
    const struct user *creator = NULL;
    buffer_printf(&body, "{\"chat_id\":\"%s\",\"members\":[", chat->id);
    for (size_t i = 0; i < population->user_count; i++) {
        const struct user *user = &population->users[i];
        if (user->chat != chat)
            continue;
        buffer_printf(&body, "%s\"%s\"", creator ? "," : "", user->name);
        creator = user;
    }
    buffer_append(&body, "]}", 3); /* with the end of the text */
    bool done = requester_ask(requester, creator, "POST", "/v1/chats", body.data);
    buffer_free(&body);
    return done;
}

/* Who hides, and who blocks whom, from the beginning on. */
static bool setup_privacy(struct requester *requester, const struct population *population,
                          const struct user *user)
{
    char path[64];
    if (user->hides &&
        !requester_ask(requester, user, "PATCH", "/v1/me", "{\"presence_visibility\":\"nobody\"}"))
        return false;
    for (size_t i = 0; i < user->contact_count; i++) {
        if (!user->ties[i].is_blocked_by_us)
            continue;
        snprintf(path, sizeof(path), "/v1/blocks/%s", population->users[user->contacts[i]].name);
        if (!requester_ask(requester, user, "PUT", path, ""))
            return false;
    }
    return true;
}

int setup_run(void *arg)
{
    const struct setup *setup = arg;
    const struct population *population = setup->population;
    struct requester requester = {.address = setup->address, .port = setup->port, .fd = -1};
    bool done = true;
    for (size_t i = 0; i < population->user_count && done; i++)
        done = setup_contacts(&requester, population, &population->users[i]);
    for (size_t i = 0; i < population->chat_count && done; i++)
        done = setup_chat(&requester, population, &population->chats[i]);
    for (size_t i = 0; i < population->user_count && done; i++)
        done = setup_privacy(&requester, population, &population->users[i]);
    requester_close(&requester);
    return done ? 0 : 1;
}
