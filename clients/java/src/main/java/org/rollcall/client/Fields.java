package org.rollcall.client;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads the fields of messages; a wrong type is the same as a missing field. */
final class Fields {
    private Fields() {}

    /** Makes a map of names and values; members with the value null are left out. */
    static Map<String, Object> of(Object... namesAndValues) {
        Map<String, Object> fields = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2)
            if (namesAndValues[i + 1] != null) fields.put((String) namesAndValues[i], namesAndValues[i + 1]);
        return fields;
    }

    static String text(Map<String, Object> fields, String name) {
        Object value = fields.get(name);
        return value instanceof String ? (String) value : null;
    }

    static boolean flag(Map<String, Object> fields, String name) {
        return Boolean.TRUE.equals(fields.get(name));
    }

    static long number(Map<String, Object> fields, String name, long otherwise) {
        Object value = fields.get(name);
        return value instanceof Number ? ((Number) value).longValue() : otherwise;
    }

    static double decimal(Map<String, Object> fields, String name, double otherwise) {
        Object value = fields.get(name);
        return value instanceof Number ? ((Number) value).doubleValue() : otherwise;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value) {
        return value instanceof Map ? (Map<String, Object>) value : Map.of();
    }

    @SuppressWarnings("unchecked")
    static List<Map<String, Object>> objects(Map<String, Object> fields, String name) {
        Object value = fields.get(name);
        return value instanceof List ? (List<Map<String, Object>>) value : List.of();
    }
}
