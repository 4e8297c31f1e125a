//! The stock rust_socketio client; tests/stock/stock.test.mjs describes what it prints.

use rust_socketio::{ClientBuilder, Payload};
use serde_json::{json, Value};
use std::sync::mpsc::channel;
use std::time::Duration;

const ACK_SECONDS_MAX: u64 = 30;

/// The first argument of an event or an acknowledgement; acknowledgements come as a list in a list.
fn first(payload: Payload) -> Value {
    match payload {
        Payload::Text(mut values) if !values.is_empty() => match values.remove(0) {
            Value::Array(mut inner) if !inner.is_empty() => inner.remove(0),
            value => value,
        },
        _ => Value::Null,
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (send_end, end) = channel();
    let (send_open, open) = channel();
    let client = ClientBuilder::new(args[1].clone())
        .auth(json!({"token": args[2]}))
        .on("open", move |_, _| {
            println!("connected");
            let _ = send_open.send(());
        })
        .on("friend_online", |payload, _| {
            println!("friend_online {}", first(payload)["userId"].as_str().unwrap_or(""));
        })
        .on("message", move |payload, _| {
            let message = first(payload);
            let body = message["body"].as_str().unwrap_or("");
            println!("message {}", body);
            if body == "bye" {
                let _ = send_end.send(());
            }
        })
        .on("error", |payload, _| eprintln!("error {:?}", payload))
        .connect()
        .expect("connected");
    open.recv().expect("open");
    let message = json!({"chat_id": "team", "client_message_id": "stock-1", "body": "hello"});
    client
        .emit_with_ack("send_message", message, Duration::from_secs(ACK_SECONDS_MAX), |payload, _| {
            println!("ack {}", first(payload)["sequence"]);
        })
        .expect("sent");
    end.recv().expect("end");
    client.disconnect().expect("disconnected");
}
