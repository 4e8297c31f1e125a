#include "api/admin_json.h"

#include "text/json.h"
#include "text/time_text.h"

void admin_write_time(struct buffer *out, struct slice key, int64_t wall_ms)
{
    char text[TIME_TEXT_LEN];
    json_write_key(out, key);
    if (wall_ms == TIME_NONE) {
        json_write_null(out);
        return;
    }
    time_text_write(text, wall_ms);
    json_write_string(out, (struct slice){text, sizeof(text)});
}

void admin_write_leases(struct buffer *out, const struct lease *leases, size_t count)
{
    json_write_array(out);
    for (size_t i = 0; i < count; i++) {
        const struct lease *lease = &leases[i];
        char conn_id[ULID_TEXT_LEN];
        ulid_write(conn_id, &lease->conn_id);
        json_write_object(out);
        json_write_key_string(out, SLICE("conn_id"), (struct slice){conn_id, sizeof(conn_id)});
        json_write_key_string(out, SLICE("user_id"), lease->user_id);
        json_write_key_string(out, SLICE("device_id"), lease->device_id);
        json_write_key_string(out, SLICE("server_id"), lease->gateway_id);
        admin_write_time(out, SLICE("connected_at"), lease->connected_at_ms);
        admin_write_time(out, SLICE("last_heartbeat"), lease->last_heartbeat_ms);
        json_write_key_bool(out, SLICE("idle"), lease->idle);
        json_write_object_end(out);
    }
    json_write_array_end(out);
}
