package org.rollcall.client;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A real server: $ROLLCALL_BIN, by default build/rollcall of this repository. */
final class TestServer implements AutoCloseable {
    private static final Pattern ADDRESS = Pattern.compile("http://\\S+");

    final String url;
    private final Path dataDir;
    private final Process process;

    TestServer() throws IOException {
        dataDir = Files.createTempDirectory("rollcall-java-");
        process = start("serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir", dataDir.toString(), "--set",
                "presence.offline_grace_seconds=0", "--set", "presence.min_dwell_ms=0", "--set", "gateway.shutdown.drain_timeout_seconds=1");
        url = readAddress(process.inputReader());
    }

    private static String readAddress(BufferedReader output) throws IOException {
        for (String line = output.readLine(); line != null; line = output.readLine()) {
            Matcher address = ADDRESS.matcher(line);
            if (address.find()) return address.group();
        }
        throw new IOException("the server did not start");
    }

    /** Without ROLLCALL_BIN: the server refuses a ROLLCALL_ variable that is not a setting. */
    private static Process start(String... args) throws IOException {
        String program = System.getenv().getOrDefault("ROLLCALL_BIN", new File("../../build/rollcall").getAbsolutePath());
        List<String> command = new ArrayList<>(List.of(program));
        command.addAll(Arrays.asList(args));
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD);
        builder.environment().remove("ROLLCALL_BIN");
        return builder.start();
    }

    String token(String user, String... options) throws IOException {
        List<String> args = new ArrayList<>(List.of("token", user, "--data-dir", dataDir.toString()));
        args.addAll(Arrays.asList(options));
        return start(args.toArray(String[]::new)).inputReader().readLine();
    }

    @Override
    public void close() throws InterruptedException, IOException {
        process.destroy();
        process.waitFor();
        try (var files = Files.walk(dataDir)) {
            files.sorted(java.util.Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
        }
    }
}
