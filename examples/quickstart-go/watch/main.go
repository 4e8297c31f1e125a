// Command watch shows the presence of a user's friends.
//
//	go run ./watch ROLLCALL_URL BACKEND_URL USER
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"

	rollcall "rollcall.example.org/go"
)

func fetchToken(ctx context.Context, backend, user string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, "GET", backend+"/token?user="+url.QueryEscape(user), nil)
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

func main() {
	address, backend, user := os.Args[1], os.Args[2], os.Args[3]
	show := func(presence rollcall.Presence) { fmt.Println(presence.UserID, "is", presence.Status) }
	client, err := rollcall.New(rollcall.Options{
		URL:        address,
		GetToken:   func(ctx context.Context) (string, error) { return fetchToken(ctx, backend, user) },
		OnPresence: show,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := client.Connect(ctx); err != nil {
		log.Fatal(err)
	}
	friends, _, err := client.Friends(ctx, rollcall.FriendsQuery{})
	if err != nil {
		log.Fatal(err)
	}
	for _, friend := range friends {
		show(friend)
	}
	select {}
}
