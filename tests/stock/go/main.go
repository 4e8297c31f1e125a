// Command stock is a stock Socket.IO client of Go; tests/stock/stock.test.mjs describes what it prints.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	socketio "github.com/maldikhan/go.socket.io/socket.io/v5/client"
	"github.com/maldikhan/go.socket.io/socket.io/v5/client/emit"
)

type object = map[string]interface{}

func main() {
	client, err := socketio.NewClient(socketio.WithRawURL(os.Args[1] + "socket.io/"))
	if err != nil {
		log.Fatal(err)
	}
	client.SetHandshakeData(object{"token": os.Args[2]})
	ended := make(chan struct{})
	client.On("friend_online", func(event object) { fmt.Println("friend_online", event["userId"]) })
	client.On("message", func(message object) {
		fmt.Println("message", message["body"])
		if message["body"] == "bye" {
			close(ended)
		}
	})
	client.On("connect", func() {
		fmt.Println("connected")
		message := object{"chat_id": "team", "client_message_id": "stock-1", "body": "hello"}
		err := client.Emit("send_message", message, emit.WithAck(func(ack object) { fmt.Println("ack", ack["sequence"]) }))
		if err != nil {
			log.Fatal(err)
		}
	})
	if err := client.Connect(context.Background()); err != nil {
		log.Fatal(err)
	}
	<-ended
	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
}
