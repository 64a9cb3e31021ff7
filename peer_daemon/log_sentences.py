"""The sentences that `axon-peer run` shows at a terminal, by the event of the log (pure)."""

from __future__ import annotations

SENTENCES = {
    "peer": "{name} runs: peer {id}, port {port}, version {version}. Ctrl-C ends it.",
    "lending": "It lends {cores} cores and {memory_mb} MiB of memory a job; jobs at a time: {slots}.",
    "announced": "Announced to {tracker}: others can find this machine.",
    "not announced": "Not announced: {reason}.",
    "the tracker is gone": "{tracker} does not answer any more: {reason}.",
    "withdrawn": "Withdrawn from {tracker}.",
    "in the DHT": "In the DHT; nodes known: {contacts}.",
    "published in the DHT": "Published in the DHT at {holders} nodes.",
    "withdrawn from the DHT": "Withdrawn from the DHT at {holders} nodes.",
    "status page": "Status page: {at}    (axon-peer page opens it with the right to change things)",
    "ready": "READY: {because}.",
    "training": "TRAINING: {because}.",
    "waiting": "WAITING: {because}.",
    "paused": "PAUSED: {because}.",
    "finishing": "FINISHING: {because}.",
    "refused": "CANNOT WORK: {because}.",
    "lease taken": "{job} of client {client} begins: {cores} cores, {memory_mb} MiB.",
    "lease ended": "{job} of client {client} ended: {reason}.",
    "receipts handed in": "{receipts} receipts handed in at {tracker}.",
    "receipts proved": "{tracker} proved that {receipts} receipts are in its log.",
    "no job will run here": "No job will run here: {reason}.",
    "reached through a relay": "Others reach this machine through {relay}.",
    "the router forwards the port": "The router forwards port {port}.",
    "stopped": "Stopped.",
}
