#!/usr/bin/env bash
# Generates the protocol's Go code from proto/ and compiles the example: examples/go/build.sh [DIRECTORY]
# The program is tool-loop in the directory, target/go unless another is named. See README.md for what it needs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
mkdir -p "${1:-../../target/go}/src"
out=$(cd "${1:-../../target/go}" && pwd)
protoc --proto_path=../../proto --go_out="$out/src" --go-grpc_out="$out/src" ../../proto/aptix/v1/*.proto
# Without modules: the libraries are those that the system has.
GO111MODULE=off GOFLAGS='' GOPATH="$out:/usr/share/gocode" GOCACHE="$out/cache" go build -o "$out/tool-loop" main.go
