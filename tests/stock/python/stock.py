"""The stock python-socketio client; tests/stock/stock.test.mjs describes what it prints."""

import sys
import threading

import socketio

url, token = sys.argv[1:]
client = socketio.Client()
ended = threading.Event()


@client.event
def connect():
    print("connected", flush=True)
    client.emit("send_message", {"chat_id": "team", "client_message_id": "stock-1", "body": "hello"}, callback=on_ack)


def on_ack(ack):
    print("ack", ack["sequence"], flush=True)


# Where the server can recover connections, each event has a last argument: where to recover from.
@client.on("friend_online")
def on_friend_online(event, *_offset):
    print("friend_online", event["userId"], flush=True)


@client.on("message")
def on_message(message, *_offset):
    print("message", message["body"], flush=True)
    if message["body"] == "bye":
        ended.set()


client.connect(url, auth={"token": token})
ended.wait()
client.disconnect()
