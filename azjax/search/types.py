"""The types of mctx; `Any` for type checkers, which cannot see their fields."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    PolicyOutput = RecurrentFnOutput = RootFnOutput = Tree = Any
else:
    from mctx import PolicyOutput, RecurrentFnOutput, RootFnOutput, Tree

__all__ = ["PolicyOutput", "RecurrentFnOutput", "RootFnOutput", "Tree"]
