/*
 * WebSocket (RFC 6455), the sending side: frame headers, close payloads, the handshake's response.
 *
 * These functions never touch or copy a payload: a sender writes the header in front of it, and frames a message
 * to many once. Frames are always whole messages (FIN set). Servers send unmasked; the masked form is for
 * clients: test and load tools.
 *
 * Pure functions into the caller's memory. Any thread.
 */
#ifndef ROLLCALL_PROTOCOL_WEBSOCKET_WEBSOCKET_ENCODE_H
#define ROLLCALL_PROTOCOL_WEBSOCKET_WEBSOCKET_ENCODE_H

#include "base/slice.h"
#include "protocol/websocket/websocket.h"

#define WEBSOCKET_HEADER_BYTES_MAX 10
#define WEBSOCKET_MASKED_HEADER_BYTES_MAX 14
#define WEBSOCKET_KEY_BYTES 24
#define WEBSOCKET_ACCEPT_BYTES 28

/* Writes the header of an unmasked frame and returns its length: 2, 4 or 10. */
size_t websocket_header_write(uint8_t out[WEBSOCKET_HEADER_BYTES_MAX], enum websocket_opcode opcode,
                              uint64_t payload_len);

/* The same for a masked frame: 6, 8 or 14. The caller masks the payload with websocket_unmask(). */
size_t websocket_masked_header_write(uint8_t out[WEBSOCKET_MASKED_HEADER_BYTES_MAX],
                                     enum websocket_opcode opcode, uint64_t payload_len,
                                     const uint8_t mask[4]);

/* Reads frames that were written here: takes the next off the front of *frames. Returns false at the end. */
bool websocket_written_next(struct slice *frames, enum websocket_opcode *opcode,
                            struct slice *payload);

/* Whether foreign bytes look as if written here: whole text frames, at least one. */
bool websocket_written_is_text(struct slice frames);

/* Writes the payload of a close frame and returns its length. WEBSOCKET_CLOSE_NO_CODE gives the empty payload.
 * `reason` is valid UTF-8; if it is too long, it is cut between two characters. */
size_t websocket_close_write(char out[WEBSOCKET_CONTROL_BYTES_MAX], unsigned code,
                             struct slice reason);

/* Computes the response's Sec-WebSocket-Accept, terminated, from the request's Sec-WebSocket-Key. Returns false
 * when the key is not 16 bytes in base64, or when out of memory. */
bool websocket_accept_key(struct slice key, char out[WEBSOCKET_ACCEPT_BYTES + 1]);

#endif
