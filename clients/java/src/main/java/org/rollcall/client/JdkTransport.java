package org.rollcall.client;

import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.WebSocket;
import java.net.http.WebSocketHandshakeException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;

/** The transport of the JDK: java.net.http. */
public final class JdkTransport implements Transport {
    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(10);
    private static final int CLOSE_NORMAL = 1000;

    private final HttpClient http;

    public JdkTransport() {
        this(HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(CONNECT_TIMEOUT).build());
    }

    /** With a client of your own, for example with another SSLContext. */
    public JdkTransport(HttpClient http) {
        this.http = http;
    }

    @Override
    public void open(URI address, String token, SocketListener listener) {
        http.newWebSocketBuilder().header("Authorization", "Bearer " + token).subprotocols("rollcall.v1")
                .connectTimeout(CONNECT_TIMEOUT).buildAsync(address, new Frames(listener)).whenComplete((socket, failure) -> {
                    if (failure != null) report(failure instanceof CompletionException ? failure.getCause() : failure, listener);
                });
    }

    private static void report(Throwable failure, SocketListener listener) {
        if (failure instanceof WebSocketHandshakeException) {
            HttpResponse<?> response = ((WebSocketHandshakeException) failure).getResponse();
            listener.onRefused(response.statusCode(), response.headers().firstValue("Retry-After").orElse(null));
        } else {
            listener.onClosed(0, String.valueOf(failure.getMessage()));
        }
    }

    @Override
    public CompletableFuture<Answer> exchange(String method, URI address, String token, String contentType, InputStream body) {
        HttpRequest.Builder request = HttpRequest.newBuilder(address).header("Authorization", "Bearer " + token)
                .method(method, body == null ? HttpRequest.BodyPublishers.noBody()
                        : HttpRequest.BodyPublishers.ofInputStream(() -> body));
        if (body != null) request.header("Content-Type", contentType);
        return http.sendAsync(request.build(), HttpResponse.BodyHandlers.ofString()).thenApply(answer ->
                new Answer(answer.statusCode(), answer.body(), answer.headers().firstValue("Retry-After").orElse(null)));
    }

    /** Joins the parts of messages, and sends one message at a time, as WebSocket demands. */
    private static final class Frames implements WebSocket.Listener {
        private final SocketListener listener;
        private final StringBuilder text = new StringBuilder();
        private final AtomicBoolean isClosed = new AtomicBoolean();

        Frames(SocketListener listener) {
            this.listener = listener;
        }

        @Override
        public void onOpen(WebSocket socket) {
            listener.onOpen(new Sender(socket));
            socket.request(1);
        }

        @Override
        public CompletionStage<?> onText(WebSocket socket, CharSequence part, boolean isLast) {
            text.append(part);
            if (isLast) {
                listener.onText(text.toString());
                text.setLength(0);
            }
            socket.request(1);
            return null;
        }

        @Override
        public CompletionStage<?> onClose(WebSocket socket, int code, String reason) {
            if (isClosed.compareAndSet(false, true)) listener.onClosed(code, reason);
            return null;
        }

        @Override
        public void onError(WebSocket socket, Throwable failure) {
            if (isClosed.compareAndSet(false, true)) listener.onClosed(0, String.valueOf(failure.getMessage()));
        }
    }

    private static final class Sender implements Socket {
        private final WebSocket socket;
        private CompletableFuture<?> last = CompletableFuture.completedFuture(null);

        Sender(WebSocket socket) {
            this.socket = socket;
        }

        @Override
        public synchronized void send(String text) {
            last = last.thenCompose(done -> socket.sendText(text, true)).exceptionally(failure -> null);
        }

        @Override
        public synchronized void close() {
            last = last.thenCompose(done -> socket.sendClose(CLOSE_NORMAL, "")).handle((done, failure) -> {
                socket.abort();
                return null;
            });
        }

        @Override
        public void abort() {
            socket.abort();
        }
    }
}
