import subprocess
import sys

CODE = """
from ragaliq.statistics import auroc_estimate, cross_validated, fit_isotonic, mean_estimate
scores = [((i * 37) % 101) / 101 for i in range(60)]
labels = [int(s * 7 % 1 < s) for s in scores]
print(mean_estimate(scores, resamples=200), auroc_estimate(scores, labels, resamples=200))
print(cross_validated(scores, labels, fit_isotonic, groups=[f"g{i % 20}" for i in range(60)]))
"""


def test_figures_do_not_depend_on_the_hash_seed():
    printed = {
        subprocess.run(
            [sys.executable, "-c", CODE],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(printed) == 1
