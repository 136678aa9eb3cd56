"""Four processes under one limit, with the storage they share and without it."""

from __future__ import annotations

import logging
import time

import pytest
from fleet import PROCESSES, calls_of, run_fleet

logger = logging.getLogger(__name__)

TOLERANCE = 1.02
LEAST = 0.6  # how much must be used, for the limits to be what holds the processes back
# So few calls that a busy machine does them too.
SHORT = {"minute": 1.2, "minutes": 5, "requests": 40, "tokens": 40_000, "usd": 0.24}
REAL = {"minute": 60, "minutes": 5, "requests": 300, "tokens": 300_000, "usd": 2.0}


def length(options):
    """Seconds of a run."""
    return options["minutes"] * options["minute"]


def limits_of(options):
    """What may be used in a run."""
    return {
        "requests": options["minutes"] * options["requests"],
        "tokens": options["minutes"] * options["tokens"],
        "usd": options["usd"],
    }


def hold_together(processes, options, *, tolerance=TOLERANCE, least=LEAST):
    for what, limit in limits_of(options).items():
        calls = calls_of(what, *processes)
        used = calls.within(length(options))
        most = calls.most_within(options["minute"])
        logger.warning("%s: %.4g of %.4g; most in a minute %.4g", what, used, limit, most)
        assert least * limit <= used <= tolerance * limit


def hold_their_shares(processes, options, *, tolerance=TOLERANCE, least=LEAST):
    for what, limit in limits_of(options).items():
        shares = [calls_of(what, process).within(length(options)) for process in processes]
        logger.warning("%s: %s of %.4g", what, [f"{share:.4g}" for share in shares], limit)
        assert max(shares) <= tolerance * limit / PROCESSES
        assert min(shares) >= least * limit / PROCESSES


def test_without_the_storage_each_keeps_its_share(redis_server, tmp_path):
    redis_server.kill()
    processes = run_fleet(tmp_path, url=redis_server.url(), **{**SHORT, "minutes": 3})
    assert all(set(process["states"].values()) == {"unavailable"} for process in processes)
    # The last four calls of a minute may use half as much again as was expected of them, and ten
    # are the share: 20 %. The limit of all is four shares.
    hold_their_shares(processes, {**SHORT, "minutes": 3}, tolerance=1.2, least=0.0)


# In the moment the storage goes each process has its last reply only, and reckons with what the
# others have used since. On a busy machine minutes of 1.2 s are not kept to the call, and not used
# up: 10 %. A limit that is opened a second time is 20 % and more.
@pytest.mark.parametrize(
    ("options", "minutes", "bounds"),
    [
        (SHORT, 0.05, {"tolerance": 1.1, "least": 0.0}),
        (SHORT, 1.0, {"tolerance": 1.1, "least": 0.0}),
        pytest.param(REAL, 1.0, {}, marks=pytest.mark.soak),
    ],
)
def test_a_storage_that_goes_and_comes_back_empty_opens_no_limit_twice(
    redis_server, tmp_path, options, minutes, bounds
):
    def trouble():
        time.sleep(2 * options["minute"])
        redis_server.kill()
        time.sleep(minutes * options["minute"])
        redis_server.start()

    processes = run_fleet(tmp_path, url=redis_server.url(), during=trouble, **options)
    assert all(set(process["states"].values()) == {"shared"} for process in processes)
    hold_together(processes, options, **bounds)


@pytest.mark.soak
def test_four_processes_keep_to_one_limit_for_five_minutes(redis_server, tmp_path):
    hold_together(run_fleet(tmp_path, url=redis_server.url(), **REAL), REAL)


@pytest.mark.soak
def test_without_the_storage_each_keeps_its_share_for_five_minutes(redis_server, tmp_path):
    redis_server.kill()
    hold_their_shares(run_fleet(tmp_path, url=redis_server.url(), **REAL), REAL)
