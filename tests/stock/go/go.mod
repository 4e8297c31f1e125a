module rollcall.example.org/tests/stock

go 1.19

require github.com/maldikhan/go.socket.io v0.1.1

require golang.org/x/net v0.33.0 // indirect
