"""Holding a document against a pydantic model, in the words of inventory errors."""

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from leadline.inventory.document import Document, Location, Problem, shown
from leadline.inventory.fields import Unfit

M = TypeVar("M", bound=BaseModel)


def require(
    document: Document, model: type[M], checks: Iterable[Problem] = (), **given: object
) -> M:
    """The document as a ``model``, or Misuse with everything that is wrong with it.

    ``checks`` are problems that the model cannot see (a name used twice); they
    are reported together with the model's own, so that one run shows all.
    ``given`` are fields that the reader knows and a file must not set.
    """
    problems = [*document.problems, *checks]
    taken = [key for key in given if key in document.data]
    problems += [_unknown_key(model, (key,), given) for key in taken]
    explained = {problem.where for problem in problems}
    try:
        entry = model.model_validate(
            {**document.data, **given},
            by_alias=True,
            by_name=False,
            context={"folder": document.path.absolute().parent},
        )
    except ValidationError as error:
        for item in error.errors():
            if item["type"] != "extra_forbidden" or item["loc"] not in explained:
                problems += _explained(document, model, item, given)
        if not problems:
            raise
    # Outside of the handler: pydantic's error quotes the entry, which may hold a password.
    document.refuse(problems)
    return entry


def _explained(
    document: Document, model: type[BaseModel], item: ErrorDetails, given: Collection[str]
) -> Iterator[Problem]:
    where: Location = item["loc"]
    value = document.get(where)
    reason = item.get("ctx", {}).get("error")
    if item["type"] == "extra_forbidden":
        yield _unknown_key(model, where, given)
    elif where and where[-1] == "[key]":
        expected = _key_expected(_annotation(model, where[:-2]))
        yield Problem(where[:-1], f"the key {shown(where[-2])}", expected)
    elif isinstance(reason, Unfit):
        yield Problem(where, reason.found, reason.expected)
    elif item["type"] != "too_short" or not value:  # else its entries are at fault, and are told
        found = "nothing" if value is None else shown(value)
        expected = str(reason) if isinstance(reason, ValueError) else _expected(model, item)
        yield Problem(where, found, expected)


def _unknown_key(model: type[BaseModel], where: Location, given: Collection[str]) -> Problem:
    hidden = given if len(where) == 1 else ()
    known = [key for key in _keys(_annotation(model, where[:-1])) if key not in hidden]
    near = get_close_matches(str(where[-1]), known, 1)
    expected = "one of " + ", ".join(known)
    return Problem(where, "an unknown key", f"{near[0]}? ({expected})" if near else expected)


def _expected(model: type[BaseModel], item: ErrorDetails) -> str:
    """What belongs at a location, in words that follow "expected"."""
    where: Location = item["loc"]
    field = _field(_annotation(model, where[:-1]), where[-1]) if where else None
    if field is not None and field.description:
        return field.description
    keys = _keys(_annotation(model, where))
    if keys:
        return "a mapping of " + ", ".join(keys)
    return "text" if item["type"] == "string_type" else item["msg"].removeprefix("Input should be ")


def _key_expected(mapping: object) -> str:
    key, *_ = get_args(mapping)
    if get_origin(key) is Literal:
        return " or ".join(get_args(key))
    described = (mark.description for mark in get_args(key) if isinstance(mark, FieldInfo))
    return next(filter(None, described), "text")


def _annotation(model: type[BaseModel], where: Location) -> Any:
    """The type that a location has; ``str`` where the model has nothing like it."""
    here: Any = model
    for step in where:
        field = _field(here, step)
        if field is not None:
            here = _plain(field.annotation)
        elif get_origin(here) is tuple:
            here = _plain(get_args(here)[0])
        else:
            here = _plain((get_args(here) or (str,))[-1])
    return here


def _plain(annotation: Any) -> Any:
    """A type without ``Annotated`` and ``| None``."""
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return _plain(get_args(annotation)[0])
    return annotation


def _field(annotation: Any, step: str | int) -> FieldInfo | None:
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return None
    named = annotation.model_fields.items()
    return next((field for name, field in named if _key(name, field) == step), None)


def _keys(annotation: Any) -> list[str]:
    """The keys that a mapping of this type has in a file; none when it is no model."""
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return []
    fields = annotation.model_fields.items()
    return [_key(name, field) for name, field in fields]


def _key(name: str, field: FieldInfo) -> str:
    return field.validation_alias if isinstance(field.validation_alias, str) else name
