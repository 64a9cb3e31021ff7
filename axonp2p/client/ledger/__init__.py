"""Receipts, credits and convictions as the client keeps and hands them in."""
