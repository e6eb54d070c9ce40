#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A worker for tests: says hello with one device, then measures slowly for ever until it is cancelled
# or its input ends. $1 = "crash" makes it die in the middle of a run.
echo '{"type":"hello","protocol":1,"worker":"fake","pid":1,"devices":[{"id":"cpu","name":"Fake CPU","missing":"","description":null}]}'
while read -r line; do
    case "$line" in
    *'"run"'*)
        id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        echo "{\"type\":\"started\",\"id\":$id}"
        echo "{\"type\":\"progress\",\"id\":$id,\"done\":1,\"total\":8,\"label\":\"stride 1\"}"
        echo "{\"type\":\"sample\",\"id\":$id,\"key\":\"stride\",\"point\":{\"x\":1,\"name\":\"\",\"figures\":{\"useful_bandwidth\":{\"value\":1e10,\"unit\":\"B/s\",\"label\":\"useful bandwidth\"}},\"detail\":{}}}"
        [ "$1" = crash ] && kill -SEGV $$
        ;;
    *'"cancel"'*)
        id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        echo "{\"type\":\"done\",\"id\":$id,\"status\":\"cancelled\",\"elapsed\":0.1}"
        ;;
    *'"quit"'*) exit 0 ;;
    esac
done
