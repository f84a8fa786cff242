"""Who waits for whom in a circle: the one part of a hang's analysis that is plainer in Python than in SQL."""

from __future__ import annotations

from collections.abc import Sequence


def cycle_ranks(waiters: Sequence[int], blockers: Sequence[int]) -> list[int]:
    """Return the ranks that wait for each other in a circle, ascending.

    Args:
        waiters: first end of each edge: who waits.
        blockers: second end of each edge, as long as `waiters`: who is waited for.

    These are the strongly connected components of more than one rank (Tarjan, SIAM J. Comput. 1972), without
    recursion since a job may have thousands of ranks in one chain.
    """
    graph: dict[int, list[int]] = {}
    for waiter, blocker in zip(waiters, blockers, strict=True):
        graph.setdefault(waiter, []).append(blocker)
    found: list[int] = []
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    open_: set[int] = set()
    for start, first in graph.items():
        if start in order:
            continue
        work = [(start, iter(first))]
        order[start] = low[start] = len(order)
        stack.append(start)
        open_.add(start)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in order:
                    order[other] = low[other] = len(order)
                    stack.append(other)
                    open_.add(other)
                    work.append((other, iter(graph.get(other, ()))))
                    break
                if other in open_:
                    low[node] = min(low[node], order[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    found += _component(node, stack, open_)
    return sorted(found)


def _component(root: int, stack: list[int], open_: set[int]) -> list[int]:
    """Take the component that ends at `root` off the stack; a single rank is no circle."""
    members = []
    while True:
        member = stack.pop()
        open_.discard(member)
        members.append(member)
        if member == root:
            return members if len(members) > 1 else []
