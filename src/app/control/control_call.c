#include "app/control/control_call.h"

#include "app/control/control_keys.h"
#include "app/control/control_letters.h"
#include "app/control/control_webhooks.h"

enum { CONTROL_EXIT_FAILED = 1 };

static const struct control_command {
    const char *name;
    void (*run)(const struct control_call *call);
} COMMANDS[] = {
    {"dead-letters", control_letters_run},
    {"key", control_keys_run},
    {"webhooks", control_webhooks_run},
};

void control_call_fail(const struct control_call *call, const char *text)
{
    call->done(call->arg, CONTROL_EXIT_FAILED, SLICE_NONE, slice_of(text));
}

void control_call_run(const struct control_call *call)
{
    for (size_t i = 0; call->count && i < sizeof(COMMANDS) / sizeof(COMMANDS[0]); i++)
        if (slice_is(call->arguments[0], COMMANDS[i].name)) {
            COMMANDS[i].run(call);
            return;
        }
    control_call_fail(call, "the server does not know this command: it is of another version");
}
