import io.socket.client.Ack;
import io.socket.client.IO;
import io.socket.client.Socket;
import java.net.URI;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.json.JSONObject;

/** The stock socket.io-client of Java; tests/stock/stock.test.mjs describes what it prints. */
public final class Stock {
    public static void main(String[] args) throws InterruptedException {
        CountDownLatch ended = new CountDownLatch(1);
        Socket socket = IO.socket(URI.create(args[0]), IO.Options.builder().setAuth(Map.of("token", args[1])).build());
        socket.on(Socket.EVENT_CONNECT, none -> {
            System.out.println("connected");
            JSONObject message = new JSONObject(Map.of("chat_id", "team", "client_message_id", "stock-1", "body", "hello"));
            socket.emit("send_message", new Object[] {message}, (Ack) ack -> System.out.println("ack " + ((JSONObject) ack[0]).optInt("sequence")));
        });
        socket.on("friend_online", event -> System.out.println("friend_online " + ((JSONObject) event[0]).optString("userId")));
        socket.on("message", event -> {
            String body = ((JSONObject) event[0]).optString("body");
            System.out.println("message " + body);
            if (body.equals("bye")) ended.countDown();
        });
        socket.connect();
        ended.await();
        socket.disconnect();
        System.exit(0); // the client's HTTP threads would keep the program alive for a minute
    }
}
