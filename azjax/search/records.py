"""mctx's records. Type checkers cannot see their fields and take them for anything."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    PolicyOutput = RecurrentFnOutput = RootFnOutput = Tree = Any
else:
    from mctx import PolicyOutput, RecurrentFnOutput, RootFnOutput, Tree

__all__ = ["PolicyOutput", "RecurrentFnOutput", "RootFnOutput", "Tree"]
