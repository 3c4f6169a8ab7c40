"""Claim, call, record on the real database and the local providers."""
