package org.rollcall.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The client against a real server. Faults are the subject of clients/scenarios. */
class ClientTest {
    private static final long SOON_SECONDS = 30;
    private static TestServer server;

    @BeforeAll
    static void startServer() throws IOException {
        server = new TestServer();
    }

    @AfterAll
    static void stopServer() throws Exception {
        server.close();
    }

    private static String user() {
        return "user-" + UUID.randomUUID().toString().substring(0, 8);
    }

    private static RollcallClient connect(String user, Listener listener) throws IOException {
        RollcallClient client = RollcallClient.builder(server.url).token(server.token(user)).listener(listener).build();
        soon(client.connect());
        return client;
    }

    private static <T> T soon(CompletableFuture<T> future) {
        return future.orTimeout(SOON_SECONDS, TimeUnit.SECONDS).join();
    }

    private static <T> T take(BlockingQueue<T> queue) throws InterruptedException {
        T value = queue.poll(SOON_SECONDS, TimeUnit.SECONDS);
        assertNotNull(value, "nothing came");
        return value;
    }

    private static String codeOf(CompletableFuture<?> future) {
        return Loop.errorOf(assertThrows(CompletionException.class, () -> soon(future))).code();
    }

    @Test
    void aMessageReachesTheOtherUserAndMovesTheReadMark() throws Exception {
        BlockingQueue<Message> got = new LinkedBlockingQueue<>();
        try (RollcallClient alice = connect(user(), new Listener() {}); RollcallClient bob = connect(user(), new Listener() {
            @Override
            public void onMessage(Message message) {
                got.add(message);
            }
        })) {
            String chat = Fields.text(soon(alice.people().directChat(bob.userId())), "chat_id");
            MessageAck ack = soon(alice.sendMessage(chat, "héllo"));
            Message message = take(got);
            assertEquals("héllo", message.body());
            assertEquals(1, ack.sequence());
            assertEquals(alice.userId(), message.senderId());
            assertEquals(1L, soon(bob.people().chat(chat)).get("unread"));
            assertEquals(1L, soon(bob.people().markRead(chat, 1)));
            assertEquals(0L, soon(bob.people().chat(chat)).get("unread"));
        }
    }

    @Test
    void contactsSeeEachOtherComeAndGo() throws Exception {
        BlockingQueue<Presence> changes = new LinkedBlockingQueue<>();
        try (RollcallClient alice = connect(user(), new Listener() {
            @Override
            public void onPresence(Presence presence) {
                changes.add(presence);
            }
        }); RollcallClient bob = connect(user(), new Listener() {})) {
            String request = Fields.text(soon(alice.people().requestContact(bob.userId())), "id");
            soon(bob.people().acceptContact(request));
            assertEquals("online", take(changes).status());
            bob.close();
            Presence gone = take(changes);
            assertEquals("offline", gone.status());
            assertNotNull(gone.lastSeen());
            assertEquals("offline", soon(alice.presence(bob.userId())).status());
        }
    }

    @Test
    void aRefusedRequestHasTheCodeOfTheServer() throws Exception {
        try (RollcallClient alice = connect(user(), new Listener() {})) {
            assertEquals("NOT_FOUND", codeOf(alice.openChat("elsewhere", 0)));
            assertEquals("NOT_FOUND", codeOf(alice.people().chat("elsewhere")));
            assertEquals("INVALID_MESSAGE", codeOf(alice.request("shout", Map.of(), false)));
            assertEquals("MESSAGE_TOO_LARGE",
                    codeOf(alice.request("query_presence", Map.of("user_ids", List.of("x".repeat(70000))), true)));
            soon(alice.connect());
            assertEquals(State.READY, alice.state());
        }
    }

    @Test
    void aListenerThatFailsDoesNotHarmTheConnection() throws Exception {
        try (RollcallClient alice = connect(user(), new Listener() {
            @Override
            public void onPresence(Presence presence) {
                throw new IllegalStateException("a test of failing listeners");
            }
        })) {
            assertEquals(1, soon(alice.queryPresence(List.of(alice.userId()))).size());
        }
    }

    @Test
    void closeFailsWhatIsPendingAndConnectMayFollow() throws Exception {
        RollcallClient alice = RollcallClient.builder(server.url).token(server.token(user())).build();
        CompletableFuture<MessageAck> never = alice.sendMessage("c", "never");
        alice.close();
        assertEquals("CLOSED", codeOf(never));
        soon(alice.connect());
        alice.close();
    }

    @Test
    void aTokenSourceThatRefusesStopsTheClient() {
        RollcallClient client = RollcallClient.builder(server.url).tokenSupplier(() ->
                CompletableFuture.failedFuture(new RollcallException("UNAUTHENTICATED", "signed out"))).build();
        assertEquals("UNAUTHENTICATED", codeOf(client.connect()));
    }

    @Test
    void wrongOptionsAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> RollcallClient.builder("http://x").build());
        assertThrows(IllegalArgumentException.class, () -> RollcallClient.builder("ftp://x").token("x").build());
    }

    @Test
    void theServiceSeesPresenceUnfilteredAndAUserIsNotTheService() throws Exception {
        try (RollcallClient alice = connect(user(), new Listener() {})) {
            Service service = new Service(server.url, server.token("backend", "--scope", "service"));
            List<Presence> presences = service.presence(List.of(alice.userId(), "nobody"));
            assertEquals(List.of("online", "offline"), presences.stream().map(Presence::status).toList());
            Service user = new Service(server.url, server.token("mallory"));
            RollcallException refused = assertThrows(RollcallException.class, () -> user.presence(List.of("bob")));
            assertEquals(403, refused.status());
            assertFalse(refused.isRetryable());
        }
        RollcallException away = assertThrows(RollcallException.class, () -> new Service("http://127.0.0.1:1", "rk_x").presence(List.of("bob")));
        assertTrue(away.isRetryable());
    }

    @Test
    void theServiceDeliversAndMakesContacts() throws Exception {
        BlockingQueue<Map<String, Object>> pushes = new LinkedBlockingQueue<>();
        try (RollcallClient alice = connect(user(), new Listener() {
            @Override
            public void onPush(String type, Map<String, Object> fields) {
                if (type.equals("delivery")) pushes.add(fields);
            }
        })) {
            Service service = new Service(server.url, server.token("backend", "--scope", "service"));
            assertEquals(1, service.deliverToUsers(List.of(alice.userId(), "nobody"), "shipped", Map.of("id", 7)));
            Map<String, Object> push = take(pushes);
            assertEquals("shipped", push.get("event"));
            assertEquals(Map.of("id", 7L), push.get("data"));
            service.addContact(alice.userId(), "bob");
            assertEquals(List.of("bob"), friends(alice));
            service.setContacts(alice.userId(), List.of("carol", "dave"));
            service.removeContact(alice.userId(), "carol");
            String lines = Json.write(Map.of("contact", List.of(alice.userId(), "erin"))) + "\n{\"contact\":\"wrong\"}\n";
            Map<String, Object> counts = service.importLines(new ByteArrayInputStream(lines.getBytes(StandardCharsets.UTF_8)));
            assertEquals(1L, counts.get("contacts"));
            assertEquals(2L, Fields.objects(counts, "errors").get(0).get("line"));
            assertEquals(List.of("dave", "erin"), friends(alice));
            assertTrue(((List<?>) service.online(null, 1000).get("users")).contains(alice.userId()));
        }
    }

    @Test
    void theServiceMakesChatsSendsAndDeletes() throws Exception {
        try (RollcallClient alice = connect(user(), new Listener() {})) {
            String chat = user();
            Service service = new Service(server.url, server.token("backend", "--scope", "service"));
            assertEquals(chat, service.createChat(chat, List.of(alice.userId())).get("chat_id"));
            service.addMember(chat, "bob");
            assertEquals(1, service.sendMessage(chat, "bob", "1", "hello").sequence());
            assertEquals(2, service.sendMessage(chat, null, "2", "welcome").sequence());
            service.deleteMessage(chat, 1);
            List<Map<String, Object>> messages = Fields.objects(soon(alice.people().history(chat, null, 0L, 10)), "messages");
            assertEquals(true, messages.get(0).get("deleted"));
            assertFalse(messages.get(0).containsKey("body"));
            assertEquals("welcome", messages.get(1).get("body"));
            service.removeMember(chat, "bob");
            assertEquals(List.of(alice.userId()), soon(alice.people().chat(chat)).get("members"));
        }
    }

    private static List<String> friends(RollcallClient client) {
        return Fields.objects(soon(client.people().friends(null, null)), "friends").stream().map(each -> Fields.text(each, "user_id")).toList();
    }
}
