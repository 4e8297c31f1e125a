package org.rollcall.client;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;

/** The present token and, if the application has a supplier, the source of the next. Only `exp` is read; the server verifies. */
final class TokenSource {
    /** The next token is fetched this long before the present one expires, … */
    static final long REFRESH_MARGIN_MS = 60_000;
    /** … or, if it expires sooner, after this part of the remaining time, but not before the pause. */
    static final double REFRESH_SHORT_LIFE_PART = 0.5;
    static final long REFRESH_PAUSE_MIN_MS = 1000;
    /** A token that expires this soon is not used for a handshake. */
    static final long EXPIRY_SLACK_MS = 2000;
    static final long NEVER = Long.MAX_VALUE;

    private final Supplier<? extends CompletionStage<String>> supplier;
    private volatile String token;

    TokenSource(String token, Supplier<? extends CompletionStage<String>> supplier) {
        if (token == null && supplier == null) throw new IllegalArgumentException("a token or a token supplier is needed");
        this.token = token;
        this.supplier = supplier;
    }

    /** When a token expires, in milliseconds since 1970, or NEVER. */
    static long expiryMs(String token) {
        try {
            byte[] payload = Base64.getUrlDecoder().decode(token.split("\\.")[1]);
            Object expiry = Fields.object(Json.parse(new String(payload, StandardCharsets.UTF_8))).get("exp");
            return expiry instanceof Number ? Math.round(((Number) expiry).doubleValue() * 1000) : NEVER;
        } catch (RuntimeException unreadable) {
            return NEVER;
        }
    }

    boolean isRenewable() {
        return supplier != null;
    }

    /** A token for a handshake: the present one until it expires, else a fresh one. */
    CompletableFuture<String> current() {
        String present = token;
        if (present != null && System.currentTimeMillis() < expiryMs(present) - EXPIRY_SLACK_MS)
            return CompletableFuture.completedFuture(present);
        if (isRenewable()) return fetch();
        return CompletableFuture.failedFuture(new RollcallException("UNAUTHENTICATED", "the token has expired"));
    }

    CompletableFuture<String> fetch() {
        if (!isRenewable())
            return CompletableFuture.failedFuture(new RollcallException("UNAUTHENTICATED", "there is no source of a new token"));
        try {
            return supplier.get().toCompletableFuture().thenApply(fresh -> {
                if (fresh == null || fresh.isEmpty()) throw new RollcallException("UNAUTHENTICATED", "the source returned no token");
                token = fresh;
                return fresh;
            });
        } catch (RuntimeException failure) {
            return CompletableFuture.failedFuture(failure);
        }
    }

    void replace(String fresh) {
        token = fresh;
    }

    /** Forgets a token that the server refused; returns false if there is no other. */
    boolean discard() {
        if (isRenewable()) token = null;
        return isRenewable();
    }

    /** How long until the next refresh, or NEVER. `skewMs` is the server's clock minus ours: the server's decides. */
    long refreshWaitMs(long skewMs) {
        long expiry = token == null ? NEVER : expiryMs(token);
        if (!isRenewable() || expiry == NEVER) return NEVER;
        long left = expiry - System.currentTimeMillis() - skewMs;
        return Math.max(Math.max(left - REFRESH_MARGIN_MS, (long) (left * REFRESH_SHORT_LIFE_PART)), REFRESH_PAUSE_MIN_MS);
    }
}
