"""Makes gRPC calls with Google's client, and prints how they ended as a list in JSON.

Usage: call.py ADDRESS METHOD [NAME=VALUE ...] < MESSAGE

Each NAME=VALUE is a header of a call of its own; without any there is one call.
"""

import json
import sys

import grpc

address, method, *headers = sys.argv[1:]
message = sys.stdin.buffer.read()
options = [("grpc.max_send_message_length", -1), ("grpc.enable_retries", 0)]
channel = grpc.insecure_channel(address, options)
call = channel.unary_unary(method)


def outcome(metadata):
    try:
        call(message, timeout=60, metadata=metadata)
    except grpc.RpcError as error:
        trailers = dict(error.trailing_metadata() or ())
        # Each byte as one character.
        details = trailers.get("grpc-status-details-bin", b"").decode("latin-1")
        return {"code": error.code().value[0], "message": error.details(), "details": details}
    return {"code": 0, "message": "", "details": ""}


json.dump([outcome([header.split("=", 1)]) for header in headers] or [outcome([])], sys.stdout)
# Its threads are not to outlast the interpreter.
channel.close()
