import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.rollcall.client.Json;
import org.rollcall.client.Listener;
import org.rollcall.client.Message;
import org.rollcall.client.Presence;
import org.rollcall.client.RollcallClient;

/**
 * A chat of two users in a terminal, with the other's presence. The server runs with --dev, which hands out tokens; your own
 * backend signs them otherwise.
 *
 * mvn -q package -DskipTests && java -cp target/classes examples/Chat.java http://127.0.0.1:8080 alice bob
 */
public final class Chat {
    private static CompletableFuture<String> devToken(String url, String user) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url).resolve("/dev/token"))
                .POST(HttpRequest.BodyPublishers.ofString(Json.write(Map.of("user", user)))).build();
        return HttpClient.newHttpClient().sendAsync(request, HttpResponse.BodyHandlers.ofString())
                .thenApply(answer -> (String) ((Map<?, ?>) Json.parse(answer.body())).get("token"));
    }

    public static void main(String[] args) throws IOException {
        if (args.length != 3) {
            System.err.println("usage: Chat URL USER OTHER_USER");
            System.exit(2);
        }
        String url = args[0];
        String user = args[1];
        String other = args[2];
        Listener listener = new Listener() {
            @Override
            public void onMessage(Message message) {
                System.out.println(message.senderId() + ": " + message.body());
            }

            @Override
            public void onPresence(Presence presence) {
                System.out.println("-- " + presence.userId() + " is " + presence.status());
            }
        };
        try (RollcallClient client = RollcallClient.builder(url).tokenSupplier(() -> devToken(url, user)).listener(listener).build()) {
            client.connect().join();
            client.subscribePresence(List.of(other)).join();
            String chat = (String) client.people().directChat(other).join().get("chat_id");
            client.openChat(chat, 0).join();
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
            for (String line = in.readLine(); line != null; line = in.readLine()) client.sendMessage(chat, line).join();
        }
    }
}
