"""The part of an agent's host that talks to Earshot's tools: the Model Context Protocol over HTTP, without an SDK.

    . .earshot/dev.env && export EARSHOT_BASE_URL EARSHOT_API_KEY
    python3 sdk/python/examples/agent.py "Dashboards"

It lists the tools, as a model is shown them, and makes the calls that a model might ask for: it puts a wish on a
board, votes for it, and looks for it.
"""

import os
import sys
import uuid
from types import TracebackType
from typing import Any, Dict, List, Optional, Type

import httpx


class ToolError(Exception):
    """A tool's own error, which is for the model to read: it has a code and says what to mend."""


class Tools:
    """The tools at `/mcp`. A call is one POST, and nothing is kept between two of them."""

    def __init__(self, base_url: str, key: str) -> None:
        headers = {"Authorization": f"Bearer {key}", "Accept": "application/json, text/event-stream"}
        self._http = httpx.Client(base_url=base_url, headers=headers, timeout=60)
        self._number = 0

    def __enter__(self) -> "Tools":
        started = self._request(
            "initialize",
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "earshot-python-agent", "version": "1.0.0"},
            },
        )
        self._http.headers["MCP-Protocol-Version"] = started["protocolVersion"]
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._http.close()

    def list(self) -> List[Dict[str, Any]]:
        """Is what to show a model: names, descriptions and schemas."""
        return self._request("tools/list", {})["tools"]

    def call(self, tool: str, **arguments: Any) -> Dict[str, Any]:
        """Calls a tool, and returns what it answers in a structure."""
        result = self._request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise ToolError(result["content"][0]["text"])
        return result["structuredContent"]

    def _request(self, method: str, params: Dict[str, Any]) -> Dict[str, Any]:
        self._number += 1
        answer = self._post({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}).json()
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _post(self, message: Dict[str, Any]) -> httpx.Response:
        answer = self._http.post("/mcp", json=message)
        answer.raise_for_status()
        return answer


def main(topic: str) -> None:
    with Tools(os.environ["EARSHOT_BASE_URL"], os.environ["EARSHOT_API_KEY"]) as tools:
        print(f"{len(tools.list())} tools")
        board: str = tools.call("manage_board", action="create_board", name=f"{topic} {uuid.uuid4()}")["data"]["id"]
        # A call that is repeated with its key takes effect once.
        key = str(uuid.uuid4())
        wish = {"action": "create", "board_id": board, "title": f"{topic} as PDF", "idempotency_key": key}
        post: str = tools.call("manage_post", **wish)["data"]["id"]
        assert tools.call("manage_post", **wish)["data"]["id"] == post
        print("voted:", tools.call("vote_post", action="cast", post_id=post)["created"])
        found: List[Dict[str, Any]] = tools.call("search_posts", board_id=board, q=topic)["data"]
        print("found:", [(one["title"], one["vote_count"]) for one in found])
        try:
            tools.call("get_post", post_id="pst_nobody")
        except ToolError as error:
            print("refused:", error)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "Dashboards")
