"""The types of requests, answers and events."""

from ._generated_types import *  # noqa: F403
