"""A FastMCP server whose tools say what they were given, as JSON, after pydantic has converted it.

convert-server.py LOG        (on stdio; every tool that ran is kept in LOG, one line each)
"""

import json
import math
import os.path
import sys
from enum import Enum
from pathlib import Path
from typing import Optional

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel

log = sys.argv[1]
mcp = FastMCP("convert-server", log_level="ERROR")


class Mode(Enum):
    READ = "read"
    WRITE = "write"
    LEVEL = 5


class Payment(BaseModel):
    amount: int
    force: bool = False


def said(tool: str, value: object) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        value = str(value)
    text = json.dumps(value)
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{tool} {text}\n")
    return text


@mcp.tool()
def a_bool(value: bool) -> str:
    return said("a_bool", value)


@mcp.tool()
def an_int(value: int) -> str:
    return said("an_int", value)


@mcp.tool()
def a_float(value: float) -> str:
    return said("a_float", value)


@mcp.tool()
def a_str(value: str) -> str:
    return said("a_str", value)


@mcp.tool()
def a_list(value: list[str]) -> str:
    return said("a_list", value)


@mcp.tool()
def a_path(value: Path) -> str:
    return said("a_path", os.path.normpath(value))


@mcp.tool()
def an_enum(value: Mode) -> str:
    return said("an_enum", value.value)


@mcp.tool()
def an_optional(value: Optional[bool] = None) -> str:
    return said("an_optional", value)


@mcp.tool()
def a_model(value: Payment) -> str:
    return said("a_model", value.model_dump())


mcp.run()
