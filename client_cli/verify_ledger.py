"""Check a credit proof (`axon credits --proof FILE`) without a network and without Axon.

    axon-verify-ledger FILE [--root HEX] [--json]

This one file is all of it: python verify_ledger.py FILE does the same wherever msgpack and PyNaCl are. It reads
the format that docs/ledger.md describes and uses nothing of Axon's code: hashlib, msgpack and PyNaCl are all.
It proves the following: each receipt was signed by its client and its peer, and is an entry of the log whose head the
tracker signed. With --root that head must be the one that you have from elsewhere (another tracker, another day). It
ends with 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import sys
from typing import Any

import msgpack
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

CREDITS_A_FLOP = 200 / (86400 * 10**9)


class ProofWrong(Exception):
    """The error of a wrong proof: its text says what is wrong."""


def public_key(name: str) -> bytes:
    """The 32 bytes behind an id: 52 letters of base32 without padding, in lower case."""
    key = base64.b32decode(name.upper() + "====")
    if base64.b32encode(key).decode().rstrip("=").lower() != name:
        raise ProofWrong(f"{name} is not the one spelling of a key")
    return key


def check_signature(signer: str, purpose: str, payload: bytes, signature: bytes) -> None:
    """Ed25519 over the purpose, a NUL and the payload."""
    try:
        VerifyKey(public_key(signer)).verify(purpose.encode() + b"\0" + payload, signature)
    except (BadSignatureError, ValueError) as error:
        raise ProofWrong(f"{purpose} is not signed by {signer[:8]}") from error


def opened(envelope: dict[str, Any], purpose: str) -> dict[str, Any]:
    """The message in a signed envelope."""
    check_signature(envelope["signer"], purpose, envelope["payload"], envelope["signature"])
    message: dict[str, Any] = msgpack.unpackb(envelope["payload"])
    return message


def check_inclusion(entry: bytes, number: int, size: int, path: list[bytes], root: bytes) -> None:
    """RFC 9162, 2.1.3.2."""
    found = hashlib.sha256(b"\0" + entry).digest()
    at, last = number, size - 1
    if not 0 <= at <= last:
        raise ProofWrong(f"entry {number} is not within a log of {size}")
    for beside in path:
        if last == 0:
            raise ProofWrong(f"the path of entry {number} is too long")
        if at % 2 or at == last:
            found = hashlib.sha256(b"\1" + beside + found).digest()
            while at % 2 == 0 and at:
                at, last = at >> 1, last >> 1
        else:
            found = hashlib.sha256(b"\1" + found + beside).digest()
        at, last = at >> 1, last >> 1
    if last or found != root:
        raise ProofWrong(f"the path of entry {number} does not lead to the root")


def open_receipt(entry: bytes) -> tuple[dict[str, Any], bytes]:
    """The receipt in an entry that both have signed; and the bytes that the client signed."""
    doubly = msgpack.unpackb(entry)
    envelope = doubly["receipt"]
    receipt = opened(envelope, "axon/receipt/1")
    if receipt["client"] != envelope["signer"] or receipt["client"] == receipt["peer"]:
        raise ProofWrong("a receipt was not signed by its client")
    signed = msgpack.packb({name: envelope[name] for name in ("signer", "payload", "signature")})
    check_signature(receipt["peer"], "axon/receipt-accepted/1", signed, doubly["peer_signature"])
    return receipt, envelope["payload"]


def open_voiding(entry: bytes) -> tuple[str, str, str]:
    """The client, job and peer whose receipts an entry makes void, once the client has signed it."""
    envelope = msgpack.unpackb(entry)["voided"]
    voiding = opened(envelope, "axon/voiding/1")
    if voiding["client"] != envelope["signer"]:
        raise ProofWrong("receipts were made void by another key than their client's")
    return voiding["client"], voiding["job"], voiding["peer"]


def verify(data: bytes, root: str = "") -> dict[str, Any]:
    """The sums of a credit proof. Raises `ProofWrong`."""
    proof = msgpack.unpackb(data)
    if proof["format"] != "axon/credit-proof/2":
        raise ProofWrong(f"{proof['format']} is another format")
    keys, head = proof["keys"], opened(proof["head"], "axon/tree-head/1")
    if not keys or len({*map(public_key, keys)}) != len(keys):
        raise ProofWrong("it names no key, or one twice")
    if head["tracker"] != proof["head"]["signer"]:
        raise ProofWrong("the head was not signed by its tracker")
    if root and head["root"].hex() != root:
        raise ProofWrong(f"the head has root {head['root'].hex()}")
    void = set()
    for one in proof["voidings"]:
        check_inclusion(one["entry"], one["number"], head["size"], one["path"], head["root"])
        void.add(open_voiding(one["entry"]))
    counted: dict[tuple[str, str, int], tuple[bytes, dict[str, Any]]] = {}
    numbers: set[int] = set()
    for one in proof["receipts"]:
        check_inclusion(one["entry"], one["number"], head["size"], one["path"], head["root"])
        receipt, payload = open_receipt(one["entry"])
        if not {receipt["client"], receipt["peer"]} & {*keys} or one["number"] in numbers:
            raise ProofWrong(f"entry {one['number']} is about others, or is there twice")
        numbers.add(one["number"])
        place = (receipt["reservation"], receipt["peer"], receipt["number"])
        rank = hashlib.sha256(payload).digest()
        if place not in counted or rank < counted[place][0]:
            counted[place] = (rank, receipt)
    best = [receipt for _, receipt in counted.values()]
    receipts = [one for one in best if (one["client"], one["job"], one["peer"]) not in void]
    earned = sum(receipt["flops"] for receipt in receipts if receipt["peer"] in keys)
    owed = sum(receipt["flops"] for receipt in receipts if receipt["client"] in keys)
    return {
        "keys": keys,
        "tracker": head["tracker"],
        "log": head["log"],
        "entries": head["size"],
        "root": head["root"].hex(),
        "time": head["time"],
        "receipts": len(receipts),
        "void": len(best) - len(receipts),
        "earned_flops": str(earned),
        "owed_flops": str(owed),
        "earned": earned * CREDITS_A_FLOP,
        "owed": owed * CREDITS_A_FLOP,
    }


def main() -> int:
    """Check the file that the command line names; the exit code."""
    parser = argparse.ArgumentParser(
        prog="axon-verify-ledger", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file")
    parser.add_argument("--root", default="", help="the root that the head must have, in hexadecimal digits")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        with open(options.file, "rb") as file:
            found = verify(file.read(), options.root)
    except ProofWrong as error:
        print(f"WRONG: {error}", file=sys.stderr)
        return 1
    except (ValueError, TypeError, KeyError, LookupError, OSError, msgpack.UnpackException) as error:
        print(f"WRONG: this is no credit proof ({type(error).__name__}: {error})", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(found))
        return 0
    others = f" and {len(found['keys']) - 1} more keys" if len(found["keys"]) > 1 else ""
    print(f"{found['receipts']} receipts of {found['keys'][0][:8]}{others}, each signed by its client and its peer,")
    print(f"are in the log of tracker {found['tracker'][:8]}: {found['entries']} entries, root {found['root']}.")
    if found["void"]:
        print(f"{found['void']} more are void: their clients signed that the peer was convicted in the job.")
    print(f"They add up to {found['earned']:.6g} credits earned and {found['owed']:.6g} owed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
