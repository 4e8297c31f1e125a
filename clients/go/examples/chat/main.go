// Command chat is a chat of two users in a terminal, with the other's presence.
//
//	go run ./examples/chat http://127.0.0.1:8080 alice bob
//
// The server runs with --dev, which hands out tokens; your own backend signs them otherwise.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	rollcall "rollcall.example.org/go"
)

func devToken(ctx context.Context, url, user string) (string, error) {
	body, err := json.Marshal(map[string]string{"user": user})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, "POST", strings.TrimRight(url, "/")+"/dev/token", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var answer struct{ Token string }
	err = json.NewDecoder(response.Body).Decode(&answer)
	return answer.Token, err
}

func chat(ctx context.Context, url, user, other string) error {
	client, err := rollcall.New(rollcall.Options{
		URL:        url,
		GetToken:   func(ctx context.Context) (string, error) { return devToken(ctx, url, user) },
		OnPresence: func(p rollcall.Presence) { fmt.Println("--", p.UserID, "is", p.Status) },
		OnMessage: func(m rollcall.Message) {
			if m.SenderID != nil {
				fmt.Printf("%s: %s\n", *m.SenderID, m.Body)
			}
		},
	})
	if err != nil {
		return err
	}
	if err := client.Connect(ctx); err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.SubscribePresence(ctx, other); err != nil {
		return err
	}
	direct, err := client.DirectChat(ctx, other)
	if err != nil {
		return err
	}
	if _, err := client.OpenChat(ctx, direct.ChatID, 0); err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if _, err := client.SendMessage(ctx, direct.ChatID, lines.Text()); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: chat URL USER OTHER_USER")
	}
	if err := chat(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}
