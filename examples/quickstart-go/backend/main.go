// Command backend is the backend of an application: it knows who its users are and who their friends are. It signs a token
// for each user, and tells Rollcall about friendships.
//
//	go run ./backend ROLLCALL_URL PORT
package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"time"

	rollcall "rollcall.example.org/go"
)

const tokenLife = time.Hour

func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // only maps of strings and numbers come here
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func signToken(secret []byte, user, scope string) string {
	now := time.Now()
	claims := map[string]any{"sub": user, "scope": scope, "iat": now.Unix(), "exp": now.Add(tokenLife).Unix()}
	text := encode(map[string]string{"alg": "HS256", "typ": "JWT"}) + "." + encode(claims)
	signature := hmac.New(sha256.New, secret)
	signature.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(signature.Sum(nil))
}

func main() {
	url, port := os.Args[1], os.Args[2]
	file, err := os.ReadFile("secret")
	if err != nil {
		log.Fatal(err)
	}
	secret := bytes.TrimSpace(file)

	// Your own sign-in decides who asks; here everybody is who they say they are.
	http.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"token": signToken(secret, r.FormValue("user"), "")})
	})
	http.HandleFunc("/friends", func(w http.ResponseWriter, r *http.Request) {
		service, err := rollcall.NewService(url, signToken(secret, "backend", "service"), nil)
		if err == nil {
			err = service.AddContact(r.Context(), r.FormValue("user"), r.FormValue("friend"))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, nil))
}
