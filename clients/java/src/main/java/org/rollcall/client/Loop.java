package org.rollcall.client;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** The one thread on which all state of a client is read and changed, and its timers. The thread is a daemon. */
final class Loop {
    /** An idle loop gives its thread back after this. */
    private static final long IDLE_SECONDS = 30;

    private final ScheduledThreadPoolExecutor executor;

    Loop() {
        executor = new ScheduledThreadPoolExecutor(1, work -> {
            Thread thread = new Thread(work, "rollcall");
            thread.setDaemon(true);
            return thread;
        });
        executor.setRemoveOnCancelPolicy(true);
        executor.setKeepAliveTime(IDLE_SECONDS, TimeUnit.SECONDS);
        executor.allowCoreThreadTimeOut(true);
    }

    void run(Runnable work) {
        executor.execute(work);
    }

    /** Returns what cancels it. */
    Runnable after(long delayMs, Runnable work) {
        Future<?> timer = executor.schedule(work, Math.max(delayMs, 0), TimeUnit.MILLISECONDS);
        return () -> timer.cancel(false);
    }

    CompletableFuture<Void> pause(long delayMs) {
        CompletableFuture<Void> over = new CompletableFuture<>();
        after(delayMs, () -> over.complete(null));
        return over;
    }

    /** The error behind a failed future. */
    static RollcallException errorOf(Throwable failure) {
        Throwable cause = failure;
        while (cause instanceof CompletionException && cause.getCause() != null) cause = cause.getCause();
        if (cause instanceof RollcallException) return (RollcallException) cause;
        return new RollcallException("SERVICE_UNAVAILABLE", String.valueOf(cause));
    }
}
