module quickstart

go 1.19

require rollcall.example.org/go v0.0.0

require github.com/coder/websocket v1.8.12 // indirect

replace rollcall.example.org/go => ../../clients/go
