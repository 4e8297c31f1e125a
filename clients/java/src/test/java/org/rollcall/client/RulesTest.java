package org.rollcall.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** The rules of chats, queues, back-off and tokens, without a server. */
class RulesTest {
    private final List<Long> delivered = new ArrayList<>();
    private final List<String> gaps = new ArrayList<>();

    private static Message message(long sequence) {
        return Message.of(Fields.of("chat_id", "c", "sequence", sequence, "body", "#" + sequence));
    }

    /** Chats whose server has the messages 1 … latest, in pages of two. */
    private Chats chats(long latest) {
        return new Chats((chat, after) -> {
            long last = Math.min(after + 2, latest);
            List<Object> page = new ArrayList<>();
            for (long each = after + 1; each <= last; each += 1) page.add(message(each).fields());
            return CompletableFuture.completedFuture(
                    Fields.of("messages", page, "has_more", last < latest, "latest_sequence", latest));
        }, each -> delivered.add(each.sequence()), gaps::add);
    }

    @Test
    void duplicatesAreDeliveredOnceAndAGapHoldsMessages() {
        Chats chats = chats(5);
        for (long sequence : new long[] {1, 2, 2, 1, 5}) chats.offer(message(sequence));
        assertEquals(List.of(1L, 2L), delivered);
        assertEquals(List.of("c"), gaps);
        assertEquals(5, chats.sync("c").join());
        assertEquals(List.of(1L, 2L, 3L, 4L, 5L), delivered);
    }

    @Test
    void aDeletedMessageBehindAGapIsDeliveredWithoutItsBody() {
        List<String> bodies = new ArrayList<>();
        Chats chats = new Chats((chat, after) -> new CompletableFuture<>(), each -> bodies.add(each.body()), gaps::add);
        chats.offer(message(1));
        chats.offer(message(3));
        chats.onDeleted("elsewhere", 3);
        chats.onDeleted("c", 1);
        chats.onDeleted("c", 3);
        chats.offer(message(2));
        assertEquals(java.util.Arrays.asList("#1", "#2", null), bodies);
    }

    @Test
    void aChatOpenedWithoutAStartBeginsAtTheLatestMessage() {
        Chats chats = chats(0);
        chats.open("c", Chats.UNKNOWN);
        chats.offer(message(8));
        assertEquals(List.of(), delivered);
        chats.begin("c", 8);
        chats.offer(message(9));
        assertEquals(List.of(8L, 9L), delivered);
    }

    @Test
    void aCompleteSyncThatLeavesAGapSkipsIt() {
        Chats chats = new Chats((chat, after) -> CompletableFuture.completedFuture(Fields.of("messages", List.of(), "latest_sequence", 4L)),
                each -> delivered.add(each.sequence()), gaps::add);
        chats.offer(message(1));
        chats.offer(message(4));
        chats.sync("c").join();
        assertEquals(List.of(1L, 4L), delivered);
    }

    @Test
    void heldMessagesAreBounded() {
        Chats chats = chats(0);
        chats.open("c", 0);
        LongStream.range(2, Chats.HELD_MAX + 50).forEach(sequence -> chats.offer(message(sequence)));
        chats.offer(message(1));
        assertEquals(Chats.HELD_MAX + 1, delivered.size());
    }

    @Test
    void whatAClosingConnectionMissedIsRestored() {
        Chats chats = chats(0);
        chats.markMissed(Map.of("c", 7L));
        assertEquals(List.of("c"), chats.toRestore());
        assertEquals(7, chats.lastSequence("c"));
    }

    @Test
    void backoffDoublesToSixteenSecondsWithJitter() {
        Backoff middle = new Backoff(new Random() {
            private static final long serialVersionUID = 1;

            @Override
            public double nextDouble() {
                return 0.5;
            }
        });
        assertEquals(List.of(1000L, 2000L, 4000L, 8000L, 16000L, 16000L), LongStream.range(0, 6).mapToObj(n -> middle.delayMs((int) n)).toList());
        assertEquals(300, middle.retryMs(new RollcallException("RATE_LIMITED", "", 0.3, 0), 5));
        Backoff random = new Backoff(new Random(1));
        for (int i = 0; i < 1000; i += 1) {
            long delay = random.delayMs(0);
            assertTrue(delay >= 800 && delay <= 1200);
        }
    }

    private static Presence presence(String user, String status, long version) {
        return Presence.of(Fields.of("user_id", user, "status", status, "version", version));
    }

    @Test
    void presenceIsOrderedByVersionAndBounded() {
        PresenceCache cache = new PresenceCache();
        assertTrue(cache.apply(presence("bob", "online", 5)));
        assertFalse(cache.apply(presence("bob", "offline", 4)));
        assertFalse(cache.apply(presence("bob", "online", 6)));
        assertTrue(cache.apply(presence("bob", "unknown", 0)));
        assertTrue(cache.apply(presence("bob", "online", 3)));
        cache.subscribe(List.of("bob"));
        for (int i = 0; i < PresenceCache.KNOWN_MAX + 5; i += 1) cache.apply(presence("user-" + i, "online", 1));
        assertNotNull(cache.get("bob"));
        assertNull(cache.get("user-5"));
        assertNotNull(cache.get("user-6"));
    }

    private static String jwt(long expiresInSeconds) {
        String claims = "{\"exp\":" + (System.currentTimeMillis() / 1000 + expiresInSeconds) + "}";
        return "e30." + Base64.getUrlEncoder().withoutPadding().encodeToString(claims.getBytes(StandardCharsets.UTF_8)) + ".x";
    }

    @Test
    void aTokenIsRefreshedAMinuteBeforeItsEndOrAtHalfOfAShortLife() {
        assertEquals(540_000, new TokenSource(jwt(600), () -> null).refreshWaitMs(0), 2000);
        assertEquals(10_000, new TokenSource(jwt(20), () -> null).refreshWaitMs(0), 2000);
        assertEquals(TokenSource.NEVER, new TokenSource(jwt(600), null).refreshWaitMs(0));
        assertEquals(TokenSource.NEVER, TokenSource.expiryMs("nonsense"));
    }

    @Test
    void queuesAreBounded() {
        Loop loop = new Loop();
        Outbox outbox = new Outbox(loop, new Backoff(new Random()), entry -> new CompletableFuture<>(), () -> false);
        for (int i = 0; i < Outbox.SIZE_MAX; i += 1) assertFalse(outbox.add("c", "id" + i, "x").isDone());
        assertTrue(outbox.add("c", "more", "x").isCompletedExceptionally());
        Requests requests = new Requests(loop, text -> {}, early -> false);
        for (int i = 0; i < Requests.PENDING_MAX; i += 1)
            assertFalse(requests.request("x", Map.of(), Requests.Kind.PLAIN).isDone());
        assertTrue(requests.request("x", Map.of(), Requests.Kind.PLAIN).isCompletedExceptionally());
        requests.failAll(new RollcallException("CLOSED", ""));
    }

    @Test
    void aLostConnectionFailsOrRepeatsRequests() {
        List<String> sent = new ArrayList<>();
        Requests requests = new Requests(new Loop(), sent::add, early -> true);
        CompletableFuture<?> once = requests.request("call_end", Map.of(), Requests.Kind.PLAIN);
        CompletableFuture<?> again = requests.request("open_chat", Map.of(), Requests.Kind.IDEMPOTENT);
        requests.connectionLost();
        assertTrue(once.isCompletedExceptionally());
        requests.flush();
        assertEquals(3, sent.size());
        assertTrue(requests.settle(Fields.of("type", "ok", "id", "2")));
        assertTrue(again.isDone());
        assertFalse(requests.settle(Fields.of("type", "ok", "id", "2")));
    }
}
