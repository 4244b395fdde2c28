"""Devices to spread a batch over; on CPU a device is a core."""

import contextlib
import os

import jax
from jax.sharding import AxisType, Mesh

from synthetic_returns.utils.cores import usable_cores

__all__ = ["AXIS", "device_mesh"]

AXIS = "devices"


def device_mesh(devices: int, batch: int) -> Mesh | None:
    """The devices to use; None for one.

    Args:
      devices: how many, or 0 for as many as divide the batch evenly.
      batch: what is spread over them.
    """
    _claim_cores(devices)
    there = jax.device_count()
    if devices == 0:
        devices = max(n for n in range(1, there + 1) if batch % n == 0)
    if devices > there:
        raise ValueError(
            f"devices is {devices} and JAX has {there}; cores become devices only before the first "
            "computation of a process: start a new one, or ask for fewer."
        )
    if batch % devices:
        raise ValueError(f"num_envs is {batch}; it must be a multiple of devices, {devices}.")
    if devices == 1:
        return None
    return jax.make_mesh((devices,), (AXIS,), axis_types=(AxisType.Auto,))


def _claim_cores(devices: int) -> None:
    """Makes every core a device, as long as JAX still listens.

    One thread per device is far more efficient on small matrices than two threads on one device,
    so the matrix library is told not to split its work.
    """
    cores = len(usable_cores())
    wanted = min(devices or cores, cores)
    if wanted > 1:
        with contextlib.suppress(RuntimeError):  # JAX has started already
            jax.config.update("jax_num_cpu_devices", wanted)
            flag = "--xla_cpu_multi_thread_eigen=false"
            os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()
