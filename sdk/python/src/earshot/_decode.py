"""Decodes JSON into the types of the contract. It is lenient, because a service may be newer or older."""

import dataclasses
import functools
import re
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, List, Mapping, Tuple, Union, cast, get_args, get_origin, get_type_hints

from . import _generated_types as types

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII)


def wire(name: str) -> str:
    """Writes the name of a member as the contract does."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def decode(hint: Any, value: Any) -> Any:
    """Decodes a value into a type. A value that doesn't fit the type stays as it came."""
    if value is None:
        return None
    if hint is datetime:
        return _moment(value)
    if dataclasses.is_dataclass(hint):
        return _object(hint, value)
    origin, args = get_origin(hint), get_args(hint)
    if origin is list and isinstance(value, list):
        return [decode(args[0], item) for item in cast(List[Any], value)]
    if origin is dict and isinstance(value, dict):
        return {key: decode(args[1], item) for key, item in cast(Dict[str, Any], value).items()}
    if origin is Union:
        return event(value) if types.UnknownEvent in args else decode(args[0], value)
    return value


def event(value: Any) -> Any:
    """Decodes the payload of an event. Its member `event` determines the type."""
    if not isinstance(value, dict):
        return value
    members = cast(Dict[str, Any], value)
    name = members.get("event")
    known = types.EVENTS.get(name) if isinstance(name, str) else None
    return _object(known or types.UnknownEvent, members)


def _object(cls: Any, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    rest = dict(cast(Mapping[str, Any], value))
    # A required member that is missing becomes None, because an older service may not have it.
    known = {name: decode(hint, rest.pop(key, None)) for name, key, hint in _members(cls)}
    return cls(**known, extra=rest)


@functools.lru_cache(maxsize=None)
def _members(cls: Any) -> List[Tuple[str, str, Any]]:
    hints = get_type_hints(cls)
    return [(f.name, wire(f.name), hints[f.name]) for f in dataclasses.fields(cls) if f.name != "extra"]


def _moment(value: Any) -> Any:
    found = _MOMENT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    day, time, fraction, sign, hours, minutes = found.groups()
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    try:
        zone = timezone(-offset if sign == "-" else offset)
        return datetime.fromisoformat(f"{day}T{time}.{(fraction or '')[:6]:0<6}").replace(tzinfo=zone)
    except ValueError:
        return value
