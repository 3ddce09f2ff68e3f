"""What tests of several packages share: made-up runs, an emulated Azure, samples and scenarios."""

from pathlib import Path

SAMPLES = Path(__file__).parents[1] / "samples"
SCENARIOS = Path(__file__).parents[1] / "scenarios"
