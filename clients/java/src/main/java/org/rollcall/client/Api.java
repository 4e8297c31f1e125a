package org.rollcall.client;

import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** JSON over HTTP. It keeps no state. */
final class Api {
    private static final Map<Integer, String> CODES = Map.of(401, "UNAUTHENTICATED", 403, "FORBIDDEN", 404, "NOT_FOUND",
            413, "MESSAGE_TOO_LARGE", 429, "RATE_LIMITED");

    private final Transport transport;
    private final String base;

    Api(Transport transport, String url) {
        this.transport = transport;
        this.base = base(url, "http");
    }

    /** The scheme and authority of an address, with `scheme` (http or ws) or its secure form. */
    static String base(String url, String scheme) {
        URI address = URI.create(url);
        String given = String.valueOf(address.getScheme());
        if (!given.matches("(http|ws)s?") || address.getRawAuthority() == null)
            throw new IllegalArgumentException("not a web address: " + url);
        return scheme + (given.endsWith("s") ? "s" : "") + "://" + address.getRawAuthority();
    }

    /** A path below /v1 with each segment escaped. */
    static String path(String... segments) {
        StringBuilder path = new StringBuilder("/v1");
        for (String segment : segments) path.append('/').append(escape(segment));
        return path.toString();
    }

    /** Adds names and values to a path as a query; null values are left out. */
    static String query(String path, Object... namesAndValues) {
        StringBuilder target = new StringBuilder(path);
        Fields.of(namesAndValues).forEach((name, value) ->
                target.append(target.indexOf("?") < 0 ? '?' : '&').append(name).append('=').append(escape(value.toString())));
        return target.toString();
    }

    static String escape(String text) {
        StringBuilder out = new StringBuilder();
        for (byte each : text.getBytes(StandardCharsets.UTF_8)) {
            char character = (char) (each & 0xff);
            boolean isPlain = character < 128 && (Character.isLetterOrDigit(character) || "-._~".indexOf(character) >= 0);
            out.append(isPlain ? String.valueOf(character) : String.format("%%%02X", each & 0xff));
        }
        return out.toString();
    }

    /** Completes with the answer's object, empty if it has none; fails with a RollcallException. */
    CompletableFuture<Map<String, Object>> call(String token, String method, String target, Object body) {
        InputStream text = body == null ? null : new ByteArrayInputStream(Json.write(body).getBytes(StandardCharsets.UTF_8));
        return exchange(token, method, target, "application/json", text);
    }

    CompletableFuture<Map<String, Object>> exchange(String token, String method, String target, String type, InputStream body) {
        CompletableFuture<Map<String, Object>> result = new CompletableFuture<>();
        transport.exchange(method, URI.create(base + target), token, type, body).whenComplete((answer, failure) -> {
            if (failure != null) {
                result.completeExceptionally(Loop.errorOf(failure));
                return;
            }
            Map<String, Object> object = read(answer.body());
            if (answer.status() < 300) result.complete(object);
            else result.completeExceptionally(errorOf(answer, Fields.object(object.get("error"))));
        });
        return result;
    }

    private static Map<String, Object> read(String text) {
        try {
            return text == null || text.isEmpty() ? Map.of() : Fields.object(Json.parse(text));
        } catch (IllegalArgumentException notJson) {
            return Map.of();
        }
    }

    /** Also has a code for answers that come from a proxy before the server. */
    private static RollcallException errorOf(Transport.Answer answer, Map<String, Object> error) {
        int status = answer.status();
        Map<String, Object> known = Fields.of("code", CODES.getOrDefault(status, status >= 500 ? "SERVICE_UNAVAILABLE" : "INVALID_MESSAGE"),
                "message", "HTTP " + status);
        if (answer.retryAfter() != null && answer.retryAfter().matches("\\d{1,6}"))
            known.put("retry_after_seconds", Long.valueOf(answer.retryAfter()));
        known.putAll(error);
        return RollcallException.of(known, status);
    }
}
