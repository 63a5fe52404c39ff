"""An index of the training facts on the device, for models that look facts up, such as EmQL.

Edges are grouped by (subject, relation) and by object. The members of a set, and the sets that
an entity is a member of, are then ranges of flat arrays.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class FactIndex(nn.Module):
    """The distinct edges (subject, relation, object) of a graph, as buffers.

    The buffers are not saved in checkpoints: a run folder holds the graph they are built from.
    """

    subjects: Tensor
    relations: Tensor
    objects: Tensor
    pair_offsets: Tensor
    pair_of_fact: Tensor
    by_object: Tensor
    object_offsets: Tensor

    def __init__(self, facts: Tensor, num_entities: int, num_relations: int) -> None:
        super().__init__()
        self.num_entities = num_entities
        self.num_relations = num_relations
        facts = torch.unique(facts.long().reshape(-1, 3), dim=0)  # sorted by subject, relation
        subjects, relations, objects = facts.unbind(dim=1)
        self.num_facts = len(facts)
        key = subjects * num_relations + relations
        _, pair_of_fact, sizes = torch.unique_consecutive(
            key, return_inverse=True, return_counts=True
        )
        buffers = {
            "subjects": subjects,
            "relations": relations,
            "objects": objects,
            "pair_of_fact": pair_of_fact,
            "pair_offsets": _offsets(sizes),
            "by_object": torch.argsort(objects, stable=True),
            "object_offsets": _offsets(torch.bincount(objects, minlength=num_entities)),
        }
        for name, values in buffers.items():
            self.register_buffer(name, values.contiguous(), persistent=False)

    def columns(self, facts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(subjects, relations, objects) of the given facts, each of their shape."""
        return self.subjects[facts], self.relations[facts], self.objects[facts]

    def draw_pairs(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """([count] subjects, [count] relations) of pairs drawn uniformly from all distinct ones."""
        num_pairs = len(self.pair_offsets) - 1
        pair = torch.randint(num_pairs, (count,), generator=generator, device=generator.device)
        first = self.pair_offsets[pair.to(self.pair_offsets.device)]
        return self.subjects[first], self.relations[first]

    def members(self, subjects: Tensor, relations: Tensor) -> Tensor:
        """[rows, num_entities] booleans: the objects of each (subject, relation).

        Every pair must have at least one fact.
        """
        keys = self.subjects * self.num_relations + self.relations
        first = torch.searchsorted(keys, subjects * self.num_relations + relations)
        pair = self.pair_of_fact[first]
        start, stop = self.pair_offsets[pair], self.pair_offsets[pair + 1]
        row = torch.arange(len(start), device=start.device).repeat_interleave(stop - start)
        within = torch.arange(len(row), device=row.device) - (
            torch.cumsum(stop - start, dim=0) - (stop - start)
        ).repeat_interleave(stop - start)
        table = torch.zeros(len(start), self.num_entities, dtype=torch.bool, device=row.device)
        table[row, self.objects[start[row] + within]] = True
        return table

    def draw_overlapping(
        self, members: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """([rows] subjects, [rows] relations): for each set, a pair that shares a member with it.

        `members` [rows, num_entities] are the sets. The shared member is drawn uniformly from the
        set, then the pair uniformly from the facts about that member.
        """
        noise = torch.rand(members.shape, generator=generator, device=generator.device)
        shared = torch.where(members, noise.to(members.device), -1.0).argmax(dim=1)
        start, stop = self.object_offsets[shared], self.object_offsets[shared + 1]
        draw = torch.rand(len(shared), generator=generator, device=generator.device)
        place = start + (draw.to(start.device) * (stop - start)).long()
        # The product can round up to the end of the range.
        fact = self.by_object[torch.minimum(place, stop - 1)]
        return self.subjects[fact], self.relations[fact]


def _offsets(sizes: Tensor) -> Tensor:
    """[groups + 1] where each group starts."""
    return torch.cat([sizes.new_zeros(1), torch.cumsum(sizes, dim=0)])
