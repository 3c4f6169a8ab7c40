"""Providers for this machine: a WhatsApp endpoint and a mail server that check, show and misbehave as told."""
