#include "ledger/sqlite/sqlite_schema.h"

#include <stdio.h>

/*
 * Version 1: people. A contact is stored once per side, so that one range scan lists a user's contacts.
 * Only pending contact requests have a row. `hidden` is set when the receiver has blocked the sender.
 */
static const char PEOPLE[] =
    "CREATE TABLE users ("
    "  user_id TEXT NOT NULL PRIMARY KEY,"
    "  presence_visibility INTEGER NOT NULL DEFAULT 0,"
    "  last_seen_visibility INTEGER NOT NULL DEFAULT 0,"
    "  last_seen_ms INTEGER NOT NULL DEFAULT 0,"
    "  presence_version INTEGER NOT NULL DEFAULT 0"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE contacts ("
    "  user_id TEXT NOT NULL,"
    "  contact_id TEXT NOT NULL,"
    "  request_id TEXT NOT NULL,"
    "  since_ms INTEGER NOT NULL,"
    "  PRIMARY KEY (user_id, contact_id)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE contact_requests ("
    "  from_user TEXT NOT NULL,"
    "  to_user TEXT NOT NULL,"
    "  request_id TEXT NOT NULL UNIQUE,"
    "  created_at_ms INTEGER NOT NULL,"
    "  hidden INTEGER NOT NULL,"
    "  PRIMARY KEY (from_user, to_user)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX contact_requests_incoming ON contact_requests (to_user, hidden, request_id);"
    "CREATE INDEX contact_requests_outgoing ON contact_requests (from_user, request_id);"

    "CREATE TABLE blocks ("
    "  user_id TEXT NOT NULL,"
    "  blocked_id TEXT NOT NULL,"
    "  since_ms INTEGER NOT NULL,"
    "  PRIMARY KEY (user_id, blocked_id)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE chats ("
    "  chat_id TEXT NOT NULL PRIMARY KEY,"
    "  creator TEXT NOT NULL,"
    "  created_at_ms INTEGER NOT NULL,"
    "  member_count INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE chat_members ("
    "  chat_id TEXT NOT NULL REFERENCES chats,"
    "  user_id TEXT NOT NULL,"
    "  since_ms INTEGER NOT NULL,"
    "  PRIMARY KEY (chat_id, user_id)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX chat_members_of_user ON chat_members (user_id, chat_id);"

    "CREATE TABLE calls (" /* one row per participant */
    "  user_id TEXT NOT NULL,"
    "  call_id TEXT NOT NULL,"
    "  caller TEXT NOT NULL,"
    "  callee TEXT NOT NULL,"
    "  reason TEXT NOT NULL,"
    "  started_at_ms INTEGER NOT NULL,"
    "  answered_at_ms INTEGER NOT NULL,"
    "  ended_at_ms INTEGER NOT NULL,"
    "  PRIMARY KEY (user_id, call_id)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX calls_latest ON calls (user_id, ended_at_ms, call_id);";

/*
 * Version 2: messages. The primary key prevents two messages with the same sequence. The unique index
 * makes a client_message_id name one message for ever. The row ids of the outbox and of the dead letters
 * keep the order in which rows were added.
 */
static const char MESSAGES[] =
    "CREATE TABLE chat_counters ("
    "  chat_id TEXT NOT NULL PRIMARY KEY,"
    "  sequence INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "INSERT INTO chat_counters SELECT chat_id, 0 FROM chats;"

    "CREATE TABLE messages ("
    "  chat_id TEXT NOT NULL,"
    "  sequence INTEGER NOT NULL,"
    "  message_id TEXT NOT NULL,"
    "  sender TEXT NOT NULL,"
    "  client_message_id TEXT NOT NULL,"
    "  body TEXT NOT NULL,"
    "  sent_at_ms INTEGER NOT NULL,"
    "  PRIMARY KEY (chat_id, sequence)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE UNIQUE INDEX messages_idempotency ON messages (chat_id, sender, client_message_id);"

    "CREATE TABLE cursors ("
    "  chat_id TEXT NOT NULL,"
    "  user_id TEXT NOT NULL,"
    "  device_id TEXT NOT NULL,"
    "  sequence INTEGER NOT NULL,"
    "  PRIMARY KEY (chat_id, user_id, device_id)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE outbox ("
    "  position INTEGER PRIMARY KEY,"
    "  chat_id TEXT NOT NULL,"
    "  sequence INTEGER NOT NULL,"
    "  UNIQUE (chat_id, sequence)"
    ") STRICT;"

    "CREATE TABLE dead_letters ("
    "  position INTEGER PRIMARY KEY,"
    "  chat_id TEXT NOT NULL,"
    "  sequence INTEGER NOT NULL,"
    "  reason TEXT NOT NULL,"
    "  created_at_ms INTEGER NOT NULL,"
    "  UNIQUE (chat_id, sequence)"
    ") STRICT;";

/* Version 3: a version of a chat's members, with which a cache detects that they have changed. */
static const char MEMBERS_VERSION[] =
    "ALTER TABLE chats ADD COLUMN members_version INTEGER NOT NULL DEFAULT 1;";

/* Version 4: how many messages each sender has in a chat, up to and including each of them. A user's own messages after
 * a sequence are then the difference of two rows, however many there are. */
static const char SENT_COUNTS[] =
    "CREATE TABLE sent_counts ("
    "  chat_id TEXT NOT NULL,"
    "  sender TEXT NOT NULL,"
    "  sequence INTEGER NOT NULL,"
    "  sent INTEGER NOT NULL,"
    "  PRIMARY KEY (chat_id, sender, sequence)"
    ") STRICT, WITHOUT ROWID;"
    "INSERT INTO sent_counts SELECT chat_id, sender, sequence, "
    "  row_number() OVER (PARTITION BY chat_id, sender ORDER BY sequence) FROM messages;";

/* Version 5: revoked tokens. AUTOINCREMENT never uses a position again, not even that of a deleted row. */
static const char REVOCATIONS[] = "CREATE TABLE revocations ("
                                  "  position INTEGER PRIMARY KEY AUTOINCREMENT,"
                                  "  user_id TEXT NOT NULL UNIQUE,"
                                  "  revoked_at_s INTEGER NOT NULL"
                                  ") STRICT;";

/* Version 6: finds who blocked a user. */
static const char BLOCKED_BY[] = "CREATE INDEX blocks_of_blocked ON blocks (blocked_id, user_id);";

/*
 * Version 7: direct chats, roles, consent and the order of a user's chats (sqlite_activity.h). Existing chats become
 * groups that all their members have accepted. The creator, or else the member of the longest standing, is the admin.
 */
static const char ROLES[] =
    "ALTER TABLE users ADD COLUMN group_adds INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE users ADD COLUMN hides_reads INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE users ADD COLUMN display_name TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE users ADD COLUMN avatar_url TEXT NOT NULL DEFAULT '';"

    "ALTER TABLE chats ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE chats ADD COLUMN members_can_add INTEGER NOT NULL DEFAULT 1;"
    "CREATE TABLE direct_chats (" /* the lesser user id comes first */
    "  lesser TEXT NOT NULL,"
    "  greater TEXT NOT NULL,"
    "  chat_id TEXT NOT NULL,"
    "  PRIMARY KEY (lesser, greater)"
    ") STRICT, WITHOUT ROWID;"

    "ALTER TABLE chat_members ADD COLUMN is_admin INTEGER NOT NULL DEFAULT 0;"
    "UPDATE chat_members SET is_admin = 1 WHERE user_id = coalesce("
    "  (SELECT m.user_id FROM chats c JOIN chat_members m "
    "   ON m.chat_id = c.chat_id AND m.user_id = c.creator WHERE c.chat_id = chat_members.chat_id),"
    "  (SELECT m.user_id FROM chat_members m WHERE m.chat_id = chat_members.chat_id "
    "   ORDER BY m.since_ms, m.user_id LIMIT 1));"
    "ALTER TABLE chat_members ADD COLUMN accepted INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE chat_members ADD COLUMN listed_ms INTEGER NOT NULL DEFAULT 0;"

    "ALTER TABLE chat_counters ADD COLUMN activity_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE chat_counters ADD COLUMN listed_ms INTEGER NOT NULL DEFAULT 0;"
    "UPDATE chat_counters SET activity_ms = coalesce("
    "  (SELECT sent_at_ms FROM messages m WHERE m.chat_id = chat_counters.chat_id "
    "   ORDER BY sequence DESC LIMIT 1),"
    "  (SELECT created_at_ms FROM chats c WHERE c.chat_id = chat_counters.chat_id), 0);"
    "UPDATE chat_counters SET listed_ms = CASE WHEN "
    "  (SELECT member_count FROM chats c WHERE c.chat_id = chat_counters.chat_id) > 100 "
    "  THEN 9223372036854775807 ELSE activity_ms END;"
    "UPDATE chat_members SET listed_ms = coalesce("
    "  (SELECT listed_ms FROM chat_counters k WHERE k.chat_id = chat_members.chat_id), 0);"
    "DROP INDEX chat_members_of_user;"
    "CREATE INDEX chat_members_listed ON chat_members (user_id, accepted, listed_ms, chat_id);";

/* Version 8: chats whose members are still being stored (sqlite_chat_drafts.h). */
static const char CHAT_DRAFTS[] = "CREATE TABLE chat_drafts ("
                                  "  draft_number INTEGER PRIMARY KEY AUTOINCREMENT,"
                                  "  chat_id TEXT NOT NULL UNIQUE,"
                                  "  abandoned INTEGER NOT NULL DEFAULT 0"
                                  ") STRICT;"
                                  "CREATE INDEX chat_drafts_abandoned ON chat_drafts (abandoned);";

/*
 * Version 9: events for the application (ledger_events.h). A queue counts its events, because a bound must not cost a scan.
 * Positions only grow, so a dead letter keeps its own.
 */
static const char EVENTS[] = "CREATE TABLE event_queues ("
                             "  queue TEXT NOT NULL PRIMARY KEY,"
                             "  last_position INTEGER NOT NULL DEFAULT 0,"
                             "  event_count INTEGER NOT NULL DEFAULT 0,"
                             "  dropped INTEGER NOT NULL DEFAULT 0,"
                             "  holder TEXT NOT NULL DEFAULT '',"
                             "  lease_version INTEGER NOT NULL DEFAULT 0"
                             ") STRICT, WITHOUT ROWID;"
                             "CREATE TABLE events ("
                             "  queue TEXT NOT NULL,"
                             "  position INTEGER NOT NULL,"
                             "  type TEXT NOT NULL,"
                             "  subject TEXT NOT NULL,"
                             "  time_ms INTEGER NOT NULL,"
                             "  data TEXT NOT NULL,"
                             "  PRIMARY KEY (queue, position)"
                             ") STRICT, WITHOUT ROWID;"
                             "CREATE TABLE dead_events ("
                             "  queue TEXT NOT NULL,"
                             "  position INTEGER NOT NULL,"
                             "  type TEXT NOT NULL,"
                             "  subject TEXT NOT NULL,"
                             "  time_ms INTEGER NOT NULL,"
                             "  data TEXT NOT NULL,"
                             "  reason TEXT NOT NULL,"
                             "  PRIMARY KEY (queue, position)"
                             ") STRICT, WITHOUT ROWID;";

/* Version 10: API keys. */
static const char KEYS[] = "CREATE TABLE api_keys ("
                           "  name TEXT NOT NULL PRIMARY KEY,"
                           "  hash TEXT NOT NULL,"
                           "  scope TEXT NOT NULL,"
                           "  created_at_ms INTEGER NOT NULL,"
                           "  last_used_ms INTEGER NOT NULL DEFAULT 0"
                           ") STRICT, WITHOUT ROWID;";

/* Version 11: groups that a user has left, with messages of the user in them. The application (char(1)) leaves none. */
static const char FORMER_CHATS[] =
    "CREATE TABLE former_chats ("
    "  user_id TEXT NOT NULL,"
    "  chat_id TEXT NOT NULL,"
    "  PRIMARY KEY (user_id, chat_id)"
    ") STRICT, WITHOUT ROWID;"
    "INSERT INTO former_chats SELECT DISTINCT sender, chat_id FROM sent_counts s "
    "  WHERE sender <> char(1) AND NOT EXISTS (SELECT 1 FROM chat_members m "
    "    WHERE m.chat_id = s.chat_id AND m.user_id = s.sender);";

/* Version 12: an event names its message instead of holding the body. */
#define TAKE_BODIES_OUT_OF(events)                                                                 \
    "ALTER TABLE " events " ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0;"                       \
    "UPDATE " events " SET sequence = json_extract(data, '$.sequence'), "                          \
    "  data = json_remove(data, '$.body') "                                                        \
    "  WHERE type IN ('message.created', 'message.undelivered');"
static const char EVENT_MESSAGES[] = TAKE_BODIES_OUT_OF("events") TAKE_BODIES_OUT_OF("dead_events");

static const char *const migrations[] = {PEOPLE,      MESSAGES,   MEMBERS_VERSION, SENT_COUNTS,
                                         REVOCATIONS, BLOCKED_BY, ROLES,           CHAT_DRAFTS,
                                         EVENTS,      KEYS,       FORMER_CHATS,    EVENT_MESSAGES};

int sqlite_schema_version(void)
{
    return (int)(sizeof(migrations) / sizeof(migrations[0]));
}

bool sqlite_schema_migrate(struct database *database)
{
    static const char USER_VERSION[] = "PRAGMA user_version";
    struct query query = query_open(database, USER_VERSION);
    int version = query_next(&query) ? (int)query_int(&query, 0) : 0;
    query_end(&query);
    if (version > sqlite_schema_version()) {
        database->failure = SQLITE_SCHEMA;
        snprintf(
            database->failure_text, sizeof(database->failure_text),
            "the file has schema version %d, but this program supports only %d: a newer one wrote it",
            version, sqlite_schema_version());
        return false;
    }
    while (!database_failed(database) && version < sqlite_schema_version()) {
        char set_version[64];
        snprintf(set_version, sizeof(set_version), "PRAGMA user_version=%d", ++version);
        bool migrated = database_run_script(database, "BEGIN IMMEDIATE") &&
                        database_run_script(database, migrations[version - 1]) &&
                        database_run_script(database, set_version) &&
                        database_run_script(database, "COMMIT");
        if (!migrated && !sqlite3_get_autocommit(database->handle))
            sqlite3_exec(database->handle, "ROLLBACK", NULL, NULL, NULL);
    }
    return !database_failed(database);
}

bool sqlite_schema_try_write(struct database *database)
{
    char set_version[64];
    snprintf(set_version, sizeof(set_version), "PRAGMA user_version=%d", sqlite_schema_version());
    return database_run_script(database, set_version);
}
