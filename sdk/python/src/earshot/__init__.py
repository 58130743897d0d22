"""The SDK of Earshot's API: `Earshot` blocks, `AsyncEarshot` is for asyncio, `earshot.webhooks` is for receivers."""

from . import _generated_errors, types, webhooks
from ._client import AsyncEarshot, Earshot
from ._errors import APIConnectionError, APIError, APITimeoutError, EarshotError
from ._exchange import Answer
from ._generated_errors import *  # noqa: F403
from ._generated_version import VERSION as __version__
from ._pages import AsyncListing, Listing, Page
from ._request import NOT_GIVEN, NotGiven
from ._widget import widget_token

__all__ = [
    "APIConnectionError",
    "APIError",
    "APITimeoutError",
    "Answer",
    "AsyncEarshot",
    "AsyncListing",
    "Earshot",
    "EarshotError",
    "Listing",
    "NOT_GIVEN",
    "NotGiven",
    "Page",
    "__version__",
    "types",
    "webhooks",
    "widget_token",
]
__all__ += _generated_errors.__all__
