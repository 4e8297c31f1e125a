/* Commands that are repeated until the server answers them. */
#include "client.h"

void repeated_command_want(struct repeated_command *command, int64_t now_ms)
{
    if (!command->wanted)
        *command = (struct repeated_command){.wanted = true, .due_ms = now_ms};
}

unsigned repeated_command_number(struct rollcall *client, struct repeated_command *command)
{
    if (++client->last_number == 0)
        client->last_number++;
    return command->number = client->last_number;
}

void repeated_command_reset(struct repeated_command *command, bool wanted)
{
    *command = (struct repeated_command){.wanted = wanted};
}

bool repeated_command_is_due(const struct repeated_command *command, int64_t now_ms)
{
    return command->wanted && command->due_ms <= now_ms;
}

void repeated_command_sent(struct rollcall *client, struct repeated_command *command, bool sent)
{
    command->due_ms = client->clock.now_ms + (sent ? CLIENT_REPLY_MS : CLIENT_RETRY_MIN_MS);
}

void repeated_command_answered(struct repeated_command *command)
{
    repeated_command_reset(command, false);
}

void repeated_command_refused(struct rollcall *client, struct repeated_command *command,
                              int64_t after_ms)
{
    int64_t wait_ms = after_ms > 0 ? after_ms : client_backoff_ms(client, command->refusals);
    command->refusals++;
    if (wait_ms < CLIENT_RETRY_MIN_MS)
        wait_ms = CLIENT_RETRY_MIN_MS;
    command->due_ms = client->clock.now_ms + wait_ms;
}
