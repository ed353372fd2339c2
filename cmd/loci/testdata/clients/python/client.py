"""Drives a memory with the official Python client: lists the tools, remembers,
recalls and forgets. The arguments are a URL, or a command as a JSON array, and how
the version is agreed on: auto or legacy. What was seen is printed as one JSON object.
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters


async def main(target: str, mode: str) -> None:
    server = target
    if not target.startswith("http"):
        command = json.loads(target)
        server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with Client(server, mode=mode) as client:

        async def call(name, arguments):
            result = await client.call_tool(name, arguments)
            return result.is_error, result.content[0].text, result.structured_content

        tools = (await client.list_tools()).tools
        _, _, remembered = await call("remember", {"text": "灯塔 lamps are lit at seven.", "tags": ["lamp"]})
        _, text, recalled = await call("recall", {"query": "灯塔 lamps"})
        wrong, _, _ = await call("recall", {"query": 7})
        _, _, forgotten = await call("forget", {"id": remembered["id"]})
        resources = (await client.list_resources()).resources
        prompts = (await client.list_prompts()).prompts
        print(json.dumps({
            "server": client.server_info.name,
            "tools": [t.name for t in tools],
            "recalled": [h["text"] for h in recalled["hits"]],
            "text": text,
            "wrong": wrong,
            "forgotten": forgotten["value"],
            "resources": len(resources),
            "prompts": len(prompts),
        }))


asyncio.run(main(sys.argv[1], sys.argv[2]))
