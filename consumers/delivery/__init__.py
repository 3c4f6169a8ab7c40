"""Claim, call, record: how a prepared delivery reaches its provider."""
