module rollcall.example.org/go

go 1.19

require github.com/coder/websocket v1.8.12
