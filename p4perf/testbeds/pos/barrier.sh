#!/bin/sh
# sh barrier.sh NAME waits until both nodes of the experiment have come here in this run of the loop.
exec pos_sync --loop --tag "$1"
