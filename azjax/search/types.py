"""The types of mctx; `Any` for type checkers, which cannot see their fields."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    GumbelMuZeroExtraData = PolicyOutput = RecurrentFnOutput = RootFnOutput = Tree = Any
else:
    from mctx import (
        GumbelMuZeroExtraData,
        PolicyOutput,
        RecurrentFnOutput,
        RootFnOutput,
        Tree,
    )

__all__ = [
    "GumbelMuZeroExtraData",
    "PolicyOutput",
    "RecurrentFnOutput",
    "RootFnOutput",
    "Tree",
]
