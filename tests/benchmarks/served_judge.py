"""A served judge that takes 200 ms for each reply and hardly any processor time.

As a program: prints its port, and answers each request of ragaliq's prompts by the form it asks for
until its standard input ends. One process, one event loop and no HTTP library, so that what a
benchmark measures is the client.
"""

import asyncio
import json
import re
import sys

SECONDS = 0.2
CLAIMS = ["Refunds are paid within five working days.", "The shop is open on Sundays."]
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def body_of(request: bytes) -> bytes:
    """The chat completion for a request: claims, or a verdict for each of them."""
    said = {"claims": CLAIMS}
    if b"VerdictsReply" in request:
        verdict = {"reason": "It is said.", "evidence": "", "chunk_ids": [0]}
        verdict |= {"verdict": "SUPPORTED", "confidence": 0.9}
        names = [f"c{number}" for number in range(1, len(CLAIMS) + 1)]
        said = {"verdicts": [{"claim_id": name} | verdict for name in names]}
    choice = {"index": 0, "finish_reason": "stop"}
    choice["message"] = {"role": "assistant", "content": json.dumps(said)}
    usage = {"prompt_tokens": 900, "completion_tokens": 90, "total_tokens": 990}
    reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    return json.dumps(reply | {"choices": [choice]}).encode()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection, one after the other."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            request = await reader.readexactly(int(_LENGTH.search(head)[1]))
            began = asyncio.get_running_loop().time()
            body = body_of(request)
            await asyncio.sleep(SECONDS - (asyncio.get_running_loop().time() - began))
            head = (
                f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
            )
            writer.write(head.encode() + b"\r\n\r\n" + body)
    except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**20, backlog=256)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
