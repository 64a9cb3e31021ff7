"""Datagrams: questions, answers, challenges, timing."""
