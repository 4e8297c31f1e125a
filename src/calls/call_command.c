#include "calls/call_command.h"

#include <stdlib.h>
#include <string.h>

static struct slice call_command_copy(char **at, struct slice text)
{
    if (!text.data)
        return text;
    struct slice copy = {*at, text.len};
    memcpy(*at, text.data, text.len);
    *at += text.len;
    return copy;
}

struct call_command *call_command_make(const struct call_command *draft)
{
    size_t bytes = draft->device.user_id.len + draft->device.device_id.len + draft->to.len +
                   draft->call_id.len + draft->data.len;
    struct call_command *command = malloc(sizeof(*command) + bytes);
    if (!command) {
        draft->done(draft->arg,
                    &(struct call_reply){.problem = "out of memory", .code = ERROR_SERVER_BUSY});
        return NULL;
    }
    char *at = (char *)(command + 1);
    *command = *draft;
    command->device.user_id = call_command_copy(&at, draft->device.user_id);
    command->device.device_id = call_command_copy(&at, draft->device.device_id);
    command->to = call_command_copy(&at, draft->to);
    command->call_id = call_command_copy(&at, draft->call_id);
    command->data = call_command_copy(&at, draft->data);
    return command;
}

void call_command_refuse(struct call_command *command, enum error_code code, const char *problem)
{
    command->done(command->arg, &(struct call_reply){.problem = problem, .code = code});
    free(command);
}

void call_command_reply(const struct call_command *command, const struct call *call)
{
    command->done(command->arg, &(struct call_reply){.call = call});
}

static const char *const STATE_PROBLEMS[] = {
    [CALL_RINGING] = "the call is ringing",
    [CALL_ACCEPTED] = "the call is already accepted",
    [CALL_ENDED] = "the call has ended",
};

void call_command_refuse_state(struct call_command *command, enum call_state state)
{
    call_command_refuse(command, ERROR_CALL_UNAVAILABLE, STATE_PROBLEMS[state]);
}

void call_command_refuse_result(struct call_command *command, const struct call_answer *answer)
{
    switch (answer->result) {
    case CALL_NOT_FOUND:
        call_command_refuse(command, ERROR_NOT_FOUND, "there is no such call");
        break;
    case CALL_WRONG_STATE:
        call_command_refuse_state(command, answer->call->state);
        break;
    case CALL_WRONG_PARTY:
        call_command_refuse(command, ERROR_FORBIDDEN,
                            "the call is ringing, and only the callee may accept or reject it");
        break;
    case CALL_CALLER_BUSY:
        call_command_refuse(command, ERROR_CALL_BUSY, "you are already in a call");
        break;
    case CALL_CALLEE_BUSY:
        call_command_refuse(command, ERROR_CALL_BUSY, "the other side is in a call");
        break;
    case CALL_ID_TAKEN:
        call_command_refuse(command, ERROR_INVALID_MESSAGE, "call_id was used before");
        break;
    default:
        call_command_refuse(command, ERROR_SERVICE_UNAVAILABLE, "the state store is out of reach");
    }
}
