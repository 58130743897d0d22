"""What goes into requests, and what comes in answers and events."""

from ._generated_types import *  # noqa: F403
