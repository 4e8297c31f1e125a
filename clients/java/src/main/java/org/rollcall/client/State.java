package org.rollcall.client;

/** The states of a connection; Link has the transitions. */
public enum State { DISCONNECTED, CONNECTING, SYNCING, READY, CLOSING, BACKOFF }
