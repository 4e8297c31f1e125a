package org.rollcall.client;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** Lets the scenarios use the Java client; clients/scenarios/README.md describes the lines. */
public final class ScenarioDriver {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final Map<String, RollcallClient> CLIENTS = new HashMap<>();

    private ScenarioDriver() {}

    private interface Operation {
        CompletableFuture<?> run(RollcallClient client, Map<String, Object> args);
    }

    private static final Map<String, Operation> OPERATIONS = new HashMap<>();

    static {
        OPERATIONS.put("close", (c, a) -> {
            c.close();
            return c.presence("").thenApply(done -> null); // behind it on the client's thread
        });
        OPERATIONS.put("subscribe_presence", (c, a) -> c.subscribePresence(texts(a, "user_ids")).thenApply(found -> null));
        OPERATIONS.put("open_chat", (c, a) -> c.openChat(text(a, "chat_id"), Fields.number(a, "after_sequence", RollcallClient.LATEST)));
        OPERATIONS.put("close_chat", (c, a) -> c.closeChat(text(a, "chat_id")).thenApply(done -> null));
        OPERATIONS.put("send_message", (c, a) -> c.sendMessage(text(a, "chat_id"), text(a, "body"), text(a, "client_message_id"))
                .thenApply(MessageAck::fields));
        OPERATIONS.put("typing", (c, a) -> c.typing(text(a, "chat_id"), Fields.flag(a, "typing")));
        OPERATIONS.put("ack", (c, a) -> c.ack(text(a, "chat_id"), Fields.number(a, "sequence", 0)));
        OPERATIONS.put("request_call", (c, a) -> c.requestCall(text(a, "to")).thenApply(id -> Map.of("call_id", id)));
        OPERATIONS.put("accept_call", (c, a) -> c.acceptCall(text(a, "call_id")));
        OPERATIONS.put("reject_call", (c, a) -> c.rejectCall(text(a, "call_id")));
        OPERATIONS.put("end_call", (c, a) -> c.endCall(text(a, "call_id")));
        OPERATIONS.put("signal", (c, a) -> c.signal(text(a, "call_id"), a.get("data")));
        OPERATIONS.put("send_event", (c, a) -> c.sendEvent(text(a, "name"), a.get("data")).thenApply(data -> Fields.of("data", data)));
        OPERATIONS.put("request_contact", (c, a) -> c.people().requestContact(text(a, "user_id")));
        OPERATIONS.put("contact_requests", (c, a) -> c.people().contactRequests());
        OPERATIONS.put("accept_contact", (c, a) -> c.people().acceptContact(text(a, "request_id")));
        OPERATIONS.put("remove_contact", (c, a) -> c.people().removeContact(text(a, "user_id")));
        OPERATIONS.put("friends", (c, a) -> c.people().friends(null, null));
        OPERATIONS.put("block", (c, a) -> c.people().block(text(a, "user_id")));
        OPERATIONS.put("create_chat", (c, a) -> c.people().createChat(text(a, "chat_id"), texts(a, "members")));
        OPERATIONS.put("direct_chat", (c, a) -> c.people().directChat(text(a, "user_id")));
        OPERATIONS.put("chat", (c, a) -> c.people().chat(text(a, "chat_id")));
        OPERATIONS.put("history", (c, a) -> c.people().history(text(a, "chat_id"), Fields.number(a, "before_sequence", 0), null,
                (int) Fields.number(a, "limit", 100)));
        OPERATIONS.put("mark_read", (c, a) -> c.people().markRead(text(a, "chat_id"), Fields.number(a, "sequence", 0))
                .thenApply(mark -> Map.of("sequence", mark)));
        OPERATIONS.put("remove_member", (c, a) -> c.people().removeMember(text(a, "chat_id"), text(a, "user_id")));
    }

    private static String text(Map<String, Object> args, String name) {
        return Fields.text(args, name);
    }

    private static List<String> texts(Map<String, Object> args, String name) {
        return ((List<?>) args.get(name)).stream().map(String::valueOf).toList();
    }

    private static synchronized void emit(Map<String, Object> line) {
        OUT.println(Json.write(line));
    }

    private static final class Reporter implements Listener {
        private final String name;

        Reporter(String name) {
            this.name = name;
        }

        private void emitEvent(String event, Map<String, Object> data) {
            emit(Fields.of("client", name, "event", event, "data", data));
        }

        @Override
        public void onState(StateChange change) {
            emitEvent("state", Fields.of("state", change.state().name(), "final", change.isFinal(), "reason", change.reason()));
        }

        @Override
        public void onPresence(Presence presence) {
            emitEvent("presence", presence.fields());
        }

        @Override
        public void onMessage(Message message) {
            emitEvent("message", message.fields());
        }

        @Override
        public void onTyping(String chatId, String userId, boolean isTyping) {
            emitEvent("typing", Fields.of("chat_id", chatId, "user_id", userId, "typing", isTyping));
        }

        @Override
        public void onPush(String type, Map<String, Object> fields) {
            emitEvent(type, fields);
        }
    }

    private static CompletableFuture<String> readToken(String file) {
        try {
            return CompletableFuture.completedFuture(Files.readString(Path.of(file)));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    private static void open(String name, Map<String, Object> args) {
        RollcallClient client = RollcallClient.builder(text(args, "url")).deviceId(text(args, "device_id"))
                .tokenSupplier(() -> readToken(text(args, "token_file"))).listener(new Reporter(name)).build();
        CLIENTS.put(name, client);
        client.connect(); // onState tells
    }

    private static void perform(Map<String, Object> command) {
        Object id = command.get("id");
        String name = text(command, "client");
        Map<String, Object> args = Fields.object(command.get("args"));
        if (text(command, "do").equals("open")) {
            open(name, args);
            emit(Fields.of("id", id));
            return;
        }
        OPERATIONS.get(text(command, "do")).run(CLIENTS.get(name), args).whenComplete((result, failure) -> {
            if (failure == null) {
                emit(Fields.of("id", id, "result", result));
            } else {
                RollcallException error = Loop.errorOf(failure);
                emit(Fields.of("id", id, "error", Fields.of("code", error.code(), "message", error.getMessage())));
            }
        });
    }

    public static void main(String[] args) throws IOException {
        emit(Map.of("hello", Map.of("name", "Java")));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) perform(Fields.object(Json.parse(line)));
    }
}
