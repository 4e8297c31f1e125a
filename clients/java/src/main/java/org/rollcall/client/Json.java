package org.rollcall.client;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON to and from Map, List, String, Long, Double, Boolean and null. It is part of the library so that there is no
 * dependency.
 */
public final class Json {
    /** Deeper values are refused, so that a peer cannot exhaust the stack. */
    private static final int DEPTH_MAX = 128;

    private final String text;
    private int at;
    private int depth;

    private Json(String text) {
        this.text = text;
    }

    /** Throws IllegalArgumentException if the text is not one JSON value. */
    public static Object parse(String text) {
        Json reader = new Json(text);
        Object value = reader.value();
        reader.skipSpace();
        if (reader.at != text.length()) throw reader.wrong();
        return value;
    }

    public static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private Object value() {
        skipSpace();
        if (at >= text.length()) throw wrong();
        switch (text.charAt(at)) {
            case '{': return object();
            case '[': return array();
            case '"': return string();
            case 't': return word("true", true);
            case 'f': return word("false", false);
            case 'n': return word("null", null);
            default: return number();
        }
    }

    private Map<String, Object> object() {
        Map<String, Object> members = new LinkedHashMap<>();
        enter();
        if (!isNext('}')) {
            do {
                skipSpace();
                if (at >= text.length() || text.charAt(at) != '"') throw wrong();
                String name = string();
                expect(':');
                members.put(name, value());
            } while (isNext(','));
            expect('}');
        }
        depth -= 1;
        return members;
    }

    private List<Object> array() {
        List<Object> items = new ArrayList<>();
        enter();
        if (!isNext(']')) {
            do {
                items.add(value());
            } while (isNext(','));
            expect(']');
        }
        depth -= 1;
        return items;
    }

    private void enter() {
        at += 1;
        depth += 1;
        if (depth > DEPTH_MAX) throw wrong();
    }

    private String string() {
        StringBuilder out = new StringBuilder();
        at += 1;
        while (at < text.length()) {
            char each = text.charAt(at++);
            if (each == '"') return out.toString();
            if (each < ' ') throw wrong();
            out.append(each == '\\' ? escape() : each);
        }
        throw wrong();
    }

    private char escape() {
        if (at >= text.length()) throw wrong();
        char each = text.charAt(at++);
        switch (each) {
            case '"': case '\\': case '/': return each;
            case 'b': return '\b';
            case 'f': return '\f';
            case 'n': return '\n';
            case 'r': return '\r';
            case 't': return '\t';
            case 'u': return unicode();
            default: throw wrong();
        }
    }

    private char unicode() {
        if (at + 4 > text.length()) throw wrong();
        int code = 0;
        for (int end = at + 4; at < end; at += 1) {
            int digit = Character.digit(text.charAt(at), 16);
            if (digit < 0) throw wrong();
            code = code * 16 + digit;
        }
        return (char) code;
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) throw wrong();
        at += word.length();
        return value;
    }

    private Object number() {
        int start = at;
        while (at < text.length() && "+-0123456789.eE".indexOf(text.charAt(at)) >= 0) at += 1;
        String digits = text.substring(start, at);
        try {
            if (digits.matches("-?\\d{1,18}")) return Long.valueOf(digits);
            return Double.valueOf(digits);
        } catch (NumberFormatException notANumber) {
            throw wrong();
        }
    }

    private void skipSpace() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at += 1;
    }

    private boolean isNext(char wanted) {
        skipSpace();
        if (at >= text.length() || text.charAt(at) != wanted) return false;
        at += 1;
        return true;
    }

    private void expect(char wanted) {
        if (!isNext(wanted)) throw wrong();
    }

    private IllegalArgumentException wrong() {
        return new IllegalArgumentException("not JSON at character " + at);
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof String) {
            writeString((String) value, out);
        } else if (value instanceof Map) {
            String separator = "{";
            for (Map.Entry<?, ?> member : ((Map<?, ?>) value).entrySet()) {
                out.append(separator);
                writeString(String.valueOf(member.getKey()), out);
                out.append(':');
                write(member.getValue(), out);
                separator = ",";
            }
            out.append(separator.equals("{") ? "{}" : "}");
        } else if (value instanceof Iterable) {
            String separator = "[";
            for (Object item : (Iterable<?>) value) {
                out.append(separator);
                write(item, out);
                separator = ",";
            }
            out.append(separator.equals("[") ? "[]" : "]");
        } else if (value == null || value instanceof Boolean || value instanceof Number) {
            out.append(value);
        } else {
            throw new IllegalArgumentException("not a JSON value: " + value.getClass());
        }
    }

    private static void writeString(String text, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < text.length(); i += 1) {
            char each = text.charAt(i);
            if (each == '"' || each == '\\') out.append('\\').append(each);
            else if (each == '\n') out.append("\\n");
            else if (each < ' ') out.append(String.format("\\u%04x", (int) each));
            else out.append(each);
        }
        out.append('"');
    }
}
