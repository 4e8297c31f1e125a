package org.rollcall.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedWriter;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class ExampleTest {
    private static Process start(TestServer server, String user, String other) throws IOException {
        return new ProcessBuilder(ProcessHandle.current().info().command().orElse("java"), "-cp", "target/classes",
                "examples/Chat.java", server.url, user, other).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }

    private static void write(Process program, String line) throws IOException {
        BufferedWriter input = program.outputWriter();
        input.write(line + "\n");
        input.flush();
    }

    @Test
    @Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void theExampleChats() throws Exception {
        try (TestServer server = new TestServer()) {
            Process ann = start(server, "ann", "ben");
            Process ben = start(server, "ben", "ann");
            write(ann, "hello");
            assertTrue(ben.inputReader().lines().anyMatch("ann: hello"::equals));
            write(ben, "hi");
            assertTrue(ann.inputReader().lines().anyMatch("ben: hi"::equals));
            for (Process program : new Process[] {ann, ben}) {
                program.outputWriter().close();
                assertTrue(program.waitFor(30, TimeUnit.SECONDS));
                assertEquals(0, program.exitValue());
            }
        }
    }
}
