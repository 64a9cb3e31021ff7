"""Attacks that a GPU opens: each tries what its nodes and its driver's library put within reach, and no more.

They are made where a sandbox has a GPU, and hold trivially where it has none. One that needs a card to be tried at all
says "not run" without one.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat

from axonp2p.sandbox.attacks.attack import Attack, AttackHeld, AttackTarget, attack

_MOST_CARDS = 32
_BESIDE_CARDS = (
    *("nvidia-modeset", "nvidia-uvm-tools", "nvidia-caps/nvidia-cap1", "nvidia-caps/nvidia-cap2", "nvidia-nvswitchctl"),
    *("dri/card0", "dri/card1", "dri/renderD128", "dri/renderD129", "fb0", "kfd"),
)
_CARDS_MAJOR = 195
_KIND_OF_CARDS = 0x4601
"""A request of the kind that the drivers of cards take; framebuffers take the same."""
_TYPE_INTO_TERMINAL, _VERSION_OF_SCREEN = 0x5412, 0xC0406400
_DRIVER_LIBRARY = "libnvidia-ml.so.1"


@attack
def other_gpus(target: AttackTarget) -> str:
    """tries to open the nodes of cards, slices, screens and memory tools that it was not given"""
    cards = [f"/dev/nvidia{number}" for number in range(_MOST_CARDS)]
    refused: OSError | None = None
    for path in [*cards, *(f"/dev/{name}" for name in _BESIDE_CARDS)]:
        if path in target.gpu_nodes:
            continue
        try:
            os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
        except OSError as error:
            refused = error
        else:
            return f"opened {path}"
    raise refused or AttackHeld("there are none")


@attack
def node_of_another_gpu(target: AttackTarget) -> str:
    """tries to make the node of another card in /tmp"""
    path = "/tmp/nvidia7"  # noqa: S108
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(_CARDS_MAJOR, 7))
    os.remove(path)
    return "made one"


@attack
def gpu_request_elsewhere(target: AttackTarget) -> str:
    """tries to ask a device that is no card what only cards are asked"""
    with open("/dev/null", "rb") as device:
        try:
            fcntl.ioctl(device, _KIND_OF_CARDS)
        except OSError as error:
            if error.errno == errno.ENOTTY:  # the device itself answered that it is no card
                return "the request reached another device"
            raise
    return "asked it"


@attack
def other_requests_to_gpu(target: AttackTarget) -> str:
    """tries to ask its card what only terminals and screens are asked"""
    refused: OSError | None = None
    for path in target.gpu_nodes:
        with open(path, "r+b", buffering=0) as node:
            for request in (_TYPE_INTO_TERMINAL, _VERSION_OF_SCREEN):
                try:
                    fcntl.ioctl(node, request)
                except OSError as error:
                    if error.errno == errno.ENOTTY:
                        return f"the driver was asked {request:#x}"
                    refused = error
    raise refused or AttackHeld("not run: it was given no card")


@attack
def left_in_gpu_cache(target: AttackTarget) -> str:
    """tries to leave compiled code where the driver of the next job would load it"""
    refused: OSError | None = None
    for folder in ("/nvidia", "/usr/share/nvidia", "/var/tmp", "/job", "/root/.nv", target.home + "/.nv"):  # noqa: S108
        try:
            os.close(os.open(f"{folder}/ComputeCache", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC))
        except OSError as error:
            refused = error
        else:
            return f"left something in {folder}"
    raise refused or AttackHeld("there is no such place")


@attack
def settings_of_gpu(target: AttackTarget) -> str:
    """tries to change the power limit of its card, as nvidia-smi does"""
    try:
        library = ctypes.CDLL(_DRIVER_LIBRARY)
    except OSError:
        raise AttackHeld("not run: there is no driver's library") from None
    if library.nvmlInit_v2():
        raise AttackHeld("not run: the driver's library finds no card")
    handle, watts = ctypes.c_void_p(), ctypes.c_uint()
    if library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)):
        raise AttackHeld("not run: the driver's library finds no card")
    library.nvmlDeviceGetPowerManagementLimit(handle, ctypes.byref(watts))
    # The limit that it has: harmless should it succeed.
    answer = library.nvmlDeviceSetPowerManagementLimit(handle, watts)
    if answer:
        raise AttackHeld(f"the driver answered {answer}")
    return f"could set it, now {watts.value // 1000} W"


GPU_ATTACKS: tuple[Attack, ...] = (
    *(other_gpus, node_of_another_gpu, gpu_request_elsewhere, other_requests_to_gpu),
    *(left_in_gpu_cache, settings_of_gpu),
)
"""Each is harmless and a matter of milliseconds."""
