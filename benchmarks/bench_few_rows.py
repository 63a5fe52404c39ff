"""Products of few rows with the weights of a projection layer: our kernel against PyTorch's.

Claim: 2 to 32 rows by 1600 x 1600 take less processor time than with PyTorch, which rearranges
the weights each time, and 48 rows take about as much. Several layers take turns, so that weights
are read from memory and not from a cache, as when a whole network runs.

    python benchmarks/bench_few_rows.py [--width 1600] [--repeats 8]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from conekg.model.kernels.few_rows import FewRowsLinear, has_wide_vectors

LAYERS = 8


def milliseconds(layers: Sequence[nn.Module], inputs: Tensor, repeats: int) -> float:
    """Milliseconds of processor time per layer, the best of `repeats` rounds."""
    times = []
    for _ in range(repeats):
        started = time.process_time()
        for layer in layers:
            layer(inputs)
        times.append((time.process_time() - started) / len(layers))
    return 1e3 * min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=1600)
    parser.add_argument("--repeats", type=int, default=8)
    options = parser.parse_args()
    if not has_wide_vectors():
        print("skipped: without vectors of 512 bits on this processor, PyTorch's products are used")
        return
    torch.set_num_threads(1)
    plain = [nn.Linear(options.width, options.width) for _ in range(LAYERS)]
    for layer in plain:  # stored column by column, which is faster in PyTorch
        layer.weight.data = layer.weight.data.t().contiguous().t()
    ours = [FewRowsLinear(layer) for layer in plain]
    with torch.inference_mode():
        for rows in (2, 4, 8, 12, 16, 24, 32, 48, 64):
            inputs = torch.randn(rows, options.width)
            theirs_ms = milliseconds(plain, inputs, options.repeats)
            ours_ms = milliseconds(ours, inputs, options.repeats)
            print(
                f"{rows:3} rows  library {theirs_ms:.3f} ms  ours {ours_ms:.3f} ms  "
                f"ratio {theirs_ms / ours_ms:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
