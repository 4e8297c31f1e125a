package org.rollcall.client;

import java.io.InputStream;
import java.net.URI;
import java.util.concurrent.CompletableFuture;

/**
 * How the client reaches the network. {@link JdkTransport} uses java.net.http; where that does not exist, as on Android,
 * implement this with what there is (OkHttp, for example). Nothing else in the library does I/O.
 */
public interface Transport {
    /** Opens a WebSocket with `Authorization: Bearer token` and the subprotocol `rollcall.v1`. */
    void open(URI address, String token, SocketListener listener);

    /** Sends one HTTP request; `body` may be null. Completes with the answer, whatever its status. */
    CompletableFuture<Answer> exchange(String method, URI address, String token, String contentType, InputStream body);

    /** An answer; `retryAfter` is the header's text, or null. */
    record Answer(int status, String body, String retryAfter) {}

    /** An open WebSocket. */
    interface Socket {
        /** Sends a text message; messages keep the order of the calls. */
        void send(String text);

        /** Closes in order. */
        void close();

        /** Closes at once. */
        void abort();
    }

    /** Gets what happens, from any thread: onOpen, onText…, then onClosed once; or onRefused or onClosed alone. */
    interface SocketListener {
        void onOpen(Socket socket);

        void onText(String text);

        /** The handshake was answered with this HTTP status. */
        void onRefused(int status, String retryAfter);

        /** `code` is the close code, or 0 without a close frame. */
        void onClosed(int code, String reason);
    }
}
