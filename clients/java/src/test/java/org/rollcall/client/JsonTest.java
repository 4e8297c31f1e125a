package org.rollcall.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Arrays;
import java.util.Map;
import org.junit.jupiter.api.Test;

class JsonTest {
    @Test
    void valuesAreReadAndWrittenUnchanged() {
        for (String text : new String[] {"null", "true", "-12", "1.5", "\"a\\\"b\\n\\u0001é😀\"", "[]", "{}",
                "[1,[2,{\"a\":null}]]", "{\"a\":{\"b\":[false]},\"c\":9007199254740993}"})
            assertEquals(text, Json.write(Json.parse(text)));
        assertEquals("é/\u20ac", Json.parse("\"\\u00e9\\/\\u20AC\""));
        assertEquals(Arrays.asList(1L, 2e3), Json.parse(" [ 1 , 2e3 ] "));
        assertEquals(Map.of("a", 1L), Json.parse("{\"a\" : 1}"));
    }

    @Test
    void textThatIsNotJsonIsRefused() {
        for (String text : new String[] {"", "tru", "[1,]", "{\"a\"}", "\"a", "1 2", "{a:1}", "[", "\"\\x\"", "\"\\u12\"", "--1", "\"a\nb\""})
            assertThrows(IllegalArgumentException.class, () -> Json.parse(text), text);
        assertThrows(IllegalArgumentException.class, () -> Json.parse("[".repeat(100000)));
    }
}
